//! Reads about one job tell the same whoever else is there.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::on_record::AttemptOnRecord;
use waybill::job::status::Status;
use waybill::store::{self, Edit, FinalPlace, JobFilter, NewReplacement, PolicyFacts, TermsEdit, Write};

use super::{SOON, Stage, another_tenant, bring, go_on, of, reader};
use crate::recovery::actors::Actors;
use crate::store::world::Attempt;

/// What is read about.
struct Subject {
    original: Attempt,
    replacement: Attempt,
    queued: Uuid,
    canceled: Uuid,
    key: &'static str,
}

/// An original with an unknown outcome, its replacement past cutoff 2, a job that was edited, and one that was canceled.
async fn subject(actors: &Actors, tenant: Uuid, destination: Uuid, key: &'static str) -> anyhow::Result<Subject> {
    let new = |key: &str| store::NewJob { tenant, destination, delivery_key: key.to_owned(), ..actors.new_job() };
    let original = bring(actors, &new(key), Stage::Unknown).await?;
    let replacing = NewReplacement { tenant, ..actors.new_replacement(original.job) };
    let id = replacing.id;
    store::create_replacement(&actors.api, replacing).await?.map_err(|refused| anyhow::anyhow!("{refused}"))?;
    let replacement = go_on(actors, tenant, id, Stage::Delivering).await?;
    let queued = bring(actors, &new(&format!("{key}-edited")), Stage::Queued).await?.job;
    let edit = TermsEdit {
        tenant,
        job: queued,
        expected_version: 1,
        destination,
        scope: json!({ "list": key }),
        not_before: None,
        edited_by: "olga".to_owned(),
    };
    anyhow::ensure!(matches!(store::edit_terms(&actors.api, edit).await?, Edit::Answered(Write::Written(_))));
    let canceled = bring(actors, &new(&format!("{key}-canceled")), Stage::Canceled).await?.job;
    Ok(Subject { original, replacement, queued, canceled, key })
}

/// Without what only the clock changes.
fn timeless(record: Option<AttemptOnRecord>) -> Option<AttemptOnRecord> {
    record.map(|record| AttemptOnRecord { since_intended: None, since_settled: Duration::ZERO, ..record })
}

fn timeless_facts(facts: Option<PolicyFacts>) -> Option<PolicyFacts> {
    facts.map(|facts| PolicyFacts { second_of_day: 0, weekday: 0, oldest_start: Duration::ZERO, ..facts })
}

/// Everything that is read about it, by the name of the read.
async fn readings(actors: &Actors, subject: &Subject) -> anyhow::Result<Vec<(&'static str, String)>> {
    let (worker, tenant) = (&actors.worker, actors.tenant);
    let reader = reader(actors).await?;
    let mut all = Vec::new();
    for of in [subject.original, subject.replacement] {
        let name = format!("contacts-{}.csv", subject.key);
        let directory = format!("/{tenant}");
        let place = FinalPlace { endpoint: "sftp.partner.test:22", directory: &directory, last_part: &name };
        let on_record = store::attempt_on_record(worker, of.job, of.attempt).await?;
        all.push(("attempt_on_record", format!("{:?}", timeless(on_record))));
        all.push(("found", format!("{:?}", store::found(worker, of.job).await?)));
        all.push(("find_job", format!("{:?}", store::find_job(worker, of.job).await?)));
        all.push(("events_of", format!("{:?}", store::events_of(worker, of.job).await?)));
        all.push(("key_history", format!("{:?}", store::key_history(worker, of.job, of.attempt).await?)));
        let at = store::key_history_at(worker, of.job, of.attempt, place).await?;
        all.push(("key_history_at", format!("{at:?}")));
    }
    all.push(("cancellations_of", format!("{:?}", store::cancellations_of(&reader, tenant, subject.canceled).await?)));
    all.push(("edits_of", format!("{:?}", store::edits_of(&reader, tenant, subject.queued).await?)));
    all.push((
        "open_attempts",
        format!("{:?}", store::open_attempts(&actors.api, tenant, subject.original.job).await?),
    ));
    let open = store::open_earlier_attempts(worker, subject.replacement.job).await?;
    all.push(("open_earlier_attempts", format!("{open:?}")));
    let facts = store::policy_facts(worker, subject.queued, Some(SOON)).await?;
    all.push(("policy_facts", format!("{:?}", timeless_facts(facts))));
    let uncounted = store::policy_facts(worker, subject.queued, None).await?.context("facts")?;
    assert_eq!(uncounted.started, 0, "no rate, no count");
    let filter = JobFilter {
        statuses: vec![Status::OutcomeUnknown],
        destination: Some(actors.destination),
        delivery_key: Some(subject.key.to_owned()),
        created_by: Some("olga".to_owned()),
    };
    all.push(("list_jobs", format!("{:?}", store::list_jobs(&reader, tenant, &filter, None, 10).await?)));
    all.push(("destination_state", format!("{:?}", store::destination_state(worker, actors.destination).await?)));
    let period = store::acknowledgment_period(&reader, actors.destination).await?;
    all.push(("acknowledgment_period", format!("{period:?}")));
    let watched = store::watch_stop(worker, &[subject.original.attempt, subject.replacement.attempt]).await?;
    all.push(("watch_stop", format!("{watched:?}")));
    Ok(all)
}

