//! States of a job, the edges between them by role, and the kinds of events.
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Queued: api
//!     Queued --> Queued: api (edit), recovery (sweep)
//!     Queued --> Canceled: api
//!     Queued --> Rejected: worker
//!     Queued --> Running: worker (cutoff 1)
//!     Running --> Queued: worker (release), recovery
//!     Running --> Stopped: worker, recovery
//!     Running --> Failed: worker, recovery
//!     Running --> Delivering: worker (cutoff 2)
//!     Delivering --> Completed: worker, recovery
//!     Delivering --> Failed: worker
//!     Delivering --> OutcomeUnknown: worker, recovery
//!     OutcomeUnknown --> Completed: reconciler, corrector
//!     OutcomeUnknown --> Failed: reconciler, corrector
//!     Completed --> Failed: corrector
//!     Failed --> Completed: corrector
//! ```

use serde::{Deserialize, Serialize};

/// Declares an enum whose variants are stored under their own names, with both conversions and the list of all.
macro_rules! stored_names {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name under which the database stores it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.as_str()) }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $(stringify!($variant) => Ok(Self::$variant),)+
                    other => Err(UnknownName { kind: stringify!($name), name: other.to_owned() }),
                }
            }
        }
    };
}

/// A stored name that this version of the host does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no {kind} that this version knows")]
pub struct UnknownName {
    pub kind: &'static str,
    pub name: String,
}

stored_names! {
    /// Where a job stands.
    Status {
        /// Waits for cutoff 1; a cancellation that commits first wins.
        Queued,
        /// Claimed: the file is being built. Nothing has left the process.
        Running,
        /// Past cutoff 2: a file may reach the partner.
        Delivering,
        /// Canceled while it was queued.
        Canceled,
        /// Policy said no.
        Rejected,
        /// A recorded stop request won before cutoff 2.
        Stopped,
        /// It is proven that this job's file was not delivered; the reason is a code.
        Failed,
        /// The delivery condition agreed with the partner was met, by evidence.
        Completed,
        /// The file may or may not have been delivered; evidence will settle it.
        OutcomeUnknown,
    }
}

impl Status {
    /// True for states that no worker, recovery or sweeper will move on. `OutcomeUnknown` is settled by evidence only.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Canceled | Self::Rejected | Self::Stopped | Self::Failed | Self::Completed | Self::OutcomeUnknown => {
                true
            }
            Self::Queued | Self::Running | Self::Delivering => false,
        }
    }
}

stored_names! {
    /// Why a job is `Failed`. Codes, so that alerts and logic can rely on them.
    FailureReason { BuildFailed, AttemptsExhausted, NotDelivered, FinalNameOccupied, OriginalDelivered }
}

stored_names! {
    /// What happened to an attempt. Every kind but `DeliveryEvidence` happens at most once an attempt.
    EventKind {
        Claimed, DeliveryAuthorized, PublishIntended, Stopped, Failed, Finished, ReleasedByWorker,
        RequeuedByRecovery, StoppedByRecovery, AttemptsExhausted, ResolvedByRecovery,
        Reconciled, Corrected, DeliveryEvidence,
    }
}

stored_names! {
    /// The outcome of a cancellation request, for what was found under the row lock.
    CancellationOutcome { CanceledWhileQueued, StopRequested, StopAlreadyRequested, AlreadyCanceled, AlreadyEnded, TooLate }
}

/// A database login. A process opens only the pools of the roles that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Owns the schema and migrates it; moves no job.
    Owner,
    /// Creation, cancellation, edits.
    Api,
    /// Attempts.
    Worker,
    /// The outbox.
    Dispatcher,
    /// Takeovers and the sweeper.
    Recovery,
    /// Automatic reconciliation, from `OutcomeUnknown` only.
    Reconciler,
    /// Named persons: corrections, and reconciliation by hand.
    Corrector,
    /// Looks only.
    Reader,
}

