use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::facts::Sha256;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{
    self, Authorization, Case, Corrected, DeliveryOutcome, NewReplacement, Release, ReplacementRefused, TermsEdit,
};

use super::actors::{Actors, NOT_DELIVERED};
use crate::store::world::{Attempt, World};

const OTHER: Sha256 = Sha256([8; 32]);

async fn create(actors: &Actors, original: Uuid) -> anyhow::Result<Result<(), ReplacementRefused>> {
    Ok(store::create_replacement(&actors.api, actors.new_replacement(original)).await?)
}

/// What the database's own count of jobs says, so that a refusal is seen to have inserted nothing.
async fn jobs(actors: &Actors) -> anyhow::Result<i64> {
    actors.count("SELECT count(*) FROM export_jobs").await
}

#[tokio::test]
async fn rpl_01_a_replacement_carries_its_originals_key_and_place_with_a_wake_up() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let new = NewReplacement {
        overwrite_agreement_ref: Some("mail of 3 May".to_owned()),
        ..actors.new_replacement(original.job)
    };
    assert_eq!(store::create_replacement(&actors.api, new.clone()).await?, Ok(()));

    let (of, job) =
        (store::find_job(&actors.worker, original.job).await?, store::find_job(&actors.worker, new.id).await?);
    let (of, job) = (of.context("the original")?, job.context("the replacement")?);
    assert_eq!((job.status, job.version, job.attempt_count, job.attempt), (Status::Queued, 1, 0, None));
    assert_eq!((job.tenant, job.destination), (of.tenant, of.destination));
    assert_eq!((&job.delivery_key, &job.scope), (&of.delivery_key, &of.scope));
    assert_eq!((job.replaces, job.created_by.as_str()), (Some(original.job), "rosa"));
    assert_eq!(job.replacement_reason.as_deref(), Some("the partner never saw it"));
    assert_eq!(job.overwrite_agreement_ref.as_deref(), Some("mail of 3 May"));
    assert_eq!(actors.wakeups(new.id).await?, 1);
    assert_eq!(of.status, Status::OutcomeUnknown, "the original stays as it was");

    let claimed = actors.claimed(new.id).await?;
    let replacement = claimed.replacement.context("it knows its original")?;
    assert_eq!(replacement.original, original.job);
    assert!(replacement.overwrite_agreed);
    Ok(())
}

#[tokio::test]
async fn rpl_01_only_what_may_not_have_been_delivered_is_replaced() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let failed = async |reason| {
        let of = actors.running().await?;
        store::finish_failed(&actors.worker, of.job, of.attempt, reason, "cause").await?.written().context("failed")?;
        anyhow::Ok(of.job)
    };
    let exhausted = actors.silent(Case::Exhaust).await?;
    assert!(actors.take_over(Case::Exhaust, exhausted, "run-1").await?.is_written());
    for original in [
        actors.unknown(true).await?.job,
        actors.unknown(false).await?.job,
        actors.ended(NOT_DELIVERED).await?.job,
        failed(FailureReason::BuildFailed).await?,
        exhausted.job,
    ] {
        assert_eq!(create(&actors, original).await?, Ok(()), "{:?}", actors.found(original).await?);
    }

    let canceled = actors.queued().await?;
    actors.cancel(canceled).await?;
    let rejected = actors.queued().await?;
    store::reject(&actors.worker, rejected, 1, json!({})).await?.written().context("rejected")?;
    let stopped = actors.silent(Case::Stop).await?;
    assert!(actors.take_over(Case::Stop, stopped, "run-1").await?.is_written());
    for (original, status, failure_reason) in [
        (actors.queued().await?, Status::Queued, None),
        (actors.running().await?.job, Status::Running, None),
        (actors.intended().await?.job, Status::Delivering, None),
        (canceled, Status::Canceled, None),
        (rejected, Status::Rejected, None),
        (stopped.job, Status::Stopped, None),
        (actors.ended(DeliveryOutcome::Completed).await?.job, Status::Completed, None),
        (failed(FailureReason::FinalNameOccupied).await?, Status::Failed, Some(FailureReason::FinalNameOccupied)),
    ] {
        let before = jobs(&actors).await?;
        let refused = create(&actors, original).await?.unwrap_err();
        assert_eq!(refused, ReplacementRefused::NotReplaceable { status, failure_reason });
        assert!(refused.to_string().contains(status.as_str()), "{refused}");
        assert_eq!(jobs(&actors).await?, before, "{status}: nothing was inserted");
    }
    Ok(())
}

