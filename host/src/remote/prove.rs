//! What a server really does, shown on scratch names before it is trusted with a delivery.
//!
//! Specification and advertisement prove nothing: RENAME refuses an existing name here and replaces it there, and one
//! server says yes to a hard link and makes none. So each request is made on files of our own, and what counts is
//! what can be seen afterwards. The proof is kept under [`super::ServerFacts::fingerprint`] and repeated when that
//! changes. It shows what the server did, not that it is free of races.

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::error::RemoteError;
use super::session::Session;
use crate::job::contract::Contract;
use crate::job::evidence::PublishForm;
use crate::job::facts::{Entry, Found};
use crate::job::names::{NameError, NamePattern, Parts};

/// What a server was shown to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The server that it holds for.
    pub fingerprint: String,
    /// After a close the size and the content are those that were written.
    pub size_after_close: Shown,
    /// Exclusive create refuses an existing name and leaves its file alone.
    pub create_refuses: Shown,
    /// A file that is created appears whole or not at all, by what a server of this kind is. A proof from before there were
    /// such servers does not say it.
    #[serde(default)]
    pub creates_whole: bool,
    /// A hard link makes the new name.
    pub link_creates: Shown,
    /// A hard link refuses an existing name and leaves its file alone.
    pub link_refuses: Shown,
    /// RENAME gives a file a name that is free.
    pub rename_moves: Shown,
    /// RENAME refuses an existing name and leaves both files alone.
    pub rename_refuses: Shown,
    /// RENAME replaces the file of an existing name.
    pub rename_replaces: Shown,
    /// A POSIX rename (over SFTP `posix-rename@openssh.com`) replaces the file of an existing name.
    pub posix_rename_replaces: Shown,
    /// Scratch names that could not be removed again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// It was seen to be so.
    pub shown: bool,
    /// What the server answered, and what was seen.
    pub seen: String,
    /// The raw status code of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
}

impl Shown {
    fn new(shown: bool, answer: &Result<(), RemoteError>, seen: impl Into<String>) -> Self {
        let (code, words) = match answer {
            Ok(()) => (None, "yes".to_owned()),
            Err(RemoteError::Refused { code, text }) => (*code, format!("no, {text:?}")),
            Err(other) => (None, other.to_string()),
        };
        Self { shown, code, seen: format!("answered {words}; {}", seen.into()) }
    }

    fn not_tried(why: &str) -> Self {
        Self { shown: false, code: None, seen: why.to_owned() }
    }
}

/// Names for a proof: minted from the manifest's temporary pattern, so that the partner ignores them, each with an id
/// of its own, so that nobody else has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchNames([String; 5]);

impl ScratchNames {
    /// `final_name` is any name of the right folder, for patterns that are built on it.
    pub fn mint(temporary: &NamePattern, final_name: &str) -> Result<Self, NameError> {
        Self::with_ids(temporary, final_name, std::array::from_fn(|_| Uuid::new_v4()))
    }

    /// The same with ids that are known: for a session that is written down, or held again.
    pub fn with_ids(temporary: &NamePattern, final_name: &str, ids: [Uuid; 5]) -> Result<Self, NameError> {
        if !temporary.names_the_attempt() {
            let pattern = String::from(temporary.clone());
            return Err(NameError::Unusable { name: pattern, why: "temporary names must carry {attempt}" });
        }
        let mint = |id: Uuid| {
            let id = id.to_string();
            temporary.mint(Parts { key: &id, attempt: &id, final_name })
        };
        let [first, second, third, fourth, fifth] = ids;
        Ok(Self([mint(first)?, mint(second)?, mint(third)?, mint(fourth)?, mint(fifth)?]))
    }

    /// One of them, for a look before the proof.
    pub(super) fn first(&self) -> &str {
        let [first, ..] = &self.0;
        first
    }
}

/// Tries what a delivery may need. An error means that the session was lost or a basic request refused; scratch files
/// may then be left, under names that only temporary files have.
pub async fn prove(session: &Session, scratch: &ScratchNames) -> Result<Proof, RemoteError> {
    prove_until(session, scratch, &CancellationToken::new()).await
}

