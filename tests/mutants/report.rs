//! What was tried, as JSON to go on from and as a table to read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One mutation and the test that failed, if one did.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tried {
    pub statement: String,
    pub predicate: String,
    /// The whole text that was run. Of a changed statement it is another one, which is tried anew.
    pub mutated: String,
    pub caught_by: Option<String>,
}

pub struct Report {
    file: PathBuf,
    tried: Vec<Tried>,
}

impl Report {
    pub fn open(file: PathBuf) -> anyhow::Result<Self> {
        let tried = if file.exists() { serde_json::from_str(&std::fs::read_to_string(&file)?)? } else { Vec::new() };
        Ok(Self { file, tried })
    }

    /// Keeps only these results.
    pub fn keep(&mut self, kept: impl Fn(&Tried) -> bool) {
        self.tried.retain(kept);
    }

    pub fn holds(&self, mutated: &str) -> bool {
        self.tried.iter().any(|tried| tried.mutated == mutated)
    }

    pub fn survivors(&self, chosen: impl Fn(&str) -> bool) -> usize {
        self.tried.iter().filter(|tried| tried.caught_by.is_none() && chosen(&tried.statement)).count()
    }

    /// Written at once, so that an interrupted run loses nothing.
    pub fn add(&mut self, tried: Tried) -> anyhow::Result<()> {
        self.tried.push(tried);
        std::fs::write(&self.file, serde_json::to_vec_pretty(&self.tried)?)?;
        let mut table = "| statement | predicate | caught by |\n| --- | --- | --- |\n".to_owned();
        for Tried { statement, predicate, caught_by, .. } in &self.tried {
            let caught = caught_by.as_deref().unwrap_or("**SURVIVED**");
            table.push_str(&format!("| {statement} | `{}` | {caught} |\n", predicate.replace('|', "\\|")));
        }
        Ok(std::fs::write(self.file.with_extension("md"), table)?)
    }
}
