//! A builder that writes CSV files as RFC 4180 describes them.
//!
//! It writes the rows of one query, and is told the rest by settings (`options.rs` has the list): which columns in which order
//! under which headers, delimiter, line ending, and the encoding. Text is quoted where it must be. What the encoding does not
//! have fails the build, with the row and the column: a partner's file never carries a silent question mark.
//!
//! The way of a row: `waybill_guest::table` picks its columns and writes each value as text, the `csv` crate quotes (`table.rs`), and
//! what they made is encoded, and compressed where the settings say so.

mod options;
mod table;

use waybill_guest::table::{pick, write};
use waybill_guest::{Builder, Built, Failure, Job, Output};

use crate::options::Options;
use crate::table::Csv;

struct CsvBuilder;

impl Builder for CsvBuilder {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let options = Options::read(job)?;
        let rows = options.query.open()?;
        let columns = pick(&options.columns, rows.columns(), &options.query.name)?;
        let rows = write(Csv::new(&options, columns), rows, options.compression, output)?;
        Ok(Built { rows })
    }
}

waybill_guest::export_builder!(CsvBuilder);
