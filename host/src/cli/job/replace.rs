//! `waybill job replace`: a named person's decision to deliver a key once more.

use uuid::Uuid;

use super::arguments::{Refusal, not_found};
use crate::cli::output::Output;
use crate::cli::words::{job_id, words};
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::store::{self, NewReplacement, OpenAttempt, Pool, ReplacementRefused};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Replace {
    /// The job; for a replacement its original is taken.
    #[arg(value_parser = job_id)]
    job: Uuid,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Why, for the record: also why a second arrival does no harm at the partner.
    #[arg(long, value_name = "WORDS")]
    reason: String,
    /// Your statement that the earlier attempts which are still open can no longer upload, and why. Demanded if one is open.
    #[arg(long, value_name = "WORDS")]
    cannot_upload: Option<String>,
    /// Where the partner's agreement to an overwrite is recorded. Without it nothing is overwritten.
    #[arg(long, value_name = "REF")]
    overwrite_agreement: Option<String>,
    /// You know that the partner has removed the file that the newest look still shows under the final name.
    #[arg(long)]
    file_removed: bool,
    /// Who decides it.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    created_by: String,
}

impl Replace {
    pub async fn run(self, pool: &Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = store::find_tenant_job(pool, self.tenant, self.job).await? else {
            not_found(*output, self.tenant, self.job)?;
            return Ok(Ended::NotFound);
        };
        let original = job.replaces.unwrap_or(job.id);
        if original != job.id {
            output
                .say(&format!("{} is itself a replacement; what is replaced is its original, {original}.", job.id))?;
        }
        if let Some(in_the_way) = self.in_the_way(pool, &job).await? {
            if !self.file_removed {
                return Refusal::new(
                    "FileStillThere",
                    format!(
                        "{in_the_way} Nothing was created. Once they have removed it, say so with --file-removed; or create a new job, with a \
                         key and a name of its own."
                    ),
                )
                .answer(*output, original);
            }
            output.say(&format!("You say that the file has been removed. {in_the_way}"))?;
        }
        // Shown before it is written: what the person's words would have to answer for.
        let open = store::open_attempts(pool, self.tenant, original).await?;
        if self.cannot_upload.is_some() && !open.is_empty() {
            output.say(&format!("You state that these can no longer upload:\n{}", listed(&open)))?;
        }
        let id = Uuid::now_v7();
        let new = NewReplacement {
            id,
            tenant: self.tenant,
            original,
            created_by: self.created_by.clone(),
            reason: self.reason.clone(),
            overwrite_agreement_ref: self.overwrite_agreement.clone(),
            cannot_upload: self.cannot_upload.clone(),
        };
        let refusal = match store::create_replacement(pool, new).await {
            Ok(Ok(())) => {
                self.created(*output, &job, original, id, &open)?;
                return Ok(Ended::Done);
            }
            Ok(Err(ReplacementRefused::NotFound)) => {
                not_found(*output, self.tenant, original)?;
                return Ok(Ended::NotFound);
            }
            Ok(Err(refused)) => self.refusal(pool, &job, original, &refused).await?,
            Err(error) => {
                Refusal::of_error(error, &format!("waybill job explain {original} --tenant {}", self.tenant))?
            }
        };
        refusal.answer(*output, original)
    }

    /// What the replacement would come to while the file lies there that the newest look shows, if it shows one. What the
    /// store refuses anyway is the store's to say.
    async fn in_the_way(&self, pool: &Pool, job: &Job) -> anyhow::Result<Option<String>> {
        let family = explain::Family::read(pool, job).await?;
        let original = family.original(job);
        if !explain::replaceable(original) || family.holder(original.id).is_some() {
            return Ok(None);
        }
        let lies = family.lies(original).filter(|lies| lies.may_be_ours());
        // A file that nothing shows to be the original's may be overwritten, where that is agreed.
        let lies = lies.filter(|lies| lies.what == explain::What::Ours || self.overwrite_agreement.is_none());
        Ok(lies.map(explain::in_the_way))
    }

    fn created(&self, output: Output, job: &Job, original: Uuid, id: Uuid, open: &[OpenAttempt]) -> anyhow::Result<()> {
        let key = &job.delivery_key;
        let overwrites = match &self.overwrite_agreement {
            Some(agreement) => {
                format!("It may overwrite a file under the final name, as agreed in {}", explain::stopped(agreement))
            }
            None => "It overwrites nothing: a file under the final name that is not the original's ends it as Failed/FinalNameOccupied.".to_owned(),
        };
        let sentence = format!(
            "{id} delivers {key} once more. It looks first: if the original's file is at the partner, it sends nothing and ends as \
             Failed/OriginalDelivered. {overwrites}"
        );
        output.answer(
            &serde_json::json!({
                "job": original, "asked_for": job.id, "outcome": "Created", "replacement": id, "delivery_key": key,
                "open_attempts": open.iter().map(|attempt| attempt.attempt).collect::<Vec<_>>(), "sentence": sentence,
            }),
            || format!("Created: {sentence}\nfollow it with: waybill job watch {id} --tenant {}", self.tenant),
        )
    }

    async fn refusal(
        &self,
        pool: &Pool,
        job: &Job,
        original: Uuid,
        refused: &ReplacementRefused,
    ) -> anyhow::Result<Refusal> {
        let said = explain::sentence(&refused.to_string());
        let look = |job: Uuid| format!("waybill job explain {job} --tenant {}", self.tenant);
        Ok(match refused {
            ReplacementRefused::NotFound => Refusal::new("NotFound", said),
            ReplacementRefused::ReasonMissing => Refusal::new("ReasonMissing", format!("{said} Say it with --reason.")),
            ReplacementRefused::IsReplacement { original } => Refusal::again(
                "IsReplacement",
                format!("{said} waybill job replace {original} --tenant {}", self.tenant),
            ),
            ReplacementRefused::NotReplaceable { .. } => Refusal::new(
                "NotReplaceable",
                format!("{said} Nothing was created. What can be done instead: {}", look(original)),
            ),
            ReplacementRefused::SlotTaken => {
                let family = explain::Family::read(pool, job).await?;
                let holder = family.holder(original).map_or_else(
                    || "It has moved meanwhile; try again.".to_owned(),
                    |holder| {
                        let state = explain::state(holder.status, holder.failure_reason);
                        format!("That one is {}, which is {state}: {}", holder.id, look(holder.id))
                    },
                );
                Refusal::new("SlotTaken", format!("{said} {holder}"))
            }
            ReplacementRefused::EarlierAttemptsOpen(open) => Refusal::new(
                "EarlierAttemptsOpen",
                format!(
                    "{said} Nothing was created.\n{}\nWith --cannot-upload WORDS you state, in your name and for the record, that none of these can \
                     bring its file any more, and why: its host is switched off for good, its credential is withdrawn, the partner has closed its \
                     upload. If one still could, the partner may get the file twice.",
                    listed(open)
                ),
            ),
            ReplacementRefused::Moved => Refusal::again("Moved", said),
        })
    }
}

/// One line an attempt.
fn listed(open: &[OpenAttempt]) -> String {
    let lines: Vec<String> = open
        .iter()
        .map(|open| {
            let attempt = open.attempt.map_or_else(
                || format!("job {}, which has no attempt yet", open.job),
                |attempt| format!("attempt {attempt} of job {}", open.job),
            );
            let why = if open.publish_intended {
                "it was to publish, and the removal of its temporary file is not confirmed"
            } else {
                "it has not ended, or the database may have lost that it was to publish"
            };
            format!("  {attempt} ({}): {why}", open.status)
        })
        .collect();
    lines.join("\n")
}