#[tokio::test]
async fn can_03_what_is_read_of_a_job_is_not_changed_by_strangers() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let subject_of = subject(&actors, actors.tenant, actors.destination, "spring").await?;
    actors.take_words(subject_of.replacement.job).await?;
    let before = readings(&actors, &subject_of).await?;

    // Another tenant's, alike in everything, with its destination in trouble and its jobs being stopped.
    let (tenant, theirs) = another_tenant(&actors).await?;
    let alike = subject(&actors, tenant, theirs, "spring").await?;
    actors.take_words(alike.replacement.job).await?;
    store::mark_attention(&actors.worker, theirs, "the key was refused").await?;
    store::pause_destination(&actors.worker, theirs, alike.queued).await?;
    actors.end_pauses().await?;
    store::take_probe(&actors.worker, theirs, alike.queued, SOON).await?;
    actors.promise_acknowledgments(theirs).await?;
    // The tenant's own, of another key.
    let neighbour = subject(&actors, actors.tenant, actors.destination, "summer").await?;
    actors.take_words(neighbour.replacement.job).await?;
    let new = store::NewJob { tenant, destination: theirs, delivery_key: "autumn".to_owned(), ..actors.new_job() };
    bring(&actors, &new, Stage::Stopping).await?;
    // A file of the same name elsewhere, and files of other names beside it.
    actors.uses_of_names_alike(neighbour.original.job, alike.original.job).await?;

    let mut after = readings(&actors, &subject_of).await?;
    // The neighbour's claims are for the same destination, and count there.
    let neighbours_starts = |readings: &mut Vec<(&'static str, String)>, started: u32| {
        for (_, text) in readings.iter_mut().filter(|(name, _)| *name == "policy_facts") {
            let told = format!("started: {started}");
            assert!(text.contains(&told), "{text}");
            *text = text.replace(&told, "started: n");
        }
    };
    let mut before = before;
    neighbours_starts(&mut before, 2);
    neighbours_starts(&mut after, 4);
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(one, other);
    }
    assert_eq!(before.len(), after.len());
    Ok(())
}

#[tokio::test]
async fn can_03_nothing_is_read_by_half_of_a_key() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let one = subject(&actors, actors.tenant, actors.destination, "spring").await?;
    let other = subject(&actors, actors.tenant, actors.destination, "summer").await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    subject(&actors, tenant, theirs, "spring").await?;
    let worker = &actors.worker;
    for (job, attempt) in [(one.original.job, other.original.attempt), (other.original.job, one.original.attempt)] {
        assert_eq!(store::attempt_on_record(worker, job, attempt).await?, None);
    }
    for job in [one.original.job, one.canceled, one.queued] {
        assert_eq!(store::find_tenant_job(&actors.api, tenant, job).await?, None);
        assert_eq!(store::cancellations_of(&actors.api, tenant, job).await?, []);
        assert_eq!(store::edits_of(&actors.api, tenant, job).await?, []);
        assert_eq!(store::open_attempts(&actors.api, tenant, job).await?, []);
    }
    assert!(store::find_tenant_job(&actors.api, actors.tenant, one.queued).await?.is_some());
    let mut destinations: Vec<Uuid> =
        store::destinations_of(worker, tenant).await?.iter().map(|destination| destination.id).collect();
    destinations.sort();
    assert_eq!(destinations, [theirs]);
    for filter in [
        JobFilter { delivery_key: Some("spring".to_owned()), ..JobFilter::default() },
        JobFilter { statuses: vec![Status::Queued, Status::Canceled], ..JobFilter::default() },
        JobFilter { created_by: Some("rosa".to_owned()), ..JobFilter::default() },
        JobFilter { created_by: Some("nobody".to_owned()), ..JobFilter::default() },
        JobFilter { destination: Some(theirs), ..JobFilter::default() },
    ] {
        let page = store::list_jobs(&actors.api, actors.tenant, &filter, None, 20).await?;
        for job in &page.jobs {
            assert_eq!(job.tenant, actors.tenant, "{filter:?}");
            assert!(filter.statuses.is_empty() || filter.statuses.contains(&job.status), "{filter:?}");
            assert!(filter.delivery_key.as_ref().is_none_or(|key| *key == job.delivery_key), "{filter:?}");
            assert!(filter.created_by.as_ref().is_none_or(|who| *who == job.created_by), "{filter:?}");
            assert!(filter.destination.is_none_or(|destination| destination == job.destination), "{filter:?}");
        }
    }
    assert!(!of(&actors, one.queued).await?.is_empty());
    Ok(())
}