#[tokio::test]
async fn rpl_01_another_tenants_job_a_missing_one_and_a_replacement_are_not_replaced() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let foreign = NewReplacement { tenant: Uuid::new_v4(), ..actors.new_replacement(original.job) };
    assert_eq!(store::create_replacement(&actors.api, foreign).await?, Err(ReplacementRefused::NotFound));
    assert_eq!(create(&actors, Uuid::new_v4()).await?, Err(ReplacementRefused::NotFound));
    let wordless = NewReplacement { reason: "  ".to_owned(), ..actors.new_replacement(original.job) };
    assert_eq!(store::create_replacement(&actors.api, wordless).await?, Err(ReplacementRefused::ReasonMissing));
    assert_eq!(jobs(&actors).await?, 1);

    let replacement = actors.replacement_under_way(original.job, OTHER).await?;
    actors.finish(replacement, DeliveryOutcome::OutcomeUnknown).await?.written().context("finished")?;
    assert_eq!(
        create(&actors, replacement.job).await?,
        Err(ReplacementRefused::IsReplacement { original: original.job }),
        "whatever its own status"
    );
    assert_eq!(jobs(&actors).await?, 2);
    Ok(())
}

#[tokio::test]
async fn rpl_02_of_two_at_once_one_fails_on_the_index() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let held = actors.hold_statement(Role::Api, &rival(&actors, original.job).await?).await?;
    let run = || {
        let (pool, new) = (actors.api.clone(), actors.new_replacement(original.job));
        tokio::spawn(async move { store::create_replacement(&pool, new).await })
    };
    let first = run();
    let creating = actors.blocked_by(held.pid).await?;
    let second = run();
    actors.blocked_by(creating).await?;
    held.roll_back().await?;
    assert_eq!(first.await??, Ok(()));
    assert_eq!(second.await??, Err(ReplacementRefused::SlotTaken));

    let held = rival(&actors, original.job).await?;
    assert_eq!(actors.refused(Role::Api, &held).await?, "23505", "by any path");
    Ok(())
}

/// A replacement by a direct insert: while it is open, a creation waits for the index, holding its original.
async fn rival(actors: &Actors, original: Uuid) -> anyhow::Result<String> {
    let job = store::find_job(&actors.worker, original).await?.context("the original")?;
    Ok(direct(job.tenant, job.destination, &job.delivery_key, original))
}

fn direct(tenant: Uuid, destination: Uuid, key: &str, replaces: Uuid) -> String {
    format!(
        "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, replaces_job_id, created_by,
                                  replacement_reason, woken_at, known_system, known_timeline)
         SELECT gen_random_uuid(), '{tenant}', 'Queued', 1, '{destination}', '{key}', '{replaces}', 'rosa', 'why',
                clock_timestamp(), system, timeline FROM database_history()"
    )
}

#[tokio::test]
async fn rpl_02_which_states_of_a_replacement_keep_the_slot() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for status in Status::ALL {
        for reason in FailureReason::ALL {
            if *status != Status::Failed && *reason != FailureReason::BuildFailed {
                continue;
            }
            let original = actors.unknown(true).await?.job;
            bring(&actors, original, *status, *reason).await?;
            let keeps = match status {
                Status::Queued | Status::Running | Status::Delivering | Status::Completed | Status::OutcomeUnknown => {
                    true
                }
                Status::Failed => *reason == FailureReason::OriginalDelivered,
                Status::Canceled | Status::Rejected | Status::Stopped => false,
            };
            let expected = if keeps { Err(ReplacementRefused::SlotTaken) } else { Ok(()) };
            assert_eq!(create(&actors, original).await?, expected, "{status} {reason}");
            if keeps {
                let wordless = NewReplacement { cannot_upload: None, ..actors.new_replacement(original) };
                assert_eq!(store::create_replacement(&actors.api, wordless).await?, expected, "{status} {reason}");
            }
        }
    }
    Ok(())
}