impl Role {
    pub const ALL: &'static [Self] = &[
        Self::Owner,
        Self::Api,
        Self::Worker,
        Self::Dispatcher,
        Self::Recovery,
        Self::Reconciler,
        Self::Corrector,
        Self::Reader,
    ];

    /// The login's name, which is the role's own.
    pub const fn login(self) -> &'static str {
        match self {
            Self::Owner => "waybill_owner",
            Self::Api => "waybill_api",
            Self::Worker => "waybill_worker",
            Self::Dispatcher => "waybill_dispatcher",
            Self::Recovery => "waybill_recovery",
            Self::Reconciler => "waybill_reconciler",
            Self::Corrector => "waybill_corrector",
            Self::Reader => "waybill_reader",
        }
    }
}

/// An allowed write of a job's status: by whom, from (`None`: the insert), to. Writes that keep the status are listed too.
pub type Edge = (Role, Option<Status>, Status);

/// Every edge; the table `allowed_transitions` holds the same.
pub const EDGES: &[Edge] = {
    use Role::{Api, Corrector, Reconciler, Recovery, Worker};
    use Status::{Canceled, Completed, Delivering, Failed, OutcomeUnknown, Queued, Rejected, Running, Stopped};
    &[
        (Api, None, Queued),
        (Api, Some(Queued), Queued),
        (Api, Some(Queued), Canceled),
        (Api, Some(Running), Running),
        (Worker, Some(Queued), Rejected),
        (Worker, Some(Queued), Running),
        (Worker, Some(Running), Running),
        (Worker, Some(Running), Queued),
        (Worker, Some(Running), Stopped),
        (Worker, Some(Running), Failed),
        (Worker, Some(Running), Delivering),
        (Worker, Some(Delivering), Delivering),
        (Worker, Some(Delivering), Completed),
        (Worker, Some(Delivering), Failed),
        (Worker, Some(Delivering), OutcomeUnknown),
        (Recovery, Some(Queued), Queued),
        (Recovery, Some(Running), Queued),
        (Recovery, Some(Running), Stopped),
        (Recovery, Some(Running), Failed),
        (Recovery, Some(Delivering), Completed),
        (Recovery, Some(Delivering), OutcomeUnknown),
        (Reconciler, Some(OutcomeUnknown), Completed),
        (Reconciler, Some(OutcomeUnknown), Failed),
        (Corrector, Some(OutcomeUnknown), Completed),
        (Corrector, Some(OutcomeUnknown), Failed),
        (Corrector, Some(Completed), Failed),
        (Corrector, Some(Failed), Completed),
    ]
};

/// Which event kinds a role may insert; the table `allowed_event_kinds` holds the same.
pub const EVENT_KINDS: &[(Role, EventKind)] = {
    use EventKind as K;
    &[
        (Role::Worker, K::Claimed),
        (Role::Worker, K::DeliveryAuthorized),
        (Role::Worker, K::PublishIntended),
        (Role::Worker, K::Stopped),
        (Role::Worker, K::Failed),
        (Role::Worker, K::Finished),
        (Role::Worker, K::ReleasedByWorker),
        (Role::Worker, K::AttemptsExhausted),
        (Role::Worker, K::DeliveryEvidence),
        (Role::Recovery, K::RequeuedByRecovery),
        (Role::Recovery, K::StoppedByRecovery),
        (Role::Recovery, K::AttemptsExhausted),
        (Role::Recovery, K::ResolvedByRecovery),
        (Role::Recovery, K::DeliveryEvidence),
        (Role::Reconciler, K::Reconciled),
        (Role::Reconciler, K::DeliveryEvidence),
        (Role::Corrector, K::Reconciled),
        (Role::Corrector, K::Corrected),
        (Role::Corrector, K::DeliveryEvidence),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>().as_ref(), Ok(status));
        }
        assert_eq!("Sleeping".parse::<Status>().unwrap_err().name, "Sleeping");
    }

    #[test]
    fn every_edge_is_listed_once_and_every_state_can_be_reached() {
        for (index, edge) in EDGES.iter().enumerate() {
            assert!(!EDGES[index + 1..].contains(edge), "{edge:?} is listed twice");
        }
        for status in Status::ALL {
            assert!(
                EDGES.iter().any(|(_, from, to)| to == status && *from != Some(*status)),
                "{status} cannot be reached"
            );
        }
    }
}
