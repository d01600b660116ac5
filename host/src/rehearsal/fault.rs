//! Every fault that a rehearsal places. The lists are made by the macro that makes the enums, so none can be forgotten.

use crate::job::contract::Contract;

/// Declares an enum with the list of its variants, a stable name and words for people.
macro_rules! listed {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $id:literal: $words:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $words] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name, for `--json` and reports.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }

            /// The same in words.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$variant => $words),+ }
            }
        }
    };
}

listed! {
    /// The requests of an attempt, in their order.
    Request {
        Connect = "connect": "opening the session",
        FirstLook = "first-look": "the look at the final name before cutoff 2",
        Baseline = "baseline": "the recorded look after cutoff 2",
        Create = "create": "creating the file that is sent",
        Write = "write": "writing it",
        Close = "close": "closing it",
        ReadBack = "read-back": "reading its size back",
        Link = "link": "the link that publishes it",
        SeeFinal = "see-final": "the look that confirms the link",
        Rename = "rename": "the rename that publishes it",
        Remove = "remove": "removing the temporary name after the link",
        PutCreate = "put-create": "creating a file beside it",
        PutWrite = "put-write": "writing a file beside it",
        PutClose = "put-close": "closing a file beside it",
        LastLook = "last-look": "the look after the publish",
    }
}

listed! {
    /// What goes wrong with a request.
    Trouble {
        Refused = "refused": "the server refuses {}",
        CutBefore = "cut-before": "the line is cut before {}",
        CutDuring = "cut-during": "the line is cut during {}, which still happens",
        CutAfter = "cut-after": "the line is cut after {}",
    }
}

listed! {
    /// Everything else.
    Oddity {
        Plain = "plain": "nothing goes wrong",
        NameTaken = "name-taken": "somebody else's file has the final name",
        NameTakenMeanwhile = "name-taken-meanwhile": "somebody else's file takes the final name while ours is sent",
        AuxiliaryTaken = "auxiliary-taken": "somebody else's file has the name of a file beside ours",
        DiskFull = "disk-full": "the partner's disk is full",
        WrongSize = "wrong-size": "the server shows a wrong size after the close",
        NoSizeUntilClose = "no-size-until-close": "the server shows size 0 until the close",
        HiddenListings = "hidden-listings": "the server shows no names and no sizes",
        CollectsAtOnce = "collects-at-once": "the partner takes the file at once",
        AnswersLate = "answers-late": "the publish is answered late",
        NeverAnswers = "never-answers": "the publish is done and never answered",
        RefusesWhatItDid = "refuses-what-it-did": "the publish is done and answered with a refusal",
        LandsAfterLook = "lands-after-look": "a publish that was cut takes effect only after the host looked again",
        LinkLies = "link-lies": "the server says yes to a link and makes none",
        NoLink = "no-link": "the server has no hard links, and its rename refuses an existing name",
        TwoStepRename = "two-step-rename": "the server has no hard links, and its rename is a link and a removal",
        DiesBetween = "dies-between": "the line is cut between the two steps of such a rename",
        ReplacesOnRename = "replaces-on-rename": "the server's rename replaces an existing name",
        RenameReplacesOnly = "rename-replaces-only": "the server has no hard links, and its rename replaces an existing name",
        NeitherLinkNorRename = "neither-link-nor-rename": "the server has neither links nor renames",
        StopRequested = "stop-requested": "a stop request is recorded before cutoff 2",
        LostBeforeFence = "lost-before-fence": "the job is taken over before the publish",
        LostWhileSending = "lost-while-sending": "the job is taken over while the file is sent",
    }
}

/// One thing that is made to go wrong in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    Odd(Oddity),
    At(Request, Trouble),
}

impl Fault {
    /// Every fault, the plain run first.
    pub fn all() -> Vec<Self> {
        let odd = Oddity::ALL.iter().copied().map(Self::Odd);
        let troubled = |request: Request| {
            let troubles = Trouble::ALL.iter().copied().filter(move |trouble| request.can_have(*trouble));
            troubles.map(move |trouble| Self::At(request, trouble))
        };
        odd.chain(Request::ALL.iter().copied().flat_map(troubled)).collect()
    }

    /// The stable name: `plain`, `cut-after-link`.
    pub fn id(self) -> String {
        match self {
            Self::Odd(oddity) => oddity.id().to_owned(),
            Self::At(request, trouble) => format!("{}-{}", trouble.id(), request.id()),
        }
    }

    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|fault| fault.id() == name)
    }

    /// The same in words.
    pub fn words(self) -> String {
        match self {
            Self::Odd(oddity) => oddity.words().to_owned(),
            Self::At(request, trouble) => trouble.words().replace("{}", request.words()),
        }
    }

    /// Why a partner that keeps this contract cannot do so: what contradicts the contract tests nothing.
    pub fn excluded_by(self, contract: &Contract) -> Option<&'static str> {
        match self {
            Self::Odd(Oddity::CollectsAtOnce) if contract.keeps.is_some() => {
                Some("the contract says that final names stay (keeps_seconds)")
            }
            Self::Odd(Oddity::TwoStepRename | Oddity::DiesBetween) if contract.rename_one_step => {
                Some("the contract says that a rename is one step (rename_one_step)")
            }
            Self::Odd(Oddity::AuxiliaryTaken) if contract.auxiliary.is_empty() => {
                Some("the contract has no files beside the data file")
            }
            Self::Odd(_) | Self::At(..) => None,
        }
    }

    /// True where the attempt is made to lose its job.
    pub fn loses_the_job(self) -> bool {
        matches!(self, Self::Odd(Oddity::LostBeforeFence | Oddity::LostWhileSending))
    }
}

impl Request {
    /// A look, and opening the session, change nothing: being cut during them is being cut before or after.
    const fn can_have(self, trouble: Trouble) -> bool {
        let changes = match self {
            Self::Create
            | Self::Write
            | Self::Close
            | Self::Link
            | Self::Rename
            | Self::Remove
            | Self::PutCreate
            | Self::PutWrite
            | Self::PutClose => true,
            Self::Connect | Self::FirstLook | Self::Baseline | Self::ReadBack | Self::SeeFinal | Self::LastLook => {
                false
            }
        };
        match trouble {
            Trouble::CutDuring => changes,
            // A session whose opening was cut is not open, and of an absent name there is no answer that could be lost alone.
            Trouble::CutAfter => !matches!(self, Self::Connect | Self::FirstLook | Self::Baseline),
            Trouble::Refused | Trouble::CutBefore => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_06_every_fault_has_a_name_of_its_own() {
        let all = Fault::all();
        let names: std::collections::BTreeSet<String> = all.iter().map(|fault| fault.id()).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains("cut-during-link") && names.contains("plain") && !names.contains("cut-during-baseline"));
        assert!(all.iter().all(|fault| Fault::named(&fault.id()) == Some(*fault)));
        assert_eq!(all.first(), Some(&Fault::Odd(Oddity::Plain)));
    }
}
