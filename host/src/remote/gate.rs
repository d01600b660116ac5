//! The gate: is this call of a plugin allowed for this attempt, now, on this name?
//!
//! A pure state machine that the [`super::Writer`] asks before it does anything, and tells what came of it. It keeps
//! five rules, whatever a plugin does:
//! - only names that are declared or minted by the host exist;
//! - nothing that the partner could act on is created before the publish fence is committed;
//! - after the fence no temporary file is created or written, and only what `send` sent whole is published;
//! - what the contract puts before the data file lies there, or the data file is not published;
//! - at most one publish, and one request for each auxiliary name, is ever sent.
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Ready
//!     Ready --> Sending: send
//!     Sending --> Sent: closed, size read back
//!     Sending --> NotSent: anything else
//!     Sending --> NotMade: certainly no file of ours
//!     Sent --> Publishing: publish (commits the fence)
//!     Sent --> Sent: put, where declared before-publish (commits the fence)
//!     Sent --> Lost: the fence refuses
//!     Publishing --> Lost: the fence refuses
//!     Publishing --> Published: acknowledged
//!     Publishing --> Refused
//!     Publishing --> Unanswered
//!     Publishing --> Withheld: never left
//!     Published --> Published: put
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::RemoteError;
use super::names::Names;
use crate::job::evidence::{Answer, PublishForm};

/// What this attempt may do at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Licence {
    /// Fixed before the fence and never changed.
    pub form: PublishForm,
    /// The job records the partner's agreement to replace a file.
    pub overwrite_agreed: bool,
    /// The recorded baseline showed a file under the final name.
    pub baseline_showed_file: bool,
}

/// One call of a plugin that would change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    MakeDirectory(&'a str),
    Send,
    Publish,
    PublishOver,
    Put(&'a str),
}

/// What must be done before the call's first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Grant {
    /// Nothing: the call creates nothing that the partner could act on, or the fence is committed.
    Go,
    /// Commit the fence, and tell the gate how that ended.
    CommitFenceFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing was sent.
    Ready,
    Sending,
    /// The temporary is whole: closed, and its size read back.
    Sent,
    /// `send` failed; what is left of it is never published.
    NotSent,
    /// `send` failed before it made a file: one under the temporary name is not ours.
    NotMade,
    Publishing,
    Published,
    Refused,
    Unanswered,
    /// The fence was committed, and the publish request provably never left.
    Withheld,
    /// The fence refused: the attempt lost the job.
    Lost,
}

/// The state of one attempt's writing.
#[derive(Debug, Clone)]
pub struct Gate {
    names: Arc<Names>,
    licence: Licence,
    step: Step,
    fence_committed: bool,
    /// A granted call whose end the gate was not told yet.
    busy: bool,
    closed: bool,
    /// Auxiliary names that were asked for, and whether they lie there.
    put: BTreeMap<String, bool>,
}

impl Gate {
    pub fn new(names: Arc<Names>, licence: Licence) -> Self {
        Self {
            names,
            licence,
            step: Step::Ready,
            fence_committed: false,
            busy: false,
            closed: false,
            put: BTreeMap::new(),
        }
    }

    pub fn step(&self) -> Step {
        self.step
    }

    pub fn fence_committed(&self) -> bool {
        self.fence_committed
    }

    /// Allows the call, or says why not. An allowed call must be followed by [`Self::ended`] or one of its kin.
    pub fn ask(&mut self, call: Call<'_>) -> Result<Grant, RemoteError> {
        // Names first: one that is not declared is refused always, with the same words.
        match call {
            Call::MakeDirectory(name) if !self.names.may_make(name) => {
                return Err(RemoteError::forbidden(format!("{} is no directory of a declared name", shown(name))));
            }
            Call::Put(name) if self.auxiliary(name).is_none() => {
                return Err(RemoteError::forbidden(format!("{} is not declared in the manifest", shown(name))));
            }
            Call::MakeDirectory(_) | Call::Put(_) | Call::Send | Call::Publish | Call::PublishOver => {}
        }
        if self.closed {
            return Err(RemoteError::forbidden("the attempt has ended"));
        }
        if self.busy {
            return Err(RemoteError::forbidden("another call of this attempt is still at work"));
        }
        if self.step == Step::Lost {
            return Err(RemoteError::forbidden("the attempt lost the job"));
        }
        let grant = match call {
            Call::MakeDirectory(_) => Grant::Go,
            Call::Send => {
                if self.step != Step::Ready {
                    return Err(RemoteError::forbidden("the file is sent at most once an attempt"));
                }
                self.step = Step::Sending;
                Grant::Go
            }
            Call::Publish | Call::PublishOver => {
                self.may_publish(call == Call::PublishOver)?;
                self.step = Step::Publishing;
                self.fence()
            }
            Call::Put(name) => {
                self.may_put(name)?;
                self.put.insert(name.to_owned(), false);
                self.fence()
            }
        };
        self.busy = true;
        Ok(grant)
    }

