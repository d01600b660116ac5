//! The record of one attempt, kept with the store: both fences of the sequence are statements here.
//!
//! Every write names the job and the attempt. What a lost answer means is settled in the store; what could not be
//! settled is passed on as such, and the attempt then writes nothing more to the row.

use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use super::keeper::Held;
use super::pause::Pauses;
use crate::attempt::{
    Authorization, Delivered, Earlier, End, KeyHistory, Known, NotRecorded, Place, Record, Release, Terminal,
};
use crate::job::contract::Contract;
use crate::job::evidence::{Answer, Evidence, PublishForm};
use crate::job::facts::FileFacts;
use crate::job::on_record::AttemptOnRecord;
use crate::job::remedy::Remedy;
use crate::job::status::{FailureReason, Status};
use crate::job::verdict::Conclusion;
use crate::remote::{Check, Fence, FenceRefused, Journal, ServerFacts};
use crate::store::{self, CheckedServer, DeliveryOutcome, FinishedCheck, Pool, Released, Showed, StoreError, Write};

/// How long the look of an earlier attempt is kept from others while its temporary file is removed.
const FENCING: Duration = Duration::from_secs(120);

/// Lengths and bounds of this worker's attempts.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Attempts of a job before it is given up.
    pub max_attempts: i32,
    /// Wait before the wake-up of a job that was handed back, doubled with each attempt.
    pub first_backoff: Duration,
    pub longest_backoff: Duration,
    /// When an unknown outcome is first looked at again.
    pub look_after: Duration,
}

/// One attempt's record.
pub struct JobRecord {
    pub pool: Pool,
    pub worker: String,
    pub job: Uuid,
    pub attempt: Uuid,
    pub attempt_count: i32,
    /// On a replacement.
    pub original: Option<Uuid>,
    pub destination: Uuid,
    /// Digest of what a check of the destination depends on, as this attempt has it.
    pub checked: String,
    pub contract: Contract,
    pub bounds: Bounds,
    pub lease: Held,
    pub pauses: Pauses,
    /// The destination could not be reached lately: reaching it ends its pause.
    pub was_paused: bool,
}

impl Fence for JobRecord {
    fn intend(&self, form: PublishForm) -> BoxFuture<'_, Result<(), FenceRefused>> {
        Box::pin(async move {
            match store::intend_publish(&self.pool, self.job, self.attempt, form).await {
                Ok(Write::Written(())) => {
                    tracing::info!(job = %self.job, attempt = %self.attempt, ?form, "publish intended");
                    Ok(())
                }
                Ok(Write::Refused(found)) => Err(FenceRefused {
                    why: format!("the job is {} and no longer this attempt's to publish", found.status),
                }),
                Ok(Write::Absent) => Err(FenceRefused { why: "the job is not there".to_owned() }),
                // Whether it was written cannot be told: without a committed fence nothing is sent.
                Err(error) => Err(FenceRefused { why: chain(&error) }),
            }
        })
    }
}

impl Journal for JobRecord {
    fn published(&self, form: PublishForm, answer: &Answer) -> BoxFuture<'_, ()> {
        let evidence = Evidence::Publish { form, answer: answer.clone() };
        Box::pin(async move {
            if let Err(error) = self.append(&evidence).await {
                // The attempt concludes from the answer itself. Without this record a later look finds the publish unanswered.
                tracing::error!(job = %self.job, attempt = %self.attempt, %error, "the publish's answer could not be recorded");
            }
        })
    }
}