/// A replacement of this original in this state.
async fn bring(actors: &Actors, original: Uuid, status: Status, reason: FailureReason) -> anyhow::Result<()> {
    let worker = &actors.worker;
    let running = async || {
        let job = actors.replacement(original).await?;
        anyhow::Ok(Attempt { job, attempt: actors.claimed(job).await?.attempt })
    };
    let finish = async |outcome| {
        let of = actors.replacement_under_way(original, OTHER).await?;
        actors.finish(of, outcome).await?.written().context("finished")
    };
    match status {
        Status::Queued => {
            actors.replacement(original).await?;
        }
        Status::Running => {
            running().await?;
        }
        Status::Delivering => {
            actors.replacement_under_way(original, OTHER).await?;
        }
        Status::Canceled => {
            actors.cancel(actors.replacement(original).await?).await?;
        }
        Status::Rejected => {
            let job = actors.replacement(original).await?;
            store::reject(worker, job, 1, json!({})).await?.written().context("rejected")?;
        }
        Status::Stopped => {
            let of = running().await?;
            actors.cancel(of.job).await?;
            store::finish_stopped(worker, of.job, of.attempt, "building").await?.written().context("stopped")?;
        }
        Status::Failed if reason == FailureReason::NotDelivered => finish(NOT_DELIVERED).await?,
        Status::Failed if reason == FailureReason::AttemptsExhausted => {
            let of = running().await?;
            let release = Release { max_attempts: 1, ..World::release(of) };
            store::release(worker, release).await?.written().context("released")?;
        }
        Status::Failed => {
            let of = running().await?;
            store::finish_failed(worker, of.job, of.attempt, reason, "cause").await?.written().context("failed")?;
        }
        Status::Completed => finish(DeliveryOutcome::Completed).await?,
        Status::OutcomeUnknown => finish(DeliveryOutcome::OutcomeUnknown).await?,
    }
    Ok(())
}

#[tokio::test]
async fn rpl_03_a_creation_waits_for_a_correction_to_completed_then_inserts_nothing() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.ended(NOT_DELIVERED).await?;
    let correcting = actors.open_correction(original).await?;
    let created = tokio::spawn({
        let (pool, new) = (actors.api.clone(), actors.new_replacement(original.job));
        async move { store::create_replacement(&pool, new).await }
    });
    actors.blocked_by(correcting.pid).await?;
    correcting.commit().await?;
    assert_eq!(
        created.await??,
        Err(ReplacementRefused::NotReplaceable { status: Status::Completed, failure_reason: None })
    );
    assert_eq!(jobs(&actors).await?, 1);
    Ok(())
}

#[tokio::test]
async fn rpl_03_aut_05_a_correction_waits_for_a_creation_and_cutoff_two_refuses_the_replacement() -> anyhow::Result<()>
{
    let actors = Actors::new().await?;
    let original = actors.ended(NOT_DELIVERED).await?;
    let held = actors.hold_statement(Role::Api, &rival(&actors, original.job).await?).await?;
    let new = actors.new_replacement(original.job);
    let replacement = new.id;
    let created = tokio::spawn({
        let pool = actors.api.clone();
        async move { store::create_replacement(&pool, new).await }
    });
    let creating = actors.blocked_by(held.pid).await?;
    let corrected = tokio::spawn({
        let (pool, correction) = (actors.corrector.clone(), actors.correction(original, Corrected::ToCompleted));
        async move { store::correct(&pool, correction).await }
    });
    actors.blocked_by(creating).await?;
    held.roll_back().await?;
    assert_eq!(created.await??, Ok(()));
    assert_eq!(corrected.await??, Ok(()));

    let of = Attempt { job: replacement, attempt: actors.claimed(replacement).await?.attempt };
    let refused = actors.authorize_replacement(original.job, of, OTHER).await?;
    assert_eq!(refused, Authorization::OriginalCompleted);
    Ok(())
}