/// The same, ended by a stop between two requests; the scratch files are removed then too.
pub(super) async fn prove_until(
    session: &Session,
    scratch: &ScratchNames,
    stop: &CancellationToken,
) -> Result<Proof, RemoteError> {
    let tried = Trial { session, scratch, stop }.run().await;
    let mut left_behind = Vec::new();
    for name in &scratch.0 {
        match session.remove(name).await {
            Ok(()) => {}
            Err(error) if error.says_absent() => {}
            Err(error) => {
                warn!(name, %error, "a scratch file could not be removed");
                left_behind.push(name.clone());
            }
        }
    }
    tried.map(|proof| Proof { left_behind, ..proof })
}

/// Nothing more is asked of the server once the attempt was asked to stop.
pub(super) fn go_on(stop: &CancellationToken) -> Result<(), RemoteError> {
    if stop.is_cancelled() { Err(RemoteError::Stopped) } else { Ok(()) }
}

/// The form in which this server publishes, or none if it offers no form that is safe under the contract. Where the contract
/// lets us not look at final names, a rename comes before a link: its answer counts, and a link's only once it was seen.
pub fn choose_form(proof: &Proof, contract: &Contract, overwrite: bool) -> Option<PublishForm> {
    let whole = proof.size_after_close.shown;
    let mut forms = if overwrite {
        [
            (PublishForm::PosixRename, proof.posix_rename_replaces.shown),
            (PublishForm::RenameOver, proof.rename_replaces.shown),
            (PublishForm::CreateWhole, false),
            (PublishForm::ExclusiveCreate, false),
        ]
    } else {
        [
            (PublishForm::Link, proof.link_creates.shown && proof.link_refuses.shown),
            (PublishForm::Rename, proof.rename_moves.shown && proof.rename_refuses.shown),
            (PublishForm::CreateWhole, proof.creates_whole && proof.create_refuses.shown),
            (PublishForm::ExclusiveCreate, contract.exclusive_create && proof.create_refuses.shown),
        ]
    };
    if contract.listing_hidden && !overwrite {
        forms.swap(0, 1);
    }
    forms.into_iter().find(|(_, shown)| *shown && whole).map(|(form, _)| form)
}

// Contents of different lengths, so that even a server that lets nothing be read shows which file is where.
const FIRST: &[u8] = b"scratch 1\n";
const SECOND: &[u8] = b"scratch file 2\n";
const THIRD: &[u8] = b"the third scratch file\n";

struct Trial<'a> {
    session: &'a Session,
    scratch: &'a ScratchNames,
    stop: &'a CancellationToken,
}

