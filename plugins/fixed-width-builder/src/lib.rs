//! A builder that writes records of fixed width, as mainframes and their heirs read them.
//!
//! It writes the rows of one query, one record each, and is told the rest by settings (`options.rs` has the list): which columns stand
//! at which width, on which side and filled with what, and a first and a last record with the number of rows. A value that does
//! not fit fails the build with its row and column; only a column that says so is cut.
//!
//! The way of a row: `waybill_guest::table` picks its columns and writes each value as text, `record` fits and encodes it.

mod layout;
mod options;
mod record;

use waybill_guest::table::{pick, write};
use waybill_guest::{Builder, Built, Failure, Job, Output};

use crate::options::Options;
use crate::record::Records;

struct FixedWidthBuilder;

impl Builder for FixedWidthBuilder {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let options = Options::read(job)?;
        let rows = options.query.open()?;
        let columns = pick(&options.columns, rows.columns(), &options.query.name)?;
        let rows = write(Records::new(&options, columns)?, rows, options.compression, output)?;
        Ok(Built { rows })
    }
}

waybill_guest::export_builder!(FixedWidthBuilder);
