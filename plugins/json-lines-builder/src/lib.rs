//! A builder that writes JSON Lines: one object a row and one row a line, in UTF-8.
//!
//! It writes the rows of one query, and is told the rest by settings (`options.rs` has the list): which columns in which order under
//! which keys, what becomes of a missing value, and which columns are numbers. No digit is lost on the way: what the database keeps
//! as an exact number arrives as text, and leaves as text, or with the same digits as a number where the settings say so.
//!
//! The way of a row: `waybill_guest::table` picks its columns, `object` writes it.

mod object;
mod options;

use waybill_guest::table::{named_once, pick, write};
use waybill_guest::{Builder, Built, Failure, Job, Output};

use crate::object::Objects;
use crate::options::Options;

struct JsonLinesBuilder;

impl Builder for JsonLinesBuilder {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let options = Options::read(job)?;
        let rows = options.query.open()?;
        let columns = pick(&options.columns, rows.columns(), &options.query.name)?;
        named_once(&columns)?;
        let rows = write(Objects::new(&options, columns)?, rows, options.compression, output)?;
        Ok(Built { rows })
    }
}

waybill_guest::export_builder!(JsonLinesBuilder);
