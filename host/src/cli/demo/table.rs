//! The end: one line a job, the stories of two of them, and whether all that was said holds.

use std::fmt::Write as _;

use anyhow::bail;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde::Serialize;

use super::verify::{Claims, Row};
use crate::cli::explain::Story;
use crate::cli::output::Output;

/// Everything that the demo says at its end.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    pub jobs: Vec<Row>,
    /// Files at the partners, all of them accounted for.
    pub files_at_partners: usize,
    pub explained: Vec<Explained>,
    pub statements: usize,
    pub wrong: Vec<String>,
    pub seconds: f32,
}

/// One job's story, and how to have it told again.
#[derive(Debug, Serialize)]
pub(super) struct Explained {
    pub command: String,
    pub story: Story,
}

impl Told {
    pub fn new(jobs: Vec<Row>, files_at_partners: usize, partners: Claims, explained: Vec<Explained>) -> Self {
        let statements = partners.made + jobs.iter().map(|row| row.claims.made).sum::<usize>();
        let of_jobs = jobs.iter().flat_map(|row| row.claims.wrong.iter().cloned());
        let wrong = of_jobs.chain(partners.wrong).collect();
        Self { jobs, files_at_partners, explained, statements, wrong, seconds: 0.0 }
    }

    /// Prints it; an error if anything that it says does not hold.
    pub fn print(&self, output: Output) -> anyhow::Result<()> {
        output.answer(self, || self.text())?;
        if self.wrong.is_empty() {
            return Ok(());
        }
        let mut list = String::new();
        for wrong in &self.wrong {
            // Writing to a string cannot fail.
            let _ = write!(list, "\n  {wrong}");
        }
        bail!("{} of {} statements do not hold:{list}", self.wrong.len(), self.statements)
    }

    fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.table());
        for Explained { command, story } in &self.explained {
            // As above.
            let _ = write!(text, "\n$ {command}\n\n{story}");
        }
        if self.wrong.is_empty() {
            let delivered = self.jobs.iter().filter(|row| row.state == "Completed").count();
            let _ = write!(
                text,
                "\n{} statements were checked and hold: {delivered} of {} jobs delivered, {} files at the partners and each accounted for. {:.0} s.",
                self.statements,
                self.jobs.len(),
                self.files_at_partners,
                self.seconds
            );
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        if table.width().is_none() {
            table.set_width(150);
        }
        table.set_header(["job", "state", "file", "bytes", "evidence"]);
        if let Some(bytes) = table.column_mut(3) {
            bytes.set_cell_alignment(CellAlignment::Right);
        }
        for row in &self.jobs {
            let job = if row.case.is_empty() { row.job.clone() } else { format!("{}\n({})", row.job, row.case) };
            table.add_row([
                job,
                row.state.clone(),
                row.file.clone().unwrap_or_else(|| "–".to_owned()),
                row.bytes.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string()),
                row.evidence.clone(),
            ]);
        }
        table
    }
}
