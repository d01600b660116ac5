//! A destination for partners who want a file under an agreed name, and perhaps a file beside it, before it or after it.
//!
//! The settings are in `names.rs` and `done.rs`, and:
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `make_directories` | `yes` or `no`: make the directories that the names lie in | `no` |
//! | `look_again_seconds` | when a later look is worth it | the host's intervals |
//!
//! What this plugin reports is a report: the host looks by itself, and concludes from what it saw.

mod done;
mod names;

use waybill_guest::{
    Destination, Failure, FileFacts, Found, Job, Listing, Observation, Reader, Receipt, Setting, Writer, log,
};

use crate::done::{Beside, When};

struct Sftp;

impl Destination for Sftp {
    fn final_name(job: &Job) -> Result<String, Failure> {
        names::final_name(job)
    }

    fn deliver(
        job: &Job,
        expected: &FileFacts,
        before: &Listing,
        _auxiliary: &[String],
        look: &Reader,
        send: &Writer,
    ) -> Result<Receipt, Failure> {
        // Everything that a setting can get wrong shows before the first byte is sent.
        let first = Beside::of(job, expected, When::Before)?;
        let done = Beside::of(job, expected, When::Done)?;
        if job.yes_or_no("make_directories", false)? {
            let beside = first.iter().chain(&done).map(|file| file.name.as_str());
            make_directories(std::iter::once(expected.name.as_str()).chain(beside), send)?;
        }

        send.send()?;
        // What the partner expects before the data file must be there, or the data file does not come.
        let mut put_first = None;
        if let Some(first) = first
            && first.put_or_find(look, send)?
        {
            put_first = Some(first.name);
        }
        // A present file reaches this call only where the host found an agreement to overwrite it, and the host checks again.
        match before.found {
            Found::Present(_) => send.publish_over()?,
            Found::Absent | Found::NotVisible(_) | Found::Other(_) => send.publish()?,
        }

        // The file is published: from here on a failure is worth a note, and the look is worth more.
        let put = done.as_ref().map(|done| done.put(send));
        let mut receipt = Receipt::of(look.list(&expected.name)?);
        receipt.auxiliary.extend(put_first);
        match done.zip(put) {
            None => {}
            Some((done, Ok(()))) => receipt.auxiliary.push(done.name),
            Some((_, Err(Failure::Stopped))) => return Err(Failure::Stopped),
            Some((done, Err(failure))) => {
                log::warn(&format!("the done-file was not written: {failure}"));
                receipt.extra.push(Setting { name: done.setting().to_owned(), value: failure.to_string() });
            }
        }
        Ok(receipt)
    }

    fn observe(
        job: &Job,
        expected: &FileFacts,
        _before: Option<&Listing>,
        _auxiliary: &[String],
        look: &Reader,
    ) -> Result<Observation, Failure> {
        let listing = look.list(&expected.name)?;
        Ok(Observation { again_after_seconds: job.parsed("look_again_seconds")?, ..Observation::of(listing) })
    }
}

waybill_guest::export_destination!(Sftp);

/// Makes what is missing. A server's no is not told apart from "it exists": if it matters, the sending fails.
fn make_directories<'a>(names: impl Iterator<Item = &'a str>, send: &Writer) -> Result<(), Failure> {
    let mut made: Vec<&str> = vec![];
    for directory in names.flat_map(names::directories) {
        if made.contains(&directory) {
            continue;
        }
        match send.make_directory(directory) {
            Ok(()) | Err(Failure::Refused(_)) => made.push(directory),
            Err(failure) => return Err(failure.about(directory)),
        }
    }
    Ok(())
}