    /// The fence was committed.
    pub fn fenced(&mut self) {
        self.fence_committed = true;
    }

    /// The fence was not committed: nothing of the granted call is sent, and nothing is ever sent again.
    pub fn lost(&mut self) {
        self.step = Step::Lost;
        self.busy = false;
    }

    /// `send` ended; `whole` only if the file was closed and its size read back, `made` unless it is certain that we made none.
    pub fn sent(&mut self, whole: bool, made: bool) {
        self.step = match (whole, made) {
            (true, _) => Step::Sent,
            (false, true) => Step::NotSent,
            (false, false) => Step::NotMade,
        };
        self.busy = false;
    }

    /// The publish ended; `None` if its request provably never left.
    pub fn published(&mut self, answer: Option<&Answer>) {
        self.step = match answer {
            Some(Answer::Acknowledged) => Step::Published,
            Some(Answer::Refused { .. }) => Step::Refused,
            Some(Answer::Unanswered { .. }) => Step::Unanswered,
            None => Step::Withheld,
        };
        self.busy = false;
    }

    /// A directory call ended, or one whose effect does not matter any more.
    pub fn ended(&mut self) {
        self.busy = false;
    }

    /// An auxiliary call ended; `there` only if the server said so.
    pub fn put(&mut self, name: &str, there: bool) {
        self.put.insert(name.to_owned(), there);
        self.busy = false;
    }

    /// No further call is allowed; one that is at work goes on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the host itself may remove the temporary file now: never while its publish could still take effect.
    pub fn may_remove_temporary(&self) -> Result<&str, RemoteError> {
        let Some(temporary) = &self.names.temporary else {
            return Err(RemoteError::forbidden("this form has no temporary file"));
        };
        if self.busy {
            return Err(RemoteError::forbidden("a call of this attempt is still at work"));
        }
        match self.step {
            Step::Sent | Step::NotSent | Step::Published | Step::Refused | Step::Withheld | Step::Lost => Ok(temporary),
            Step::Ready | Step::NotMade => Err(RemoteError::forbidden("no temporary file was sent")),
            Step::Sending | Step::Publishing => Err(RemoteError::forbidden("a call of this attempt is still at work")),
            Step::Unanswered => Err(RemoteError::forbidden(
                "the publish was not answered and may still take effect; the reconciler removes the temporary file",
            )),
        }
    }

    fn may_publish(&self, over: bool) -> Result<(), RemoteError> {
        match self.step {
            Step::Sent => {}
            Step::Ready | Step::Sending => return Err(RemoteError::forbidden("the file is not sent yet")),
            Step::NotSent | Step::NotMade => return Err(RemoteError::forbidden("the file was not sent whole")),
            Step::Publishing | Step::Published | Step::Refused | Step::Unanswered | Step::Withheld | Step::Lost => {
                return Err(RemoteError::forbidden("at most one publish is sent an attempt"));
            }
        }
        let lies_there = |name: &String| self.put.get(name) == Some(&true);
        let declared = self.names.auxiliary.iter().filter(|declared| declared.before_publish);
        if let Some(missing) = declared.map(|declared| &declared.name).find(|name| !lies_there(name)) {
            return Err(RemoteError::forbidden(format!(
                "by contract {} lies there before the data file appears, and it was not put",
                shown(missing)
            )));
        }
        match (over, self.licence.form.overwrites()) {
            (false, true) => {
                Err(RemoteError::forbidden("this attempt replaces a file by agreement; its publish is publish-over"))
            }
            (true, _) if !self.licence.overwrite_agreed => {
                Err(RemoteError::forbidden("the job records no agreement to replace a file"))
            }
            (true, _) if !self.licence.baseline_showed_file => {
                Err(RemoteError::forbidden("the baseline showed no file to replace"))
            }
            (true, false) => Err(RemoteError::forbidden("this attempt's form of publishing replaces nothing")),
            (false, false) | (true, true) => Ok(()),
        }
    }

