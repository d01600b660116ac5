//! `waybill job`: what operators do with jobs, on the database, for those who hold its logins.
//!
//! A command is a file. Each asks the store for one transition and says what came of it; what is true to say of a state
//! is `explain`'s.

mod arguments;
mod cancel;
mod correct;
mod create;
mod decide;
mod edit;
mod list;
mod reconcile;
mod replace;
mod show;
mod watch;

use super::Ended;
use super::output::Output;
use crate::app;
use crate::config::Config;
use crate::job::status::Role;

#[derive(Debug, clap::Subcommand)]
pub(super) enum JobCommand {
    /// Create a job: one export, one file, to be delivered once.
    #[command(
        after_help = "Example:\n  waybill job create --tenant 6f1… --destination 0b2… --scope region=emea --as ada@example.com\n  \
waybill job create --tenant 6f1… --destination 0b2… --scope region=emea --as ada@example.com --idempotency-key order-4711\n\n\
With --idempotency-key the same command sent twice makes one job and prints the same job.\n\n\
Exit code 0: created; 3: there is no such destination; 4: the delivery key is taken (the answer names the job that has it), or the idempotency key was used for another\n\
request; 5: a request with one of them is still in flight, send it again."
    )]
    Create(create::Create),
    /// List a tenant's jobs, newest first.
    #[command(after_help = "Example:\n  waybill job list --tenant 6f1… --status OutcomeUnknown --status Failed\n  \
waybill job list --tenant 6f1… --key spring-4711\n\n\
Exit code 0: listed, also where there is none; 3: there is no such destination.")]
    List(list::List),
    /// Show one job as its row stands.
    #[command(after_help = "Example:\n  waybill job show 018f… --tenant 6f1…\n\n\
Exit code 0: shown; 3: there is no such job.")]
    Show(show::One),
    /// Tell a job's story from its events, in plain words: what happened, what may be said to the partner, what can be done.
    #[command(after_help = "Example:\n  waybill job explain 018f… --tenant 6f1…\n\n\
Exit code 0: told; 3: there is no such job.")]
    Explain(show::One),
    /// Follow a job's story until it is settled.
    ///
    /// Prints each event as `explain` tells it, as it comes. An unknown outcome is not settled: it goes on until evidence or a
    /// person has settled it.
    #[command(after_help = "Example:\n  waybill job watch 018f… --tenant 6f1…\n\n\
With --json, one line an event, and a last one that says where the job stands.\n\
Exit code 0: it is settled; 3: there is no such job; 5: interrupted before.")]
    Watch(watch::Watch),
    /// Edit the terms of a job that is still queued.
    ///
    /// What is not named stays as it is. The edit is for the version that you read: if somebody else edited it, or a worker claimed
    /// it, nothing is changed.
    #[command(
        disable_version_flag = true,
        after_help = "Example:\n  waybill job edit 018f… --tenant 6f1… --version 1 --scope region=apac --no-not-before --as ada@example.com\n\n\
Exit code 0: changed; 3: there is no such job; 4: not changed, with what was found; 5: could not be told, look before you try again."
    )]
    Edit(edit::Edit),
    /// Ask for a job to be canceled, and read the truth about it.
    #[command(
        after_help = "Example:\n  waybill job cancel 018f… --tenant 6f1… --as ada@example.com --reason 'wrong region'\n\n\
Exit code 0: it is canceled, or asked to stop; 3: there is no such job; 4: too late or ended before; 5: could not be told, try again with the same --request-id."
    )]
    Cancel(cancel::Cancel),
    /// Deliver a job's key once more, by a job of its own: a named person's decision.
    ///
    /// For a job that is `OutcomeUnknown`, or Failed with `BuildFailed`, `AttemptsExhausted` or `NotDelivered`, after
    /// reconciliation was tried, and only if a second arrival does no harm at the partner. The replacement has the same delivery key and destination; it
    /// looks before it sends, and never overwrites without an agreement. A replacement is not replaced itself: its original is.
    #[command(
        after_help = "Example:\n  waybill job replace 018f… --tenant 6f1… --reason 'the partner lost its inbox' --as ada@example.com\n\n\
Exit code 0: created; 3: there is no such job; 4: refused, with the reason; 5: could not be told, or the original moved: look and try again."
    )]
    Replace(replace::Replace),
    /// Settle an unknown outcome by hand, once and for good: a named person's decision.
    #[command(
        after_help = "Example:\n  waybill job reconcile 018f… --tenant 6f1… --outcome completed --reason 'their import log names the file' \
--evidence 'ticket 4711' --as ada@example.com\n\n\
Exit code 0: recorded (or shown, with --dry-run); 3: there is no such job; 4: refused, with the reason; 5: could not be told, look before \
you try again."
    )]
    Reconcile(reconcile::Reconcile),
    /// Correct a recorded outcome that later evidence contradicts, once: a named person's decision.
    ///
    /// It mends the record. It moves no file and starts no work.
    #[command(
        after_help = "Example:\n  waybill job correct 018f… --tenant 6f1… --from failed --to completed --reason 'found in their archive' \
--evidence 'ticket 4711' --as ada@example.com\n\n\
Exit code 0: recorded (or shown, with --dry-run); 3: there is no such job; 4: refused, with the reason; 5: could not be told, look before \
you try again."
    )]
    Correct(correct::Correct),
}

impl JobCommand {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let pool = app::connect(config, embedded, self.role()).await?;
        let ended = match self {
            Self::Create(command) => command.run(&pool, output).await,
            Self::List(command) => command.run(&pool, output).await,
            Self::Show(command) => command.show(&pool, output).await,
            Self::Explain(command) => command.explain(&pool, output).await,
            Self::Watch(command) => command.run(&pool, output).await,
            Self::Edit(command) => command.run(&pool, output).await,
            Self::Cancel(command) => command.run(&pool, output).await,
            Self::Replace(command) => command.run(&pool, output).await,
            Self::Reconcile(command) => command.run(&pool, output).await,
            Self::Correct(command) => command.run(&pool, output).await,
        };
        pool.close().await;
        ended
    }

    /// The login that may do it.
    const fn role(&self) -> Role {
        match self {
            Self::Create(_) | Self::Edit(_) | Self::Cancel(_) | Self::Replace(_) => Role::Api,
            Self::List(_) | Self::Show(_) | Self::Explain(_) | Self::Watch(_) => Role::Reader,
            Self::Reconcile(_) | Self::Correct(_) => Role::Corrector,
        }
    }
}