impl Record for JobRecord {
    fn authorize<'a>(&'a self, expected: &'a FileFacts, place: &'a Place) -> BoxFuture<'a, Authorization> {
        Box::pin(async move {
            let delivery = store::Delivery {
                job: self.job,
                attempt: self.attempt,
                expected: expected.clone(),
                endpoint: place.endpoint.clone(),
                directory: place.directory.clone(),
                last_part: place.last_part.clone(),
                reused: place.reused,
            };
            match store::authorize_delivery(&self.pool, delivery).await {
                Ok(store::Authorization::Authorized) => {
                    tracing::info!(job = %self.job, attempt = %self.attempt, from = "Running", to = "Delivering", "delivery authorized");
                    Authorization::Authorized
                }
                Ok(store::Authorization::StopRecorded) => Authorization::StopRecorded,
                Ok(store::Authorization::LeaseLapsed) => Authorization::LeaseLapsed,
                Ok(store::Authorization::NotOwner(_) | store::Authorization::Absent) => Authorization::NotOwner,
                Ok(store::Authorization::OriginalCompleted) => Authorization::OriginalCompleted,
                Ok(store::Authorization::NameTaken { holder }) => Authorization::NameTaken { holder },
                Ok(store::Authorization::DiffersFromEarlier { .. }) => Authorization::Moved,
                Err(error) => Authorization::Unknown { why: chain(&error) },
            }
        })
    }

    fn renew_now(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.lease.renew_now())
    }

    fn append<'a>(&'a self, evidence: &'a Evidence) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async move {
            match store::append_evidence(&self.pool, self.job, self.attempt, &self.worker, evidence).await {
                Ok(Write::Written(_)) => Ok(()),
                Ok(Write::Refused(_) | Write::Absent) => {
                    Err(NotRecorded { why: "the job or the attempt is not there".to_owned() })
                }
                Err(error) => Err(not_recorded(&error)),
            }
        })
    }

    fn history<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Result<KeyHistory, NotRecorded>> {
        Box::pin(async move {
            let place = store::FinalPlace {
                endpoint: &place.endpoint,
                directory: &place.directory,
                last_part: &place.last_part,
            };
            let history = store::key_history_at(&self.pool, self.job, self.attempt, place)
                .await
                .map_err(|error| not_recorded(&error))?;
            Ok(KeyHistory { others: history.others, past_fence: history.past_fence, last: history.last })
        })
    }

    fn original(&self) -> BoxFuture<'_, Result<Option<AttemptOnRecord>, NotRecorded>> {
        Box::pin(async move {
            let Some(original) = self.original else { return Ok(None) };
            let found = store::find_job(&self.pool, original).await.map_err(|error| not_recorded(&error))?;
            let Some(attempt) = found.and_then(|job| job.attempt) else { return Ok(None) };
            let on_record = store::attempt_on_record(&self.pool, original, attempt).await;
            Ok(on_record.map_err(|error| not_recorded(&error))?.filter(|on_record| on_record.expected.is_some()))
        })
    }

    fn open_earlier_attempts(&self) -> BoxFuture<'_, Result<Vec<Earlier>, NotRecorded>> {
        Box::pin(async move {
            let open =
                store::open_earlier_attempts(&self.pool, self.job).await.map_err(|error| not_recorded(&error))?;
            let mut earlier = Vec::with_capacity(open.len());
            for (job, attempt) in open {
                let on_record = match attempt {
                    None => None,
                    Some(attempt) => store::attempt_on_record(&self.pool, job, attempt)
                        .await
                        .map_err(|error| not_recorded(&error))?
                        .filter(|on_record| on_record.status.is_terminal()),
                };
                earlier.push(Earlier { job, on_record });
            }
            Ok(earlier)
        })
    }

    fn intend_removal<'a>(
        &'a self,
        earlier: &'a AttemptOnRecord,
        temporary: &'a str,
    ) -> BoxFuture<'a, Result<Option<Uuid>, NotRecorded>> {
        let token = Uuid::new_v4();
        Box::pin(async move {
            let fencing = store::Fencing {
                job: self.job,
                attempt: self.attempt,
                earlier_job: earlier.job.id,
                earlier_attempt: earlier.job.attempt,
                temporary: temporary.to_owned(),
                worker: self.worker.clone(),
                lease: FENCING,
                token,
            };
            let written = store::fence_earlier(&self.pool, fencing).await.map_err(|error| not_recorded(&error))?;
            Ok(written.is_written().then_some(token))
        })
    }

    fn removal_answered<'a>(
        &'a self,
        earlier: &'a AttemptOnRecord,
        look: Uuid,
        temporary: &'a str,
        answer: &'a Answer,
    ) -> BoxFuture<'a, Result<(), NotRecorded>> {
        let evidence = Evidence::RemovalAnswered { temporary: temporary.to_owned(), answer: answer.clone() };
        Box::pin(async move {
            let (job, attempt) = (earlier.job.id, earlier.job.attempt);
            let appended = store::append_evidence(&self.pool, job, attempt, &self.worker, &evidence).await;
            // A lease that is not given back runs out.
            if let Err(error) = store::give_back_look(&self.pool, job, attempt, look).await {
                tracing::warn!(%job, %attempt, error = %chain(&error), "the look of an earlier attempt was not given back");
            }
            match appended.map_err(|error| not_recorded(&error))? {
                Write::Written(_) => Ok(()),
                Write::Refused(_) | Write::Absent => {
                    Err(NotRecorded { why: "the earlier attempt is not there".to_owned() })
                }
            }
        })
    }

    fn known<'a>(&'a self, server: &'a ServerFacts) -> BoxFuture<'a, Result<Option<Known>, NotRecorded>> {
        Box::pin(async move {
            let found = store::find_check(&self.pool, self.destination, &self.checked, &server.fingerprint()).await;
            let Some(Showed { proof, seen }) = found.map_err(|error| not_recorded(&error))? else { return Ok(None) };
            // What this version cannot read is not known: the server is checked again.
            let (proof, seen) = (serde_json::from_value(proof), serde_json::from_value(seen));
            Ok(proof.ok().zip(seen.ok()).map(|(proof, seen)| Known { proof, seen: Some(seen) }))
        })
    }

    fn attention<'a>(&'a self, why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.pauses.needs_attention(self.destination, why).await })
    }

    fn keep_check<'a>(
        &'a self,
        server: &'a ServerFacts,
        checked: Result<&'a Check, &'a String>,
    ) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async move {
            let unwritable = |error: serde_json::Error| NotRecorded { why: error.to_string() };
            let facts = serde_json::to_value(server).map_err(unwritable)?;
            let result = match checked {
                Ok(Check { proof, seen }) => Ok(Showed {
                    proof: serde_json::to_value(proof).map_err(unwritable)?,
                    seen: serde_json::to_value(seen).map_err(unwritable)?,
                }),
                Err(problem) => Err(problem.clone()),
            };
            let check = FinishedCheck {
                destination: self.destination,
                checked: self.checked.clone(),
                requested_by: self.worker.clone(),
                server: Some(CheckedServer { facts, fingerprint: server.fingerprint() }),
                result,
            };
            store::keep_check(&self.pool, check).await.map(drop).map_err(|error| not_recorded(&error))
        })
    }

    fn finish<'a>(&'a self, end: &'a End) -> BoxFuture<'a, Terminal> {
        Box::pin(async move {
            let terminal = self.write(end).await;
            // Right after the last write, so that no renewal takes it for a loss.
            self.lease.finish().await;
            match &terminal {
                Terminal::Written(status) => {
                    tracing::info!(job = %self.job, attempt = %self.attempt, to = %status, why = %in_words(end), "attempt ended");
                }
                Terminal::NotOwner => {
                    tracing::warn!(job = %self.job, attempt = %self.attempt, why = %in_words(end), "the job was taken over; its row was left alone");
                }
                Terminal::Unwritten { why } => {
                    tracing::error!(job = %self.job, attempt = %self.attempt, why, "the attempt ended unwritten; recovery takes it from here");
                }
            }
            terminal
        })
    }
}

