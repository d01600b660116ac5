//! A builder that writes XML documents: a root element, and in it one element a row.
//!
//! It writes the rows of one query, and is told the rest by settings (`options.rs` has the list): the names of root and rows, whether
//! values are elements or attributes, what stands for a missing one, and the encoding. What XML 1.0 cannot carry fails the build
//! with the row, the column and the position: nothing is dropped in silence.
//!
//! The way of a row: `waybill_guest::table` picks its columns and writes each value as text, `escape` makes it content that every
//! parser reads back as the same text, the `quick-xml` crate writes the elements (`document.rs`).

mod document;
mod escape;
mod options;

use waybill_guest::table::{named_once, pick, write};
use waybill_guest::{Builder, Built, Failure, Job, Output};

use crate::document::Document;
use crate::options::Options;

struct XmlBuilder;

impl Builder for XmlBuilder {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let options = Options::read(job)?;
        let rows = options.query.open()?;
        let columns = pick(&options.columns, rows.columns(), &options.query.name)?;
        if options.attributes {
            // Elements may repeat, attributes may not.
            named_once(&columns)?;
        }
        let rows = write(Document::new(&options, columns)?, rows, options.compression, output)?;
        Ok(Built { rows })
    }
}

waybill_guest::export_builder!(XmlBuilder);
