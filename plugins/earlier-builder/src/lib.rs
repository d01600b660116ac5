//! A builder for 0.1.0 of the contract, which stays as it is: a bundle that was handed over must go on working when the host is
//! brought up to date. It is bound directly, because the SDK follows the newest version.
//!
//! It writes the texts of each row of the query `rows`, with commas between, one row a line.

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "builder" });
}

use bindings::waybill::partner::source::{Value, open};
use bindings::waybill::partner::types::{Failure, Job};
use bindings::{Built, File, Guest};

struct Earlier;

impl Guest for Earlier {
    fn build(job: Job, output: &File) -> Result<Built, Failure> {
        let rows = open("rows", &job.scope)?;
        let mut count = 0;
        loop {
            let batch = rows.next(100)?;
            if batch.is_empty() {
                return Ok(Built { rows: count });
            }
            for row in batch {
                let texts: Vec<String> = row.into_iter().map(text).collect();
                output.write(format!("{}\n", texts.join(",")).as_bytes())?;
                count += 1;
            }
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Text(text) => text,
        Value::Integer(integer) => integer.to_string(),
        Value::Null | Value::Boolean(_) | Value::Float(_) | Value::Bytes(_) => String::new(),
    }
}

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
mod export {
    use super::{Earlier, bindings};

    bindings::export!(Earlier with_types_in bindings);
}