impl JobRecord {
    async fn write(&self, end: &End) -> Terminal {
        match end {
            End::Nothing { why } => Terminal::Unwritten { why: why.clone() },
            End::Stopped { during } => {
                terminal(self.attempt, store::finish_stopped(&self.pool, self.job, self.attempt, during).await, |()| {
                    Status::Stopped
                })
            }
            End::Failed { reason, cause } => terminal(
                self.attempt,
                store::finish_failed(&self.pool, self.job, self.attempt, *reason, cause).await,
                |()| Status::Failed,
            ),
            End::Released(release) => self.release(release).await,
            End::Delivered(delivered) => self.delivered(delivered).await,
        }
    }

    async fn release(&self, release: &Release) -> Terminal {
        let (why, backoff) = match release {
            Release::Partner(error) => {
                if error.needs_attention() {
                    self.pauses.needs_attention(self.destination, &error.to_string()).await;
                } else {
                    self.pauses.unreachable(self.destination, self.job).await;
                }
                (error.to_string(), self.backoff())
            }
            Release::LookFailed { why } => {
                self.pauses.unreachable(self.destination, self.job).await;
                (why.clone(), self.backoff())
            }
            Release::Host { why, remedy } => {
                match remedy {
                    Remedy::Person => self.pauses.needs_attention(self.destination, why).await,
                    Remedy::Reachable => self.pauses.unreachable(self.destination, self.job).await,
                    Remedy::AnotherAttempt => {}
                }
                (why.clone(), self.backoff())
            }
            Release::Attention { why } => {
                self.pauses.needs_attention(self.destination, why).await;
                (why.clone(), self.backoff())
            }
            // Nothing is wrong with the partner: another host may go on at once.
            Release::ShuttingDown => ("the host is shutting down".to_owned(), Duration::ZERO),
        };
        let release = store::Release {
            job: self.job,
            attempt: self.attempt,
            worker: self.worker.clone(),
            why,
            backoff,
            max_attempts: self.bounds.max_attempts,
        };
        terminal(self.attempt, store::release(&self.pool, release).await, |released| match released {
            Released::Queued => Status::Queued,
            Released::Stopped => Status::Stopped,
            Released::AttemptsExhausted => Status::Failed,
        })
    }

