//! A bucket of an object store that speaks S3: Amazon's own, or one of the many that are compatible with it.
//!
//! From the wire up: [`address`] says where the store is; [`trust`] knows whom to believe that it is there; [`wire`] sends one
//! signed request over one connection; [`answers`] says what is known of the effect of a request that failed; [`session`] makes single requests. The client library
//! `object_store` builds requests and reads listings; it has no connection and sends nothing by itself.
//!
//! What is promised:
//! - A file is created by one PUT with `If-None-Match: *`: it appears whole or not at all, and never in place of another, where
//!   the store keeps that condition. Some take it and replace all the same: `waybill partner check` and every proof find those
//!   out on scratch names, and nothing is delivered to them.
//! - One request is one request. The library's own retries are off, and a connection serves one request only, so that nothing
//!   is repeated on a line that went stale: a repeated PUT whose first try took effect would be answered "exists already",
//!   which looks like a refusal and is a delivery.
//! - The digest of a file's bytes is signed with its request. A store that checks signatures takes no other bytes.
//! - A file goes from the spool to the wire in blocks, so that its size costs no memory. One PUT carries at most 5 GiB; a larger
//!   file is refused before the publish fence. (Uploads in parts are larger, but the library cannot make the last step of one
//!   conditional.)
//! - Nothing is sent over TLS before a certificate of a trusted authority for that name was shown.
//! - Absent is answered only if the store names the missing object: a HEAD that finds nothing does not tell a missing object
//!   from a missing bucket, so a GET asks again, whose answer has words.
//!
//! Not promised:
//! - That a store behind a proxy gets a request once: one that repeats a PUT by itself may turn a delivery into a refusal. The
//!   verdict takes no refusal for proof by itself, here as anywhere.
//! - Absence where the credential may not list: Amazon's store answers "forbidden" for what is not there, unless
//!   `s3:ListBucket` is granted. That is "not visible".
//! - Folders: a name's `/` is part of the name. Making a directory is a yes that does nothing.
//! - Hard links, renames and overwrites: an object store has none that refuse, and none is asked for.
//! - Listings beside keys that are no paths, such as `a//b`: the library cannot read them, and such a listing fails.
//! - Removal for good where the bucket keeps versions: the scratch files of a check stay there as old versions.

mod address;
mod answers;
mod session;
mod trust;
mod wire;

pub use address::StoreAddress;
pub(in crate::remote) use session::LARGEST_BYTES;
pub use session::Session;