#[tokio::test]
async fn aut_06_a_correction_waits_for_a_replacements_open_authorization() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.ended(NOT_DELIVERED).await?;
    let job = actors.replacement(original.job).await?;
    let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    let held = actors.hold(Role::Worker, of, EventKind::DeliveryAuthorized).await?;
    let mut delivery = World::delivery(original);
    (delivery.job, delivery.attempt) = (of.job, of.attempt);
    let authorized = tokio::spawn({
        let pool = actors.worker.clone();
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    let authorizing = actors.blocked_by(held.pid).await?;
    let corrected = tokio::spawn({
        let (pool, correction) = (actors.corrector.clone(), actors.correction(original, Corrected::ToCompleted));
        async move { store::correct(&pool, correction).await }
    });
    actors.blocked_by(authorizing).await?;
    held.roll_back().await?;
    assert_eq!(authorized.await??, Authorization::Authorized);
    assert_eq!(corrected.await??, Ok(()), "the replacement's look at the final name governs it from here on");
    Ok(())
}

#[tokio::test]
async fn aut_06_a_replacements_authorization_waits_for_an_open_correction() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.ended(NOT_DELIVERED).await?;
    let job = actors.replacement(original.job).await?;
    let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    let held = actors.hold(Role::Corrector, original, EventKind::Corrected).await?;
    let corrected = tokio::spawn({
        let (pool, correction) = (actors.corrector.clone(), actors.correction(original, Corrected::ToCompleted));
        async move { store::correct(&pool, correction).await }
    });
    let correcting = actors.blocked_by(held.pid).await?;
    let mut delivery = World::delivery(original);
    (delivery.job, delivery.attempt) = (of.job, of.attempt);
    let authorized = tokio::spawn({
        let pool = actors.worker.clone();
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    actors.blocked_by(correcting).await?;
    held.roll_back().await?;
    assert_eq!(corrected.await??, Ok(()));
    assert_eq!(authorized.await??, Authorization::OriginalCompleted);
    Ok(())
}

#[tokio::test]
async fn rpl_04_the_database_refuses_another_key_another_tenant_and_a_replacements_replacement() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (original, other) = (actors.unknown(true).await?, actors.unknown(true).await?);
    let of = store::find_job(&actors.worker, original.job).await?.context("the original")?;
    let other = store::find_job(&actors.worker, other.job).await?.context("another one")?;
    let tenant = Uuid::new_v4();
    let elsewhere = actors.destination(tenant, json!({})).await?;
    let foreign_key =
        store::NewJob { tenant, destination: elsewhere, delivery_key: of.delivery_key.clone(), ..actors.new_job() };
    actors.create(&foreign_key).await?;

    for (why, statement) in [
        ("another key", direct(of.tenant, of.destination, &other.delivery_key, of.id)),
        ("a key that nobody minted", direct(of.tenant, of.destination, "invented", of.id)),
        ("another tenant", direct(tenant, elsewhere, &of.delivery_key, of.id)),
        ("another tenant's destination", direct(of.tenant, elsewhere, &of.delivery_key, of.id)),
    ] {
        assert_eq!(actors.refused(Role::Api, &statement).await?, "23503", "{why}");
    }
    let replacement = actors.replacement(original.job).await?;
    let of_a_replacement = direct(of.tenant, of.destination, &of.delivery_key, replacement);
    assert_eq!(actors.refused(Role::Api, &of_a_replacement).await?, "23503");
    Ok(())
}

#[tokio::test]
async fn rpl_08_a_replacement_keeps_its_originals_destination_and_name() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let job = actors.replacement(original.job).await?;
    let elsewhere = actors.destination(actors.tenant, json!({})).await?;
    let moved =
        format!("UPDATE export_jobs SET destination_id = '{elsewhere}', version = version + 1 WHERE id = '{job}'");
    assert_eq!(actors.refused(Role::Api, &moved).await?, "WB004");
    let edit = TermsEdit {
        tenant: actors.tenant,
        job,
        expected_version: 1,
        destination: elsewhere,
        scope: json!({}),
        not_before: None,
        edited_by: "olga".to_owned(),
    };
    let answer = store::edit_terms(&actors.api, edit).await;
    assert!(!matches!(&answer, Ok(store::Edit::Answered(write)) if write.is_written()), "{answer:?}");

    let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    let refused = actors.authorize(of).await?;
    assert!(matches!(refused, Authorization::DiffersFromEarlier { .. }), "a name of its own: {refused:?}");
    let failed =
        store::finish_failed(&actors.worker, job, of.attempt, FailureReason::BuildFailed, "another name").await?;
    assert!(failed.is_written());
    Ok(())
}

