//! What is true, by the simulated server's own log and files, and whether a conclusion agrees with it.
//!
//! Completed needs the final name to have held our very bytes as a whole. Whatever says that nothing was delivered needs the
//! final name never to have been created by us. Unknown claims nothing and is never false; it only leaves somebody to ask.

use serde::Serialize;

use super::fault::{Fault, Oddity};
use super::placed::FOREIGN;
use super::record::{Concluded, Kept};
use crate::job::facts::FileFacts;
use crate::job::verdict::Conclusion;
use crate::remote::Names;
use crate::remote::simulated::SftpServer;
use crate::remote::simulated::operations::Operation;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Truth {
    /// Requests that created the final name.
    pub created: usize,
    /// It held exactly our bytes, as a whole, at some time.
    pub whole: bool,
    /// Names of somebody else's files that are no longer as they were.
    pub harmed: Vec<String>,
    /// What was changed at the partner before cutoff 2.
    pub too_early: Vec<String>,
}

impl Truth {
    pub fn of(server: &SftpServer, names: &Names, expected: &FileFacts, kept: &Kept, fault: Fault) -> Self {
        let appeared = server.appearances(&names.final_name);
        let foreign = match fault {
            Fault::Odd(Oddity::NameTaken | Oddity::NameTakenMeanwhile) => Some(names.final_name.clone()),
            Fault::Odd(Oddity::AuxiliaryTaken) => names.auxiliary.first().map(|auxiliary| auxiliary.name.clone()),
            Fault::Odd(_) | Fault::At(..) => None,
        };
        let before = if kept.expected.is_some() { kept.requests_before } else { usize::MAX };
        Self {
            created: server.times_written(&names.final_name),
            whole: appeared.iter().any(|one| one.bytes == expected.bytes && one.sha256 == expected.sha256),
            harmed: foreign
                .into_iter()
                .filter(|name| server.read(name).is_some_and(|bytes| bytes != FOREIGN))
                .collect(),
            too_early: server.log().iter().take(before).filter_map(|logged| change(&logged.operation)).collect(),
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
    use crate::job::verdict::{NotDeliveredProof, Proof, WhyUnknown};

    #[test]
    fn plg_06_a_conclusion_is_judged_by_what_the_server_saw() {
        let truth = |created, whole| Truth { created, whole, harmed: vec![], too_early: vec![] };
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
