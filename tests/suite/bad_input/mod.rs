//! Bad input: whatever is wrong, people get one sentence that says what, where and what to do; nothing half-written stays.
//!
//! Manifests are in `plugin`, partners that cannot be reached or refuse us in `delivery::reached` and `remote::connect`.

mod builds;
mod data;
mod disks;
mod start;

use waybill::job::status::EventKind;
use waybill_tests::{House, wait};

/// Why the job ended before anything was sent, as its event tells it.
async fn cause(house: &House, job: uuid::Uuid) -> anyhow::Result<String> {
    let events = house.events(job).await?;
    let failed = events.into_iter().find(|event| event.kind == EventKind::Failed);
    let detail = failed.and_then(|event| event.detail).unwrap_or_default();
    let cause = detail.get("cause").and_then(|cause| cause.as_str()).map(str::to_owned);
    cause.ok_or_else(|| anyhow::anyhow!("the event tells no cause: {detail}"))
}

/// Why the job was handed back, once it was.
pub async fn handed_back(house: &House, job: uuid::Uuid) -> anyhow::Result<String> {
    wait::until("the job to be handed back", async || {
        let events = house.events(job).await?;
        let event = events.iter().find(|event| event.kind == EventKind::ReleasedByWorker);
        Ok(event.map(|event| event.detail.clone().unwrap_or_default()["why"].as_str().unwrap_or_default().to_owned()))
    })
    .await
}

/// One sentence on one line that names all of these.
fn assert_sentence(sentence: &str, names: &[&str]) {
    for name in names {
        assert!(sentence.contains(name), "{name:?} is not in: {sentence}");
    }
    assert_eq!(sentence.trim_end().lines().count(), 1, "{sentence}");
    for noise in ["panicked", "backtrace", "Os {", "Custom {"] {
        assert!(!sentence.contains(noise), "{noise:?} is in: {sentence}");
    }
}
