//! What is seen while the demo runs: a bar for each destination at a terminal, plain lines elsewhere, nothing for scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use uuid::Uuid;

use super::jobs::{Planned, TENANTS};
use crate::cli::output::Output;
use crate::job::model::Job;
use crate::job::status::Status;
use crate::store::{self, JobFilter, Pool};

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The screen.
pub(super) struct Watch {
    output: Output,
    bars: MultiProgress,
}

impl Watch {
    pub fn new(output: Output) -> Self {
        // Bars go to standard error, and hide themselves where that is no terminal.
        let bars = if output.is_json() {
            MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
        } else {
            MultiProgress::new()
        };
        Self { output, bars }
    }

    /// One line, above the bars.
    pub fn tell(&self, text: &str) -> anyhow::Result<()> {
        self.bars.suspend(|| self.output.say(&format!("  {text}")))
    }

    /// A step that takes a moment.
    pub async fn step<T>(&self, doing: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let spinner = self.bars.add(ProgressBar::new_spinner().with_message(doing.to_owned()));
        spinner.enable_steady_tick(LOOK_EVERY);
        let done = work.await;
        spinner.finish_and_clear();
        self.bars.remove(&spinner);
        done
    }

    /// Looks at the jobs until all have ended.
    pub async fn until_all_ended(&self, reader: &Pool, jobs: &[Planned]) -> anyhow::Result<()> {
        let mut bars: BTreeMap<Uuid, ProgressBar> = BTreeMap::new();
        for job in jobs {
            let bar = bars.entry(job.place.id).or_insert_with(|| self.bar(job));
            bar.inc_length(1);
        }
        let mut told: BTreeMap<Uuid, Status> = BTreeMap::new();
        loop {
            let found = all(reader).await?;
            for job in jobs {
                let Some(row) = found.get(&job.id) else { continue };
                if row.status.is_terminal() && told.insert(job.id, row.status).is_none() && self.bars.is_hidden() {
                    self.tell(&format!("{}: {}", job.key, state(row)))?;
                }
            }
            for (destination, bar) in &bars {
                let of_it =
                    || jobs.iter().filter(|job| job.place.id == *destination).filter_map(|job| found.get(&job.id));
                bar.set_position(u64::try_from(of_it().filter(|row| row.status.is_terminal()).count()).unwrap_or(0));
                bar.set_message(counts(of_it()));
            }
            if told.len() == jobs.len() {
                for bar in bars.values() {
                    bar.finish_and_clear();
                    self.bars.remove(bar);
                }
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Takes the bars away, for what is printed at the end.
    pub fn clear(&self) {
        // A terminal that is gone cannot be cleared, and nobody sees that.
        let _ = self.bars.clear();
    }

    fn bar(&self, job: &Planned) -> ProgressBar {
        let tenant = TENANTS.iter().find(|tenant| tenant.id == job.place.tenant).map_or("", |tenant| tenant.name);
        let bar = self.bars.add(ProgressBar::new(0).with_prefix(format!("{} for {tenant}", job.place.name)));
        // Without a usable template the bar has the library's own look.
        if let Ok(style) = ProgressStyle::with_template("  {prefix:30} [{bar:20}] {pos}/{len}  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    }
}

/// Every job of both tenants.
pub(super) async fn all(reader: &Pool) -> anyhow::Result<BTreeMap<Uuid, Job>> {
    let mut found = BTreeMap::new();
    for tenant in &TENANTS {
        let page = store::list_jobs(reader, tenant.id, &JobFilter::default(), None, store::LARGEST_PAGE).await?;
        found.extend(page.jobs.into_iter().map(|job| (job.id, job)));
    }
    Ok(found)
}

/// A job's state, with its reason.
pub(super) fn state(job: &Job) -> String {
    job.failure_reason.map_or_else(|| job.status.to_string(), |reason| format!("{}/{reason}", job.status))
}

fn counts<'a>(rows: impl Iterator<Item = &'a Job>) -> String {
    let mut counts: BTreeMap<Status, u32> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.status).or_default() += 1;
    }
    let words: Vec<String> = counts.into_iter().map(|(status, count)| format!("{count} {status}")).collect();
    words.join(", ")
}
