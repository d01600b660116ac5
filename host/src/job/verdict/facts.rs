//! The facts that [`conclude`](super::conclude) weighs: each a small enum, so that every combination can be tried.

/// One property of a file against what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compared {
    Same,
    Different,
    /// The server did not show it. That is no match.
    NotShown,
}

/// How an attempt gives its file the final name, by what that means for evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A link, then the removal of the temporary: two steps always.
    Link,
    /// A rename that refuses an existing name; `one_step` where the contract promises that the server renames so.
    Rename { one_step: bool },
    /// There is no temporary, and the name is there before the file is whole.
    ExclusiveCreate,
    /// There is no temporary, and the name is there with the whole file or not at all.
    CreateWhole,
    /// A rename that replaces, by agreement; `one_step` as above.
    Over { one_step: bool },
}

/// What the journal proves about the one publish request of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Publish {
    /// No request was sent, and none will be.
    NeverSent,
    Acknowledged(Form),
    Refused(Form),
    /// Sent, or possibly sent, and no answer that can be trusted.
    Unanswered(Form),
}

/// What the partner said about this delivery, as read and matched by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Acceptance {
    None,
    /// Accepted, and it names this attempt, or its content where no other authorized attempt had the same.
    Tied,
    /// Accepted, and it names only the delivery key; `sole`: exactly one attempt of the key ever passed the fence.
    KeyOnly {
        sole: bool,
    },
    /// Accepted under this key, but with a checksum that no authorized attempt of the key had.
    OtherContent,
    Refused,
    /// "We had this before."
    Duplicate,
}

impl Acceptance {
    /// The partner accepted this delivery, as far as a record can tell it from others of the key.
    pub const fn is_of_the_delivery(self) -> bool {
        matches!(self, Self::Tied | Self::KeyOnly { sole: true })
    }
}

/// What the host's own looks showed at the final name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalName {
    Absent,
    Present {
        size: Compared,
        checksum: Compared,
    },
    /// The server does not let us see; not the same as absent.
    NotVisible,
    /// No look, a look that failed, or one that came too early to count.
    Unknown,
}

/// The recorded baseline, and how the final name compares with it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Baseline {
    Absent,
    Present(Since),
    NotVisible,
    /// None was recorded, or its look failed.
    Unknown,
}

/// What happened to a file that the baseline showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Since {
    /// Everything that was shown then and now is the same, and it was enough to tell.
    Unchanged,
    /// Its modification time, by the partner's clock, is strictly newer than the baseline's.
    Newer,
    /// It is another one, or it is gone, but no newer time shows it.
    Changed,
    /// Too little is shown to tell.
    NotShown,
}

/// What the host's own look showed at the temporary name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Temporary {
    /// Gone, and not by our removal; `read_back`: it was closed and its expected size read back before the publish.
    Gone { read_back: bool },
    /// There, with the expected size.
    Whole,
    /// There, with another size or one that is not shown.
    There,
    /// No temporary in this form, not visible, not looked at, or removed by us: its absence says nothing.
    NotShown,
}

/// The trigger files that the contract names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    NoneAgreed,
    /// Each was acknowledged by the partner's server.
    Confirmed,
    NotConfirmed,
}

/// Whether another attempt of the key, or of a reused name, was ever authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Others {
    None,
    /// Yes, each with other content.
    OtherContent,
    /// Yes, and one had the same content, or what it had is not known: a checksum cannot tell them apart.
    SameContent,
}

/// The contract's words that conclusions rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is one word of a contract, promised or not")]
pub struct Promises {
    /// Final names appear only whole.
    pub publishes_whole: bool,
    /// Name and size are enough to identify a delivery.
    pub name_and_size_identify: bool,
    /// A strictly newer time proves an overwrite.
    pub time_proves_overwrite: bool,
    /// The partner may take a file at once.
    pub collects: bool,
    /// Final names stay visible at least until after the latest look.
    pub keeps_covers: bool,
}

/// Everything that a conclusion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    pub publish: Publish,
    pub acceptance: Acceptance,
    pub final_name: FinalName,
    pub trigger: Trigger,
    pub baseline: Baseline,
    pub others: Others,
    pub temporary: Temporary,
    pub promises: Promises,
}

impl Form {
    /// True for the forms that replace an existing file.
    pub const fn overwrites(self) -> bool {
        match self {
            Self::Over { .. } => true,
            Self::Link | Self::Rename { .. } | Self::ExclusiveCreate | Self::CreateWhole => false,
        }
    }
}

impl Facts {
    /// True where the publish on record, whatever became of it, was one that replaces a file.
    pub const fn publish_overwrites(&self) -> bool {
        match self.publish {
            Publish::NeverSent => false,
            Publish::Acknowledged(form) | Publish::Refused(form) | Publish::Unanswered(form) => form.overwrites(),
        }
    }
}

impl FinalName {
    /// True where a file is there that is not the expected one.
    pub const fn differs(self) -> bool {
        match self {
            Self::Present { size, checksum } => {
                matches!(size, Compared::Different) || matches!(checksum, Compared::Different)
            }
            Self::Absent | Self::NotVisible | Self::Unknown => false,
        }
    }
}

/// Short, because the golden tables print it thousands of times: `Present(size/checksum)`.
impl std::fmt::Debug for FinalName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("Absent"),
            Self::Present { size, checksum } => write!(f, "Present({size:?}/{checksum:?})"),
            Self::NotVisible => f.write_str("NotVisible"),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}