    fn may_put(&self, name: &str) -> Result<(), RemoteError> {
        if self.put.contains_key(name) {
            return Err(RemoteError::forbidden(format!("{} was put already", shown(name))));
        }
        match self.step {
            Step::Published => Ok(()),
            Step::Sent if self.auxiliary(name).is_some_and(|auxiliary| auxiliary.before_publish) => Ok(()),
            Step::Sent => Err(RemoteError::forbidden(format!("{} comes after the publish", shown(name)))),
            Step::Ready | Step::Sending | Step::NotSent | Step::NotMade => {
                Err(RemoteError::forbidden(format!("{} comes after the file was sent", shown(name))))
            }
            Step::Publishing | Step::Refused | Step::Unanswered | Step::Withheld | Step::Lost => {
                Err(RemoteError::forbidden(format!("{} needs an acknowledged publish", shown(name))))
            }
        }
    }

    fn fence(&self) -> Grant {
        if self.fence_committed { Grant::Go } else { Grant::CommitFenceFirst }
    }

    fn auxiliary(&self, name: &str) -> Option<&super::names::AuxiliaryName> {
        self.names.auxiliary.iter().find(|auxiliary| auxiliary.name == name)
    }
}

/// A name from a guest, bounded and quoted.
pub(super) fn shown(name: &str) -> String {
    let short: String = name.chars().take(100).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::names::AuxiliaryName;

    fn gate(form: PublishForm) -> Gate {
        let auxiliary =
            |name: &str, before_publish| AuxiliaryName { name: name.to_owned(), trigger: true, before_publish };
        let names = Names {
            final_name: "in/k.csv".to_owned(),
            temporary: Some("in/.a.part".to_owned()),
            auxiliary: vec![auxiliary("in/k.sum", true), auxiliary("in/k.done", false)],
            acknowledgments: Vec::new(),
            key: "k".to_owned(),
            attempt: "a".to_owned(),
        };
        Gate::new(Arc::new(names), Licence { form, overwrite_agreed: true, baseline_showed_file: true })
    }

    fn at(step: Step) -> Gate {
        Gate {
            step,
            fence_committed: !matches!(step, Step::Ready | Step::Sent | Step::NotSent | Step::NotMade),
            ..gate(PublishForm::Link)
        }
    }

    #[test]
    fn every_call_in_every_step() {
        use Step::{Lost, NotMade, NotSent, Published, Ready, Refused, Sent, Unanswered, Withheld};
        const SUM: Call<'static> = Call::Put("in/k.sum");
        const DONE: Call<'static> = Call::Put("in/k.done");
        const IN: Call<'static> = Call::MakeDirectory("in");
        let fence = Some(Grant::CommitFenceFirst);
        let go = Some(Grant::Go);
        // Step: make-directory, send, publish, put before-publish, put.
        let table = [
            (Ready, [go, go, None, None, None]),
            (Sent, [go, None, fence, fence, None]),
            (NotSent, [go, None, None, None, None]),
            (NotMade, [go, None, None, None, None]),
            (Published, [go, None, None, go, go]),
            (Refused, [go, None, None, None, None]),
            (Unanswered, [go, None, None, None, None]),
            (Withheld, [go, None, None, None, None]),
            (Lost, [None, None, None, None, None]),
        ];
        for (step, expected) in table {
            for (call, expected) in [IN, Call::Send, Call::Publish, SUM, DONE].into_iter().zip(expected) {
                let mut gate = at(step);
                if call == Call::Publish {
                    gate.put("in/k.sum", true);
                }
                assert_eq!(gate.ask(call).ok(), expected, "{call:?} in {step:?}");
            }
        }
    }

    #[test]
    fn plg_04_a_name_that_is_not_declared_is_refused_in_every_step() {
        for step in [Step::Ready, Step::Sent, Step::Published, Step::Lost] {
            for name in ["in/k.csv", "in/.a.part", "in/other", "../in/k.sum", "/in/k.sum", "in//k.sum", "in/k.sum/", ""]
            {
                assert!(matches!(at(step).ask(Call::Put(name)), Err(RemoteError::Forbidden { .. })), "{name}");
            }
            for name in ["", ".", "..", "/", "out", "in/k.csv"] {
                assert!(at(step).ask(Call::MakeDirectory(name)).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn one_call_at_a_time_and_none_after_the_end() {
        let mut gate = gate(PublishForm::Link);
        assert_eq!(gate.ask(Call::Send), Ok(Grant::Go));
        assert!(gate.ask(Call::MakeDirectory("in")).is_err() && gate.ask(Call::Publish).is_err());
        gate.sent(true, true);
        assert_eq!(gate.ask(Call::Put("in/k.sum")), Ok(Grant::CommitFenceFirst));
        gate.fenced();
        gate.put("in/k.sum", true);
        assert!(gate.ask(Call::Put("in/k.sum")).is_err(), "a name is asked for once");
        assert_eq!(gate.ask(Call::Publish), Ok(Grant::Go), "the fence is committed once");
        gate.published(Some(&Answer::Acknowledged));
        gate.close();
        assert!(gate.ask(Call::Put("in/k.done")).is_err());
    }

    #[test]
    fn del_10_what_comes_before_the_data_lies_there_or_the_data_is_not_published() {
        for call in [Call::Publish, Call::PublishOver] {
            let form = if call == Call::Publish { PublishForm::Link } else { PublishForm::PosixRename };
            let mut gate = Gate { step: Step::Sent, ..gate(form) };
            let refused = gate.ask(call);
            assert!(matches!(&refused, Err(RemoteError::Forbidden { why }) if why.contains("in/k.sum")), "{refused:?}");
            // Asked for, and not there.
            assert_eq!(gate.ask(Call::Put("in/k.sum")), Ok(Grant::CommitFenceFirst));
            gate.fenced();
            gate.put("in/k.sum", false);
            assert!(gate.ask(call).is_err() && gate.step() == Step::Sent);
            gate.put("in/k.sum", true);
            assert_eq!(gate.ask(call), Ok(Grant::Go));
        }
    }

    #[test]
    fn a_fence_that_refuses_ends_all_writing() {
        let mut gate = at(Step::Sent);
        gate.put("in/k.sum", true);
        assert_eq!(gate.ask(Call::Publish), Ok(Grant::CommitFenceFirst));
        gate.lost();
        assert!(
            gate.ask(Call::Publish).is_err()
                && gate.ask(Call::Put("in/k.sum")).is_err()
                && gate.ask(Call::Send).is_err()
        );
    }

    #[test]
    fn replacing_needs_agreement_baseline_and_an_overwriting_form() {
        for (form, agreed, showed, allowed) in [
            (PublishForm::PosixRename, true, true, true),
            (PublishForm::RenameOver, true, true, true),
            (PublishForm::PosixRename, false, true, false),
            (PublishForm::PosixRename, true, false, false),
            (PublishForm::Link, true, true, false),
        ] {
            let mut gate = gate(form);
            gate.step = Step::Sent;
            gate.put("in/k.sum", true);
            gate.licence.overwrite_agreed = agreed;
            gate.licence.baseline_showed_file = showed;
            assert_eq!(gate.clone().ask(Call::PublishOver).is_ok(), allowed, "{form:?} {agreed} {showed}");
            assert_eq!(gate.ask(Call::Publish).is_ok(), !form.overwrites());
        }
    }

    #[test]
    fn del_09_the_temporary_stays_while_its_publish_may_take_effect() {
        let removable = [Step::Sent, Step::NotSent, Step::Published, Step::Refused, Step::Withheld, Step::Lost];
        for step in removable {
            assert_eq!(at(step).may_remove_temporary(), Ok("in/.a.part"), "{step:?}");
        }
        for step in [Step::Ready, Step::NotMade, Step::Sending, Step::Publishing, Step::Unanswered] {
            assert!(at(step).may_remove_temporary().is_err(), "{step:?}");
        }
    }
}