    fn backoff(&self) -> Duration {
        let doublings = u32::try_from(self.attempt_count.saturating_sub(1)).unwrap_or(0).min(16);
        self.bounds.first_backoff.saturating_mul(1 << doublings).min(self.bounds.longest_backoff)
    }

    async fn delivered(&self, delivered: &Delivered) -> Terminal {
        let (outcome, proof) = match delivered {
            Delivered::Concluded(conclusion) => {
                let outcome = match conclusion {
                    Conclusion::Completed(_) => DeliveryOutcome::Completed,
                    Conclusion::NotDelivered(_) => DeliveryOutcome::Failed(FailureReason::NotDelivered),
                    Conclusion::Unknown(_) => DeliveryOutcome::OutcomeUnknown,
                };
                (outcome, serde_json::json!({ "code": conclusion.code(), "because": conclusion.sentence() }))
            }
            Delivered::Occupied { cause } => {
                (DeliveryOutcome::Failed(FailureReason::FinalNameOccupied), serde_json::json!({ "because": cause }))
            }
            Delivered::OriginalThere { cause } => {
                (DeliveryOutcome::Failed(FailureReason::OriginalDelivered), serde_json::json!({ "because": cause }))
            }
        };
        let acknowledgment_within = self.contract.acknowledgment.as_ref().map(|acknowledgment| acknowledgment.period);
        let finish = store::Finish {
            job: self.job,
            attempt: self.attempt,
            outcome,
            proof,
            look_after: self.contract.settle.unwrap_or_default().max(self.bounds.look_after),
            acknowledgment_within,
        };
        let written = store::finish_delivery(&self.pool, finish).await;
        if self.was_paused && matches!(written, Ok(Write::Written(()))) {
            self.pauses.reached(self.destination).await;
        }
        terminal(self.attempt, written, |()| outcome.status())
    }
}

fn terminal<T>(attempt: Uuid, written: Result<Write<T>, StoreError>, status: impl FnOnce(T) -> Status) -> Terminal {
    match written {
        Ok(Write::Written(value)) => Terminal::Written(status(value)),
        // Its line was cut before the commit. The attempt still owns the row, and recovery will find it.
        Ok(Write::Refused(found)) if found.attempt == Some(attempt) && !found.status.is_terminal() => {
            Terminal::Unwritten { why: format!("the last write did not happen, and the job is still {}", found.status) }
        }
        Ok(Write::Refused(_) | Write::Absent) => Terminal::NotOwner,
        Err(error) => Terminal::Unwritten { why: chain(&error) },
    }
}

fn not_recorded(error: &StoreError) -> NotRecorded {
    NotRecorded { why: chain(error) }
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn in_words(end: &End) -> String {
    match end {
        End::Stopped { during } => format!("stopped while {during}"),
        End::Failed { reason, cause } => format!("{reason}: {cause}"),
        End::Released(Release::Partner(error)) => error.to_string(),
        End::Released(Release::LookFailed { why } | Release::Host { why, .. } | Release::Attention { why })
        | End::Nothing { why } => why.clone(),
        End::Released(Release::ShuttingDown) => "the host is shutting down".to_owned(),
        End::Delivered(Delivered::Concluded(conclusion)) => conclusion.sentence().to_owned(),
        End::Delivered(Delivered::Occupied { cause } | Delivered::OriginalThere { cause }) => cause.clone(),
    }
}
