//! What is true, by the simulated server's own log and files, and whether a conclusion agrees with it.
//!
//! Completed needs the final name to have held our very bytes as a whole. Whatever says that nothing was delivered needs the
//! final name never to have been created by us. Unknown claims nothing and is never false; it only leaves somebody to ask.
//! Beside the conclusion there is what must never happen, whatever is concluded: somebody else's file harmed, a final name
//! removed, one created twice, anything changed before cutoff 2.

use std::collections::BTreeMap;

use serde::Serialize;

use super::placed::FOREIGN;
use super::record::{Concluded, Kept};
use crate::job::facts::FileFacts;
use crate::job::verdict::Conclusion;
use crate::remote::Names;
use crate::remote::simulated::operations::Operation;
use crate::remote::simulated::{SftpServer, resolve};

/// A conclusion beside the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judged {
    True,
    False,
    /// It claims nothing.
    Open,
}

/// What really happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Truth {
    /// Requests that created the final name.
    pub created: usize,
    /// It held exactly our bytes, as a whole, at some time.
    pub whole: bool,
    /// Each declared file beside ours: its bytes if a request put it there.
    pub beside: BTreeMap<String, Option<Vec<u8>>>,
    /// Names of somebody else's files that are no longer as they were, or no longer there: no simulated partner takes them.
    pub harmed: Vec<String>,
    /// A request took a file away from the final name.
    pub removed: bool,
    /// What was changed at the partner before cutoff 2.
    pub too_early: Vec<String>,
}

impl Truth {
    /// `foreign`: the name under which somebody else's file was put, if one was.
    pub fn of(server: &SftpServer, names: &Names, expected: &FileFacts, kept: &Kept, foreign: Option<&str>) -> Self {
        let appeared = server.appearances(&names.final_name);
        let before = if kept.expected.is_some() { kept.requests_before } else { usize::MAX };
        let (log, final_name) = (server.log(), resolve(&names.final_name));
        Self {
            created: server.times_written(&names.final_name),
            whole: appeared.iter().any(|one| one.bytes == expected.bytes && one.sha256 == expected.sha256),
            beside: names
                .auxiliary
                .iter()
                .map(|auxiliary| (auxiliary.name.clone(), put(server, &auxiliary.name)))
                .collect(),
            harmed: foreign
                .filter(|name| server.read(name).as_deref() != Some(FOREIGN))
                .map(str::to_owned)
                .into_iter()
                .collect(),
            removed: log.iter().any(|logged| logged.took_effect && takes_away(&logged.operation, &final_name)),
            too_early: log.iter().take(before).filter_map(|logged| change(&logged.operation)).collect(),
        }
    }

    pub fn sentence(&self) -> &'static str {
        match (self.whole, self.created) {
            (true, 1) => "the file was there, whole",
            (true, _) => "the file was there, whole, and its name was created more than once",
            (false, 0) => "the final name was never created",
            (false, _) => "the final name was created, and never held the whole file",
        }
    }

    pub fn judge(&self, concluded: &Concluded) -> Judged {
        match concluded {
            Concluded::By(conclusion) => self.judge_conclusion(*conclusion),
            Concluded::Failed { .. } | Concluded::Released { .. } | Concluded::Stopped => self.never_there(),
            Concluded::Nothing { .. } => Judged::Open,
        }
    }

    pub fn judge_conclusion(&self, conclusion: Conclusion) -> Judged {
        match conclusion {
            Conclusion::Completed(_) if self.whole => Judged::True,
            Conclusion::Completed(_) => Judged::False,
            Conclusion::NotDelivered(_) => self.never_there(),
            Conclusion::Unknown(_) => Judged::Open,
        }
    }

    fn never_there(&self) -> Judged {
        if self.created == 0 { Judged::True } else { Judged::False }
    }
}

fn put(server: &SftpServer, name: &str) -> Option<Vec<u8>> {
    if server.appearances(name).is_empty() { None } else { server.read(name) }
}

