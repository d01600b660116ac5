//! A builder that writes CSV files as RFC 4180 describes them.
//!
//! It writes the rows of one query, and is told the rest by settings (`options.rs` has the list): which columns in which order
//! under which headers, delimiter, line ending, and the encoding. Text is quoted where it must be. What the encoding does not
//! have fails the build, with the row and the column: a partner's file never carries a silent question mark.
//!
//! The way of a row: `table` picks its columns, `text` writes each value as text, the `csv` crate quotes, `charset` encodes.

mod charset;
mod columns;
mod options;
mod table;
mod text;

use waybill_guest::{Builder, Built, Failure, Job, Output, rows};

use crate::options::Options;

struct Csv;

impl Builder for Csv {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let options = Options::read(job)?;
        let rows = rows(&options.query, &options.parameters)?;
        let columns = columns::pick(&options.columns, rows.columns(), &options.query)?;
        let rows = table::write(&options, &columns, rows, |bytes| output.append(bytes))?;
        Ok(Built { rows })
    }
}

waybill_guest::export_builder!(Csv);
