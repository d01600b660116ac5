//! A bucket of an object store as the partner's place, judged by what lies in it and by what it was asked.

mod delivered;
mod hostile;
mod interrupted;
mod moto;
mod session;
mod tls;

use std::path::PathBuf;

use uuid::Uuid;
use waybill::job::names::NamePattern;
use waybill::remote::{Endpoint, ObjectsEndpoint, ScratchNames, SecretRef, StoreAddress};
use waybill_tests::object_store::{BUCKET, KeyFiles, PREFIX, REGION};
use waybill_tests::{House, ObjectStore};

use super::place::Before;

/// A house before a bucket.
type Bucket = Before<ObjectStore>;

/// Where a job's object lies in the bucket.
fn key(job: Uuid) -> String {
    format!("{PREFIX}/{}", House::final_name(job))
}

/// The bucket, or a part of it, of the store at this address.
fn endpoint(url: &str, keys: &KeyFiles, prefix: &str, ca_file: Option<PathBuf>) -> Endpoint {
    Endpoint::Objects(ObjectsEndpoint {
        address: StoreAddress::parse(url).unwrap(),
        region: REGION.to_owned(),
        bucket: BUCKET.to_owned(),
        prefix: prefix.to_owned(),
        access_key: SecretRef::StoreKeyFile(keys.access()),
        secret_key: SecretRef::StoreKeyFile(keys.secret()),
        ca_file,
    })
}

fn scratch() -> anyhow::Result<ScratchNames> {
    Ok(ScratchNames::mint(&NamePattern::parse(".{attempt}.part")?, "k.csv")?)
}