/// True for a request after which the name is no longer there.
fn takes_away(operation: &Operation, name: &str) -> bool {
    match operation {
        Operation::Remove { path } => path == name,
        Operation::Rename { from, .. } | Operation::PosixRename { from, .. } => from == name,
        Operation::Open { .. }
        | Operation::Close { .. }
        | Operation::Link { .. }
        | Operation::MakeDirectory { .. }
        | Operation::List { .. }
        | Operation::Stat { .. }
        | Operation::SetStat { .. }
        | Operation::Fsync { .. } => false,
    }
}

/// A request that changes something, in words.
fn change(operation: &Operation) -> Option<String> {
    match operation {
        Operation::Open { path, mode } if mode.create || mode.write => Some(format!("{path} was opened for writing")),
        Operation::Rename { to, .. } | Operation::PosixRename { to, .. } | Operation::Link { to, .. } => {
            Some(format!("{to} was given to a file"))
        }
        Operation::Remove { path } => Some(format!("{path} was removed")),
        Operation::MakeDirectory { path } => Some(format!("the directory {path} was made")),
        Operation::SetStat { path } => Some(format!("the attributes of {path} were changed")),
        Operation::Open { .. }
        | Operation::Close { .. }
        | Operation::List { .. }
        | Operation::Stat { .. }
        | Operation::Fsync { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::contract::Contract;
    use crate::job::facts::Sha256;
    use crate::job::verdict::{NotDeliveredProof, Proof, WhyUnknown};
    use crate::remote::simulated::Behaviour;

    /// Nobody takes somebody else's file but us, so one that is gone is as bad as one that was replaced.
    #[tokio::test]
    async fn plg_06_somebody_elses_file_is_harmed_if_it_is_replaced_and_if_it_is_gone() {
        let server = SftpServer::start(Behaviour::default()).await.unwrap();
        let names = Names::mint(&Contract::default(), None, "a.csv", "k", "a").unwrap();
        let expected = FileFacts { name: "a.csv".to_owned(), bytes: 0, sha256: Sha256([0; 32]) };
        let harmed = |foreign| Truth::of(&server, &names, &expected, &Kept::default(), foreign).harmed;
        server.put("a.csv", FOREIGN).unwrap();
        assert_eq!(harmed(Some("a.csv")), Vec::<String>::new());
        server.put("a.csv", "ours").unwrap();
        assert_eq!(harmed(Some("a.csv")), ["a.csv"]);
        server.collect("a.csv");
        assert_eq!(harmed(Some("a.csv")), ["a.csv"]);
        assert_eq!(harmed(None), Vec::<String>::new(), "where nothing of somebody else was put, nothing is missing");
    }

    #[test]
    fn plg_06_a_final_name_is_taken_away_by_a_removal_and_by_a_rename_of_it() {
        let (a, b) = (|| "/a".to_owned(), || "/b".to_owned());
        for (operation, taken) in [
            (Operation::Remove { path: a() }, true),
            (Operation::Remove { path: b() }, false),
            (Operation::Rename { from: a(), to: b() }, true),
            (Operation::PosixRename { from: a(), to: b() }, true),
            (Operation::Rename { from: b(), to: a() }, false),
            (Operation::Link { from: a(), to: b() }, false),
        ] {
            assert_eq!(takes_away(&operation, "/a"), taken, "{operation:?}");
        }
    }

    #[test]
    fn plg_06_a_conclusion_is_judged_by_what_the_server_saw() {
        let truth = |created, whole| Truth { created, whole, ..Truth::default() };
        let completed = Conclusion::Completed(Proof::Listing);
        let never = Conclusion::NotDelivered(NotDeliveredProof::NeverSent);
        let unknown = Conclusion::Unknown(WhyUnknown::LookFailed);
        for (created, whole, conclusion, judged) in [
            (1, true, completed, Judged::True),
            (0, false, completed, Judged::False),
            (1, false, completed, Judged::False),
            (0, false, never, Judged::True),
            (1, true, never, Judged::False),
            (1, false, never, Judged::False),
            (1, true, unknown, Judged::Open),
            (0, false, unknown, Judged::Open),
        ] {
            assert_eq!(truth(created, whole).judge_conclusion(conclusion), judged, "{created} {whole} {conclusion}");
        }
        assert_eq!(truth(1, true).judge(&Concluded::Released { why: String::new() }), Judged::False);
        assert_eq!(truth(0, false).judge(&Concluded::Stopped), Judged::True);
    }
}
