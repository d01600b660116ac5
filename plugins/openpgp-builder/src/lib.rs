//! A builder that writes CSV files and encrypts them to the partner's OpenPGP keys.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `recipients` | the public keys of those who may read the file, as armored text, one after the other | must be set |
//! | `armor` | `yes` or `no`: the file is text of 64 characters a line | `no` |
//! | all of `csv-builder` | the file inside; `compress` is what is done to it before it is encrypted | |
//!
//! Each key is judged before anything is written (`keys.rs`). The file is encrypted as it is read (`encrypt.rs`), so a file of any
//! length needs little memory, and it is never in the clear outside of this guest. Its only randomness is the world's
//! (`entropy.rs`): two builds of the same rows differ, and the bundle's cases say `repeatable = false`.
//!
//! The file inside is another builder's, whose sources are used as they are: a plugin cannot depend on a plugin, since both export
//! the same world. Another builder's file is encrypted by naming its sources instead.

#[path = "../../csv-builder/src/options.rs"]
mod options;
#[path = "../../csv-builder/src/table.rs"]
mod table;

mod encrypt;
mod entropy;
mod keys;

use waybill_guest::table::{File, pick};
use waybill_guest::{Builder, Built, Failure, Job, Output};

use crate::encrypt::encrypted;
use crate::entropy::World;
use crate::options::Options;
use crate::table::Csv;

struct OpenPgpBuilder;

impl Builder for OpenPgpBuilder {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        let recipients = keys::recipients(job.required("recipients")?, &job.created_at)?;
        let armor = job.yes_or_no("armor", false)?;
        let options = Options::read(job)?;
        let rows = options.query.open()?;
        let columns = pick(&options.columns, rows.columns(), &options.query.name)?;
        let mut file = File::new(Csv::new(&options, columns), rows);
        match encrypted(options.compression.over(&mut file), &recipients, armor, World, output) {
            Ok(()) => Ok(Built { rows: file.rows() }),
            // What ended the file says more than what encryption made of it.
            Err(failure) => Err(file.into_failure().unwrap_or(failure)),
        }
    }
}

waybill_guest::export_builder!(OpenPgpBuilder);
