//! A destination for 0.1.0 of the contract, which stays as it is: a bundle that was handed over must go on working when the
//! host is brought up to date. It is bound directly, because the SDK follows the newest version.
//!
//! The setting `name` is the final name, with `{key}` for the delivery key and `{day}` for the day of the creation time, which
//! 0.1.0 tells as text only. A done-file, `{final}.done`, comes after the data.

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "destination" });
}

use bindings::waybill::partner::types::{Failure, FileFacts, Job};
use bindings::{Guest, Listing, Observation, Reader, Receipt, Writer};

struct Earlier;

impl Guest for Earlier {
    fn final_name(job: Job) -> Result<String, Failure> {
        let name = job.settings.iter().find(|setting| setting.name == "name");
        let Some(name) = name else { return Err(Failure::Invalid("the setting \"name\" is missing".to_owned())) };
        let day = job.created_at.split('T').next().unwrap_or_default();
        Ok(name.value.replace("{key}", &job.delivery_key).replace("{day}", day))
    }

    fn baseline(_: Job, final_name: String, look: &Reader) -> Result<Listing, Failure> {
        listing(look, final_name)
    }

    fn deliver(_: Job, expected: FileFacts, _: Listing, look: &Reader, send: &Writer) -> Result<Receipt, Failure> {
        send.send()?;
        send.publish()?;
        let done = format!("{}.done", expected.name);
        send.put(&done, &[])?;
        let listing = Some(listing(look, expected.name)?);
        Ok(Receipt { listing, acknowledgment: None, auxiliary: vec![done], extra: vec![] })
    }

    fn observe(_: Job, expected: FileFacts, _: Option<Listing>, look: &Reader) -> Result<Observation, Failure> {
        let listing = Some(listing(look, expected.name)?);
        Ok(Observation { listing, acknowledgment: None, again_after_seconds: None, extra: vec![] })
    }
}

fn listing(look: &Reader, name: String) -> Result<Listing, Failure> {
    Ok(Listing { found: look.stat(&name)?, name, sha256: None, extra: vec![] })
}

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
mod export {
    use super::{Earlier, bindings};

    bindings::export!(Earlier with_types_in bindings);
}
