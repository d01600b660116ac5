//! `waybill database`: after a restore or failover, what waits for a person, and saying what was lost.

use anyhow::bail;
use uuid::Uuid;

use super::Ended;
use super::output::Output;
use super::words::words;
use crate::app;
use crate::config::Config;
use crate::job::status::Role;
use crate::store::{self, Acceptance, Accepted, LossOf};

#[derive(Debug, clap::Subcommand)]
pub(super) enum DatabaseCommand {
    /// Show which database this is, and how many jobs wait because it is not the one they were written in.
    #[command(after_help = "Example:\n  waybill database show")]
    Show(Show),
    /// Say what a restored or failed-over database lost, so that what waits may move again. Recorded for good.
    #[command(after_help = "Examples:\n  \
waybill database accept --job 018f… --lost 'nothing: the partner confirmed that the file never came' --fences-intact --as ada@example.com\n  \
waybill database accept --all --lost 'at most 30 s before 14:05; partners were asked' --as ada@example.com\n  \
waybill database accept --all --standing --fences-intact --lost 'nothing: the standby is synchronous' --as ada@example.com\n\n\
Without --fences-intact jobs are claimed and requeued again, and an interrupted delivery still counts as unknown although no\n\
record of a publish is there: that record may be what was lost. With it the host takes such a delivery as proven undelivered, and\n\
it may be sent again; a wrong word here sends a file twice. Say it only if no commit was lost, or the partners were asked.\n\n\
Exit code 0: recorded; 3: no such job; 4: nothing waits for it. See first: waybill database show")]
    Accept(Accept),
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {}

#[derive(Debug, clap::Args)]
pub(super) struct Accept {
    /// The one job it is about.
    #[arg(long, value_name = "UUID", conflicts_with = "all")]
    job: Option<Uuid>,
    /// All jobs that were known before.
    #[arg(long, required_unless_present = "job")]
    all: bool,
    /// What was lost, in your words; "nothing" and why, if so.
    #[arg(long, value_name = "WORDS")]
    lost: String,
    /// Who says so.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    accepted_by: String,
    /// No publish fence was lost: that none is recorded proves again that nothing was published.
    #[arg(long)]
    fences_intact: bool,
    /// The standby is synchronous: later failovers of this system are accepted too.
    #[arg(long, conflicts_with = "job")]
    standing: bool,
}

impl DatabaseCommand {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let role = match &self {
            Self::Show(_) => Role::Reader,
            Self::Accept(_) => Role::Corrector,
        };
        let pool = app::connect(config, embedded, role).await?;
        let ended = match self {
            Self::Show(Show {}) => show(&pool, *output).await,
            Self::Accept(command) => command.run(&pool, *output).await,
        };
        pool.close().await;
        ended
    }
}

async fn show(pool: &store::Pool, output: Output) -> anyhow::Result<Ended> {
    let state = store::database_state(pool).await?;
    let held = state.held_back;
    let document = serde_json::json!({
        "system": state.system.to_string(), "timeline": state.timeline, "standing": state.standing,
        "waiting": { "queued": held.queued, "owned": held.owned, "unproven": held.unproven, "total": held.total() },
    });
    output.answer(&document, || {
        let standing = if state.standing { "accepted for good (a synchronous standby)" } else { "wait for a person" };
        let waiting = if held.total() == 0 {
            "nothing".to_owned()
        } else {
            format!(
                "{} jobs, known from another database or timeline: {} queued and not claimed, {} running or delivering and \
                 not taken over, {} of unknown outcome whose missing publish fence proves nothing\n\
                 say what was lost: waybill database accept --help",
                held.total(),
                held.queued,
                held.owned,
                held.unproven
            )
        };
        format!(
            "system     {}\ntimeline   {}\nfailovers  {standing}\nwaiting    {waiting}",
            state.system, state.timeline
        )
    })?;
    Ok(Ended::Done)
}

impl Accept {
    async fn run(self, pool: &store::Pool, output: Output) -> anyhow::Result<Ended> {
        let of = self.job.map_or(LossOf::All { standing: self.standing }, LossOf::Job);
        let acceptance =
            Acceptance { of, fences_intact: self.fences_intact, statement: self.lost, accepted_by: self.accepted_by };
        let about = self.job.map_or_else(|| "all jobs".to_owned(), |job| format!("job {job}"));
        let (ended, outcome, sentence) = match store::accept_loss(pool, acceptance).await? {
            Accepted::Recorded { system, timeline } => (
                Ended::Done,
                "Recorded",
                format!(
                    "{about} may move again on system {system}, timeline {timeline}{}. {}",
                    if self.standing { " and later ones" } else { "" },
                    if self.fences_intact {
                        "A missing publish fence proves again that nothing was published."
                    } else {
                        "A missing publish fence still proves nothing: interrupted deliveries stay unknown until evidence settles them."
                    }
                ),
            ),
            Accepted::NoSuchJob => (Ended::NotFound, "NotFound", format!("there is no {about}; nothing was recorded")),
            Accepted::NothingLost => (
                Ended::Refused,
                "NothingLost",
                format!(
                    "{about}: written on this database's own timeline, so nothing waits for words and nothing was recorded; see waybill database show"
                ),
            ),
            Accepted::WordsMissing => {
                bail!("--lost and --as need words: what was lost, and who says so; nothing was recorded")
            }
        };
        output.answer(&serde_json::json!({ "job": self.job, "outcome": outcome, "sentence": sentence }), || {
            format!("{outcome}: {sentence}")
        })?;
        Ok(ended)
    }
}
