//! Rows of a query, one by one, fetched in batches.

use std::vec::IntoIter;

use crate::bindings::builder::waybill::partner::source;
use crate::{Column, Failure, Setting, Value};

/// Rows that are fetched in one call: fewer cost more calls, more are no faster.
pub const BATCH: u32 = 500;

/// One row, with a value for each column.
pub type Row = Vec<Value>;

/// Opens a query by its configured name. The host binds the tenant by itself.
pub fn rows(query: &str, parameters: &[Setting]) -> Result<Rows, Failure> {
    let rows = source::open(query, parameters)?;
    let columns = rows.columns();
    Ok(Rows { columns, batches: Batches::new(Box::new(move || rows.next(BATCH))) })
}

/// The rows of one query, in its order. After a failure or the end there is nothing more.
pub struct Rows {
    columns: Vec<Column>,
    batches: Batches,
}

impl Rows {
    /// The columns, in the order of each row's values.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

impl Iterator for Rows {
    type Item = Result<Row, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

/// An iterator over single rows, from a function that fetches a batch, or an empty one at the end.
struct Batches {
    fetch: Box<dyn FnMut() -> Result<Vec<Row>, Failure>>,
    batch: IntoIter<Row>,
    ended: bool,
}

impl Batches {
    fn new(fetch: Box<dyn FnMut() -> Result<Vec<Row>, Failure>>) -> Self {
        Self { fetch, batch: Vec::new().into_iter(), ended: false }
    }
}

impl Iterator for Batches {
    type Item = Result<Row, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.batch.next() {
            return Some(Ok(row));
        }
        if self.ended {
            return None;
        }
        match (self.fetch)() {
            Ok(batch) => {
                self.ended = batch.is_empty();
                self.batch = batch.into_iter();
                self.batch.next().map(Ok)
            }
            Err(failure) => {
                self.ended = true;
                Some(Err(failure))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(batches: Vec<Result<Vec<Row>, Failure>>) -> Batches {
        let mut batches = batches.into_iter();
        Batches::new(Box::new(move || batches.next().expect("no fetch after the end")))
    }

    #[test]
    fn batches_become_rows_and_the_end_is_asked_for_once() {
        let row = |number| vec![Value::Integer(number)];
        let mut rows = over(vec![Ok(vec![row(1), row(2)]), Ok(vec![row(3)]), Ok(vec![])]);
        assert_eq!(rows.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), [row(1), row(2), row(3)]);
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn a_failure_ends_the_rows() {
        let mut rows = over(vec![Ok(vec![vec![Value::Null]]), Err(Failure::Stopped)]);
        assert_eq!(rows.next(), Some(Ok(vec![Value::Null])));
        assert_eq!(rows.next(), Some(Err(Failure::Stopped)));
        assert_eq!(rows.next(), None);
    }
}