impl Trial<'_> {
    async fn run(&self) -> Result<Proof, RemoteError> {
        let [first, second, linked, moved, third] = &self.scratch.0;
        self.session.create(first, FIRST.to_vec()).await.map_err(|failed| failed.error)?;
        let held = self.holds(first, FIRST).await?;
        let size_after_close =
            Shown::new(held, &Ok(()), if held { "the file is whole" } else { "the file is not whole" });

        go_on(self.stop)?;
        let again = self.session.create(first, SECOND.to_vec()).await.map_err(|failed| failed.error);
        let again = answered(again)?;
        let create_refuses = self.kept(&again, &[(first, FIRST)]).await?;
        if !self.holds(first, FIRST).await? {
            // The server replaced it: start the rest from a known file.
            self.remake(first, FIRST).await?;
        }
        self.session.create(second, SECOND.to_vec()).await.map_err(|failed| failed.error)?;

        go_on(self.stop)?;
        let (link_creates, link_refuses) = self.link(first, second, linked).await?;

        go_on(self.stop)?;
        let [rename_refuses, rename_replaces, rename_moves] = self.rename(first, second, moved).await?;
        go_on(self.stop)?;
        let posix_rename_replaces = if let Some(why) = self.session.lacks_posix_rename() {
            Shown::not_tried(why)
        } else {
            self.session.create(third, THIRD.to_vec()).await.map_err(|failed| failed.error)?;
            let target = if rename_moves.shown { moved } else { first };
            let over = answered(self.session.posix_rename(third, target).await)?;
            let replaced = over.is_ok() && self.holds(target, THIRD).await? && self.is_absent(third).await?;
            Shown::new(replaced, &over, if replaced { "the file was replaced" } else { "nothing was replaced" })
        };
        Ok(Proof {
            fingerprint: self.session.server().fingerprint(),
            size_after_close,
            create_refuses,
            creates_whole: self.session.creates_whole(),
            link_creates,
            link_refuses,
            rename_moves,
            rename_refuses,
            rename_replaces,
            posix_rename_replaces,
            left_behind: Vec::new(),
        })
    }

    async fn link(&self, first: &str, second: &str, linked: &str) -> Result<(Shown, Shown), RemoteError> {
        if let Some(why) = self.session.lacks_hardlink() {
            let not_offered = Shown::not_tried(why);
            return Ok((not_offered.clone(), not_offered));
        }
        let free = answered(self.session.hardlink(first, linked).await)?;
        let made = free.is_ok() && self.holds(linked, FIRST).await? && self.holds(first, FIRST).await?;
        let creates = Shown::new(made, &free, if made { "both names are there" } else { "the new name is not there" });
        if !made {
            return Ok((creates, Shown::not_tried("a link to a free name was not made")));
        }
        let over = answered(self.session.hardlink(second, linked).await)?;
        let refuses = self.kept(&over, &[(linked, FIRST), (second, SECOND)]).await?;
        Ok((creates, refuses))
    }

    /// Whether a rename refuses an existing name, replaces its file, and gives a free name.
    async fn rename(&self, first: &str, second: &str, moved: &str) -> Result<[Shown; 3], RemoteError> {
        if let Some(why) = self.session.lacks_rename() {
            return Ok([(); 3].map(|()| Shown::not_tried(why)));
        }
        let over = answered(self.session.rename(second, first).await)?;
        let refuses = self.kept(&over, &[(first, FIRST), (second, SECOND)]).await?;
        let replaced = over.is_ok() && self.holds(first, SECOND).await? && self.is_absent(second).await?;
        let replaces =
            Shown::new(replaced, &over, if replaced { "the file was replaced" } else { "nothing was replaced" });

        // Whatever became of the two, what is under `first` is moved to a free name.
        let content = if replaced { SECOND } else { FIRST };
        let free = answered(self.session.rename(first, moved).await)?;
        let there = free.is_ok() && self.holds(moved, content).await? && self.is_absent(first).await?;
        let moves =
            Shown::new(there, &free, if there { "the file has its new name" } else { "the file was not moved" });
        Ok([refuses, replaces, moves])
    }

    /// A refusal counts if the server said no and every file is what it was.
    async fn kept(&self, answer: &Result<(), RemoteError>, files: &[(&str, &[u8])]) -> Result<Shown, RemoteError> {
        for (name, content) in files {
            if !self.holds(name, content).await? {
                return Ok(Shown::new(false, answer, "a file is not what it was"));
            }
        }
        let refused = answer.as_ref().is_err_and(RemoteError::is_refusal);
        Ok(Shown::new(refused, answer, "the files are what they were"))
    }

    /// True if the name shows this content: by reading it, or by its size where it may not be read.
    async fn holds(&self, name: &str, content: &[u8]) -> Result<bool, RemoteError> {
        let length = content.len() as u64;
        match self.session.stat(name).await? {
            Found::Present(Entry { bytes, .. }) if bytes.is_none_or(|bytes| bytes == length) => {}
            Found::Present(_) | Found::Absent | Found::NotVisible { .. } | Found::Unknown { .. } => return Ok(false),
        }
        match self.session.read(name, 0, 64).await {
            Ok(read) => Ok(read == content),
            Err(RemoteError::Refused { code: Some(super::error::PERMISSION_DENIED), .. }) => Ok(true),
            Err(RemoteError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn is_absent(&self, name: &str) -> Result<bool, RemoteError> {
        Ok(self.session.stat(name).await? == Found::Absent)
    }

    async fn remake(&self, name: &str, content: &[u8]) -> Result<(), RemoteError> {
        self.session.remove(name).await?;
        self.session.create(name, content.to_vec()).await.map_err(|failed| failed.error)
    }
}

/// Keeps the server's yes or no; anything else ends the trial.
fn answered(result: Result<(), RemoteError>) -> Result<Result<(), RemoteError>, RemoteError> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(refusal) if refusal.is_refusal() => Ok(Err(refusal)),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(shown: &[&str]) -> Proof {
        let kept = |name: &str| shown.contains(&name);
        let shown = |name: &str| Shown { shown: shown.contains(&name), seen: String::new(), code: None };
        Proof {
            fingerprint: String::new(),
            size_after_close: shown("size"),
            create_refuses: shown("create_refuses"),
            creates_whole: kept("creates_whole"),
            link_creates: shown("link_creates"),
            link_refuses: shown("link_refuses"),
            rename_moves: shown("rename_moves"),
            rename_refuses: shown("rename_refuses"),
            rename_replaces: shown("rename_replaces"),
            posix_rename_replaces: shown("posix"),
            left_behind: Vec::new(),
        }
    }

    #[test]
    fn del_05_a_form_is_chosen_only_if_it_was_shown() {
        let plain = Contract::default();
        let exclusive = Contract { exclusive_create: true, ..Contract::default() };
        let hidden = Contract { listing_hidden: true, ..Contract::default() };
        use PublishForm::{CreateWhole, ExclusiveCreate, Link, PosixRename, Rename, RenameOver};
        let all = ["size", "create_refuses", "link_creates", "link_refuses", "rename_moves", "rename_refuses", "posix"];
        for (shown, contract, overwrite, form) in [
            (&all[..], &plain, false, Some(Link)),
            (&["size", "link_creates", "rename_moves", "rename_refuses"][..], &plain, false, Some(Rename)),
            (&["size", "link_refuses", "rename_moves", "rename_replaces"][..], &plain, false, None),
            (&["size", "create_refuses"][..], &plain, false, None),
            (&all[..], &hidden, false, Some(Rename)),
            (&["size", "link_creates", "link_refuses"][..], &hidden, false, Some(Link)),
            (&all[..], &hidden, true, Some(PosixRename)),
            (&["size", "create_refuses"][..], &exclusive, false, Some(ExclusiveCreate)),
            (&["create_refuses", "link_creates", "link_refuses"][..], &exclusive, false, None),
            (&["size", "creates_whole", "create_refuses"][..], &plain, false, Some(CreateWhole)),
            (&["size", "creates_whole", "create_refuses"][..], &hidden, false, Some(CreateWhole)),
            (&["size", "creates_whole", "create_refuses"][..], &exclusive, false, Some(CreateWhole)),
            (&["size", "creates_whole"][..], &exclusive, false, None),
            (&["creates_whole", "create_refuses"][..], &exclusive, false, None),
            (&["size", "creates_whole", "create_refuses"][..], &plain, true, None),
            (&all[..], &plain, true, Some(PosixRename)),
            (&["size", "rename_replaces"][..], &plain, true, Some(RenameOver)),
            (&["size", "link_creates", "link_refuses", "rename_refuses"][..], &exclusive, true, None),
        ] {
            assert_eq!(choose_form(&proof(shown), contract, overwrite), form, "{shown:?} {overwrite}");
        }
    }

    #[test]
    fn scratch_names_differ_and_look_like_temporary_files() {
        let ScratchNames(names) =
            ScratchNames::mint(&NamePattern::parse("in/.{attempt}.part").unwrap(), "in/x.csv").unwrap();
        assert!(
            names.iter().all(|name| name.strip_prefix("in/.").and_then(|rest| rest.strip_suffix(".part")).is_some())
        );
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
        assert!(ScratchNames::mint(&NamePattern::parse("in/{key}.part").unwrap(), "in/x.csv").is_err());
    }
}
