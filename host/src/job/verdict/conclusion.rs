//! Conclusions and their reasons: a stable code for logic and alerts, and a sentence for people.

use crate::job::status::{FailureReason, Status};

/// What the host concludes about one attempt's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Conclusion {
    Completed(Proof),
    NotDelivered(NotDeliveredProof),
    Unknown(WhyUnknown),
}

/// Declares reasons with their codes and sentences in one place.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $code:literal: $sentence:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $sentence] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The same in plain words.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }
        }
    };
}

reasons! {
    /// The kinds of evidence that complete a delivery.
    Proof {
        AcknowledgedAttempt = "acknowledged_attempt":
            "The partner acknowledged this attempt, or its very content.",
        AcknowledgedKey = "acknowledged_key":
            "The partner acknowledged the delivery key, and this is the only attempt of it that could publish.",
        Checksum = "checksum":
            "The file under the final name has the expected checksum, and it was not there before.",
        Listing = "listing":
            "The final name was absent before and now shows the expected size, and by contract names appear only whole.",
        NameAndSize = "name_and_size":
            "The final name was absent before and now shows the expected size, which by contract identifies the delivery.",
        NewerTime = "newer_time":
            "The replaced file shows the expected size and a strictly newer time, which by contract proves the overwrite.",
        Collected = "collected":
            "The server acknowledged the rename of the whole file, the temporary name is gone, and the partner collects at once.",
    }
}

reasons! {
    /// The proofs that the final name was never written by this attempt.
    NotDeliveredProof {
        NeverSent = "never_sent":
            "No request to publish was sent; whatever is under the final name is not from this attempt.",
        RefusedAndUnchanged = "refused_and_unchanged":
            "The server refused to publish, the final name is as it was before, and our temporary file is still whole.",
        TemporaryRemoved = "temporary_removed":
            "We removed the temporary file before it was published, and the final name is as it was before: the publish \
             that was not answered did not happen and no longer can.",
        NoFence = "no_fence":
            "The attempt lost the job before it was allowed to publish, so it never published and never will.",
    }
}

reasons! {
    /// Why the outcome stays open.
    WhyUnknown {
        PartnerRefused = "partner_refused":
            "The partner says that it refused the delivery.",
        PartnerHadItBefore = "partner_had_it_before":
            "The partner says that it had this delivery before.",
        AcceptedOtherContent = "accepted_other_content":
            "The partner acknowledged this delivery key with a checksum that is not ours.",
        AcknowledgedThoughNeverSent = "acknowledged_though_never_sent":
            "The partner speaks of this delivery, although no request to publish was sent.",
        AcceptedThoughRefused = "accepted_though_refused":
            "The partner acknowledged the delivery, although its server refused to publish it.",
        SizeDiffers = "size_differs":
            "The file under the final name does not have the expected size.",
        ChecksumDiffers = "checksum_differs":
            "The file under the final name does not have the expected checksum.",
        TriggerNotConfirmed = "trigger_not_confirmed":
            "A trigger file that was agreed with the partner is not confirmed.",
        Interrupted = "interrupted":
            "The delivery was interrupted after the publish was sent; a later look weighs what the partner shows.",
        LookFailed = "look_failed":
            "The final name could not be looked at, or only too early to count.",
        NotVisible = "not_visible":
            "The server does not show the final name, and nothing else proves the delivery.",
        AcknowledgedButAbsent = "acknowledged_but_absent":
            "The server acknowledged the publish, but nothing is under the final name and nothing shows where it went.",
        UnansweredAndAbsent = "unanswered_and_absent":
            "The request to publish was not answered, and nothing is under the final name.",
        BaselineNotKnown = "baseline_not_known":
            "It is not known whether the final name was taken before, so what is there now proves nothing.",
        StillTheBaseline = "still_the_baseline":
            "The file under the final name is still the one from before.",
        OverwriteNotProven = "overwrite_not_proven":
            "A file was there before; only a checksum, an acknowledgment, or a time that the contract accepts can tell them apart.",
        SizeNotShown = "size_not_shown":
            "The server does not show the size of the file under the final name.",
        AnotherAttempt = "another_attempt":
            "Another attempt may have published under this name; what is there cannot be told apart from its file.",
        NotPromisedWhole = "not_promised_whole":
            "The size is as expected, but nothing in the contract makes name and size enough.",
        TemporaryNotGone = "temporary_not_gone":
            "The size is as expected, but our temporary file was not seen to have become it.",
        NotAsBefore = "not_as_before":
            "The server refused to publish, but the final name is not seen to be as it was before.",
        TemporaryNotWhole = "temporary_not_whole":
            "The server refused to publish, but our temporary file is not seen whole, so the refusal proves nothing.",
        NotOneStep = "not_one_step":
            "The server refused to publish, but it publishes in two steps and the file may have been taken between them.",
        StillOwned = "still_owned":
            "The attempt still owns the job, so it may yet publish.",
        Fenced = "fenced":
            "The attempt had passed the publish fence, so it may have published.",
        DatabaseChanged = "database_changed":
            "The database lost or may have lost its last commits, so a missing fence proves nothing.",
    }
}

impl Conclusion {
    /// The stable code of the reason.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Completed(by) => by.as_str(),
            Self::NotDelivered(by) => by.as_str(),
            Self::Unknown(because) => because.as_str(),
        }
    }

    /// The reason in plain words.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Completed(by) => by.sentence(),
            Self::NotDelivered(by) => by.sentence(),
            Self::Unknown(because) => because.sentence(),
        }
    }

    /// The status that records it, with the code that a failure carries.
    pub const fn status(self) -> (Status, Option<FailureReason>) {
        match self {
            Self::Completed(_) => (Status::Completed, None),
            Self::NotDelivered(_) => (Status::Failed, Some(FailureReason::NotDelivered)),
            Self::Unknown(_) => (Status::OutcomeUnknown, None),
        }
    }
}

/// `Completed(listing)`, as the golden tables, events and logs show it.
impl Conclusion {
    /// Every one that there is.
    pub fn all() -> impl Iterator<Item = Self> {
        let completed = Proof::ALL.iter().copied().map(Self::Completed);
        let not_delivered = NotDeliveredProof::ALL.iter().copied().map(Self::NotDelivered);
        completed.chain(not_delivered).chain(WhyUnknown::ALL.iter().copied().map(Self::Unknown))
    }
}

impl std::fmt::Display for Conclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Completed(_) => "Completed",
            Self::NotDelivered(_) => "NotDelivered",
            Self::Unknown(_) => "Unknown",
        };
        write!(f, "{name}({})", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart_and_sentences_end() {
        let all = || {
            let proofs = Proof::ALL.iter().map(|reason| (reason.as_str(), reason.sentence()));
            let not = NotDeliveredProof::ALL.iter().map(|reason| (reason.as_str(), reason.sentence()));
            let unknown = WhyUnknown::ALL.iter().map(|reason| (reason.as_str(), reason.sentence()));
            proofs.chain(not).chain(unknown)
        };
        let codes: std::collections::BTreeSet<_> = all().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), all().count());
        assert!(all().all(|(_, sentence)| sentence.ends_with('.')));
    }
}
