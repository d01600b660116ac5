//! The end: one line a job, the stories of two of them, and whether all that was said holds.

use std::fmt::Write as _;

use anyhow::bail;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, presets::UTF8_HORIZONTAL_ONLY,
};
use serde::Serialize;

use super::lost_workers::Proven;
use super::verify::{Claims, Row};
use crate::cli::explain::{Line, Story};
use crate::cli::output::Output;

/// What stands behind the last column.
const EVIDENCE: &str = "
Evidence of a delivered job: the SHA-256 of its file, as OpenSSH's own sftp fetched it from the partner. It is the one that was
authorized, and the one that PostgreSQL computes in SQL from the customers' rows; a file beside it is as agreed, and the
partner's own log shows one publish of the name. No other job published anything, as those logs show, but the one that was
corrected: its file was delivered, and the partner has lost it.
";

/// Everything that the demo says at its end.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    pub jobs: Vec<Row>,
    /// Files at the partners, all of them accounted for.
    pub files_at_partners: usize,
    /// What happened to the second act's jobs.
    pub recounted: Vec<Recounted>,
    /// How many of them lost their worker.
    pub lost: usize,
    /// How many of them a person had to decide about.
    pub persons: usize,
    /// Files that attempts of killed workers have left at the partner under temporary names.
    pub left: usize,
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

/// One job's story, without what can be done next.
#[derive(Debug, Serialize)]
pub(super) struct Recounted {
    pub job: String,
    pub case: String,
    pub state: String,
    pub told: Vec<Line>,
}

impl Told {
    /// The first act, with the jobs that are explained as a whole.
    pub fn new(jobs: Vec<Row>, files_at_partners: usize, partners: Claims, explained: Vec<Explained>) -> Self {
        let statements = partners.made + jobs.iter().map(|row| row.claims.made).sum::<usize>();
        let of_jobs = jobs.iter().flat_map(|row| row.claims.wrong.iter().cloned());
        let wrong = of_jobs.chain(partners.wrong).collect();
        let (recounted, lost, persons, left) = (Vec::new(), 0, 0, 0);
        Self { jobs, files_at_partners, recounted, lost, persons, left, explained, statements, wrong, seconds: 0.0 }
    }

    /// The second act.
    pub fn add(&mut self, act: Proven) {
        let Proven { rows, recounted, mut partner, files, left, lost, persons } = act;
        for row in &rows {
            partner.made += row.claims.made;
            partner.wrong.extend(row.claims.wrong.iter().cloned());
        }
        self.statements += partner.made;
        self.wrong.extend(partner.wrong);
        self.jobs.extend(rows);
        self.files_at_partners += files;
        (self.recounted, self.lost, self.persons, self.left) = (recounted, lost, persons, left);
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
        let mut text = format!("\n{}\n{EVIDENCE}", self.table());
        for Recounted { job, case, state, told } in &self.recounted {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{job} ({case}): {state}\n");
            for line in told {
                let _ = writeln!(text, "{}", folded(&line.to_string()));
            }
        }
        for Explained { command, story } in &self.explained {
            // As above.
            let _ = write!(text, "\n$ {command}\n\n{story}");
        }
        if self.wrong.is_empty() {
            let delivered = self.jobs.iter().filter(|row| row.state == "Completed").count();
            let _ = write!(
                text,
                "\n{} jobs lost their worker, and recovery and reconciler settled each of them without a person. {} needed one: a replacement \
                 and a correction.\n\
                 {} statements were checked and hold: {delivered} of {} jobs delivered, {} files at the partners and each accounted for, {} of \
                 them under the temporary names of killed workers. {:.0} s.",
                self.lost,
                self.persons,
                self.statements,
                self.jobs.len(),
                self.files_at_partners,
                self.left,
                self.seconds
            );
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        let lines = UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());
        table.load_style(lines).set_content_arrangement(ContentArrangement::Dynamic);
        if table.width().is_none() {
            table.set_width(150);
        }
        table.set_header(["job", "state", "file", "bytes", "evidence"]);
        // Names are copied from here, so they stay on one line.
        for whole in [1, 2, 3] {
            if let Some(column) = table.column_mut(whole) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
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

/// A line of a story, folded where a wide terminal ends, with its time standing out.
fn folded(line: &str) -> String {
    const WIDE: usize = 148;
    const TIME: usize = 24;
    let mut text = String::from(" ");
    let mut width = 1;
    for word in line.split(' ') {
        let letters = word.chars().count();
        if width + 1 + letters > WIDE {
            text.push('\n');
            text.push_str(&" ".repeat(TIME - 1));
            width = TIME - 1;
        }
        text.push(' ');
        text.push_str(word);
        width += 1 + letters;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_folded_between_words_and_loses_none() {
        let line = format!("2026-11-30 09:24:28Z  {}", "what happened ".repeat(30).trim_end());
        let text = folded(&line);
        assert!(text.lines().count() > 1 && text.lines().all(|one| one.chars().count() <= 148), "{text}");
        assert!(text.lines().skip(1).all(|one| one.starts_with(&" ".repeat(24))), "{text}");
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), line.split_whitespace().collect::<Vec<_>>());
    }
}