#[tokio::test]
async fn rpl_09_an_open_earlier_attempt_demands_the_persons_words() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let wordless = |cannot_upload: Option<&str>| NewReplacement {
        cannot_upload: cannot_upload.map(str::to_owned),
        ..actors.new_replacement(original.job)
    };
    for words in [None, Some(""), Some("  ")] {
        let refused = store::create_replacement(&actors.api, wordless(words)).await?.unwrap_err();
        let ReplacementRefused::EarlierAttemptsOpen(open) = &refused else { panic!("{refused:?}") };
        let [open] = open.as_slice() else { panic!("{open:?}") };
        assert_eq!((open.job, open.attempt), (original.job, Some(original.attempt)));
        assert_eq!((open.status, open.publish_intended), (Status::OutcomeUnknown, true));
    }
    assert_eq!(jobs(&actors).await?, 1);

    let with_words = wordless(Some("its host burned down"));
    let first = with_words.id;
    assert_eq!(store::create_replacement(&actors.api, with_words).await?, Ok(()));
    let recorded = format!(
        "SELECT count(*) FROM export_jobs WHERE id = '{first}' AND cannot_upload_statement = 'its host burned down'"
    );
    assert_eq!(actors.count(&recorded).await?, 1);
    let rewritten = format!("UPDATE export_jobs SET cannot_upload_statement = 'never mind' WHERE id = '{first}'");
    for role in Role::ALL.iter().filter(|role| **role != Role::Owner) {
        assert_eq!(actors.refused(*role, &rewritten).await?, "42501", "{role:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rpl_09_an_attempt_is_closed_by_an_absent_fence_or_a_confirmed_removal() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let wordless = |original| NewReplacement { cannot_upload: None, ..actors.new_replacement(original) };

    let never_fenced = actors.unknown(false).await?;
    assert_eq!(store::open_attempts(&actors.api, actors.tenant, never_fenced.job).await?, []);
    assert_eq!(store::create_replacement(&actors.api, wordless(never_fenced.job)).await?, Ok(()));

    let removed = actors.unknown(true).await?;
    assert_eq!(store::open_attempts(&actors.api, actors.tenant, removed.job).await?.len(), 1);
    actors.confirm_removal(removed).await?;
    assert_eq!(store::open_attempts(&actors.api, actors.tenant, removed.job).await?, []);
    assert_eq!(store::create_replacement(&actors.api, wordless(removed.job)).await?, Ok(()));

    // An earlier replacement counts as well as the original.
    let original = actors.unknown(false).await?;
    let replacement = actors.replacement_under_way(original.job, OTHER).await?;
    actors.finish(replacement, NOT_DELIVERED).await?.written().context("finished")?;
    let refused = store::create_replacement(&actors.api, wordless(original.job)).await?;
    assert!(
        matches!(&refused, Err(ReplacementRefused::EarlierAttemptsOpen(open)) if open.iter().any(|open| open.job == replacement.job)),
        "{refused:?}"
    );
    actors.confirm_removal(replacement).await?;
    assert_eq!(store::create_replacement(&actors.api, wordless(original.job)).await?, Ok(()));
    Ok(())
}

#[tokio::test]
async fn rpl_09_ops_04_a_lost_fence_leaves_an_attempt_open() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(false).await?;
    actors.forget_history(of.job).await?;
    let open = store::open_attempts(&actors.api, actors.tenant, of.job).await?;
    assert!(matches!(open.as_slice(), [open] if open.job == of.job && !open.publish_intended), "{open:?}");
    actors.accept_loss(of.job, true).await?;
    assert_eq!(store::open_attempts(&actors.api, actors.tenant, of.job).await?, []);
    Ok(())
}
