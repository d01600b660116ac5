use anyhow::Context;
use uuid::Uuid;
use waybill::job::facts::Sha256;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{self, Case, Corrected, Correction, CorrectionRefused, DeliveryOutcome};

use super::actors::{Actors, NOT_DELIVERED};
use crate::store::world::Attempt;

const TO_FAILED: Corrected = Corrected::ToFailed(FailureReason::NotDelivered);

async fn correct(actors: &Actors, of: Attempt, corrected: Corrected) -> anyhow::Result<Result<(), CorrectionRefused>> {
    Ok(store::correct(&actors.corrector, actors.correction(of, corrected)).await?)
}

#[tokio::test]
async fn cor_01_a_named_person_corrects_once_in_either_direction_with_reason_and_evidence() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for (outcome, corrected, back) in [
        (NOT_DELIVERED, Corrected::ToCompleted, TO_FAILED),
        (DeliveryOutcome::Completed, TO_FAILED, Corrected::ToCompleted),
    ] {
        let of = actors.ended(outcome).await?;
        assert_eq!(correct(&actors, of, corrected).await?, Ok(()));
        let found = actors.found(of.job).await?;
        assert!(found.is(corrected.status(), of.attempt), "{found:?}");
        assert_eq!(found.failure_reason, (corrected == TO_FAILED).then_some(FailureReason::NotDelivered));

        let (person, detail) = actors.detail(of.job, EventKind::Corrected).await?;
        assert_eq!(person.as_deref(), Some("rosa"));
        assert_eq!(detail["from"], corrected.recorded().as_str());
        assert_eq!(detail["to"], corrected.status().as_str());
        assert_eq!(detail["reason"], "the partner sent its log");
        assert_eq!(detail["evidence_ref"], "case 4711");

        assert_eq!(correct(&actors, of, back).await?, Err(CorrectionRefused::AlreadyCorrected), "the second one");
        assert!(actors.found(of.job).await?.is(corrected.status(), of.attempt), "changed nothing");
        assert!(matches!(correct(&actors, of, corrected).await?, Err(CorrectionRefused::NotAsRecorded(_))));
    }
    Ok(())
}

#[tokio::test]
async fn cor_01_a_correction_asks_for_the_record_that_it_mends() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.ended(NOT_DELIVERED).await?;
    let other = Attempt { attempt: Uuid::new_v4(), ..of };
    assert!(matches!(correct(&actors, other, Corrected::ToCompleted).await?, Err(CorrectionRefused::NotAsRecorded(_))));
    let foreign = Correction { tenant: Uuid::new_v4(), ..actors.correction(of, Corrected::ToCompleted) };
    assert_eq!(store::correct(&actors.corrector, foreign).await?, Err(CorrectionRefused::Absent));
    assert!(matches!(correct(&actors, of, TO_FAILED).await?, Err(CorrectionRefused::NotAsRecorded(_))));

    for of in [actors.running().await?, actors.intended().await?, actors.unknown(true).await?] {
        for corrected in [Corrected::ToCompleted, TO_FAILED] {
            let refused = correct(&actors, of, corrected).await?;
            assert!(matches!(refused, Err(CorrectionRefused::NotAsRecorded(_))), "{refused:?}");
        }
    }

    let never = actors.silent(Case::Exhaust).await?;
    assert!(actors.take_over(Case::Exhaust, never, "run-1").await?.is_written());
    assert_eq!(correct(&actors, never, Corrected::ToCompleted).await?, Err(CorrectionRefused::NeverAuthorized));
    Ok(())
}

#[tokio::test]
async fn cor_01_of_two_corrections_at_once_one_is_recorded() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.ended(NOT_DELIVERED).await?;
    let held = actors.hold(Role::Corrector, of, EventKind::Corrected).await?;
    let run = || {
        let (pool, correction) = (actors.corrector.clone(), actors.correction(of, Corrected::ToCompleted));
        tokio::spawn(async move { store::correct(&pool, correction).await })
    };
    let first = run();
    let correcting = actors.blocked_by(held.pid).await?;
    let second = run();
    actors.blocked_by(correcting).await?;
    held.roll_back().await?;
    assert_eq!(first.await??, Ok(()));
    assert!(
        matches!(second.await??, Err(CorrectionRefused::NotAsRecorded(found)) if found.status == Status::Completed)
    );
    Ok(())
}

#[tokio::test]
async fn cor_02_the_database_refuses_every_role_but_the_correctors() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for (outcome, corrected) in [(NOT_DELIVERED, Corrected::ToCompleted), (DeliveryOutcome::Completed, TO_FAILED)] {
        let of = actors.ended(outcome).await?;
        for role in Role::ALL.iter().filter(|role| **role != Role::Corrector) {
            let pool = actors.pool(*role).await?;
            let error = store::correct(&pool, actors.correction(of, corrected)).await.unwrap_err();
            assert!(matches!(error.code(), Some("42501" | "WB001")), "{role:?}: {error:?}");
        }
        // Without the event, so that it is the edge that is refused.
        let bare = match corrected {
            Corrected::ToCompleted => "status = 'Completed', failure_reason = NULL",
            Corrected::ToFailed(_) => "status = 'Failed', failure_reason = 'NotDelivered'",
        };
        let bare = format!("UPDATE export_jobs SET {bare} WHERE id = '{}'", of.job);
        for (role, code) in [
            (Role::Worker, "WB001"),
            (Role::Recovery, "WB001"),
            (Role::Reconciler, "WB001"),
            (Role::Owner, "WB001"),
            (Role::Api, "42501"),
            (Role::Dispatcher, "42501"),
            (Role::Reader, "42501"),
        ] {
            assert_eq!(actors.refused(role, &bare).await?, code, "{role:?}");
        }
        assert!(actors.found(of.job).await?.is(corrected.recorded(), of.attempt));
    }
    Ok(())
}

#[tokio::test]
async fn cor_03_a_failed_replacement_is_not_corrected_while_another_holds_the_slot() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let first = actors.replacement_under_way(original.job, Sha256([8; 32])).await?;
    actors.finish(first, NOT_DELIVERED).await?.written().context("finished")?;
    let second = actors.replacement(original.job).await?;

    let refused = correct(&actors, first, Corrected::ToCompleted).await?.unwrap_err();
    assert_eq!(refused, CorrectionRefused::SlotTaken);
    assert!(refused.to_string().contains("another replacement of the same original"), "{refused}");
    assert!(actors.found(first.job).await?.is(Status::Failed, first.attempt));
    assert!(!actors.kinds(first.job).await?.contains(&EventKind::Corrected));

    actors.cancel(second).await?;
    assert_eq!(correct(&actors, first, Corrected::ToCompleted).await?, Ok(()), "once the slot is free");
    Ok(())
}

#[tokio::test]
async fn rec_03_failed_has_a_code_and_nothing_else_has_through_the_correction_statement() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let completed = actors.ended(DeliveryOutcome::Completed).await?;
    let failed = actors.ended(NOT_DELIVERED).await?;
    let mut corrector = actors.login(Role::Corrector).await?;
    let mut run = async |of: Attempt, from: &str, to: &str, reason: Option<&str>| {
        sqlx::query(include_str!("../../../host/src/store/correct.sql"))
            .bind(actors.tenant)
            .bind(of.job)
            .bind(of.attempt)
            .bind(from)
            .bind(to)
            .bind(reason)
            .bind("rosa")
            .bind(serde_json::json!({}))
            .fetch_optional(&mut corrector)
            .await
    };
    for reason in [None, Some("BecauseISaySo")] {
        let error = run(completed, "Completed", "Failed", reason).await.unwrap_err();
        let constraint = error.as_database_error().and_then(|error| error.constraint()).map(str::to_owned);
        assert!(constraint.is_some_and(|name| name.starts_with("ck_export_jobs_failure")), "{error:?}");
    }
    for (from, to) in [("Completed", "Completed"), ("Completed", "OutcomeUnknown"), ("Completed", "Queued")] {
        assert!(run(completed, from, to, Some("NotDelivered")).await?.is_none(), "{from} to {to}");
    }
    assert!(actors.found(completed.job).await?.is(Status::Completed, completed.attempt));
    assert!(run(failed, "Failed", "Completed", Some("NotDelivered")).await?.is_some(), "a code is dropped with Failed");
    assert_eq!(actors.found(failed.job).await?.failure_reason, None);
    Ok(())
}

#[tokio::test]
async fn rec_03_failed_has_a_code_and_nothing_else_has_on_any_path() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (running, delivering) = (actors.running().await?, actors.delivering().await?);
    let (unknown, failed) = (actors.unknown(true).await?, actors.ended(NOT_DELIVERED).await?);
    let lease = ", lease_expires_at = NULL";
    for (role, of, set) in [
        (Role::Worker, running, format!("status = 'Failed'{lease}")),
        (Role::Recovery, running, format!("status = 'Failed'{lease}")),
        (Role::Worker, delivering, format!("status = 'Failed'{lease}")),
        (Role::Worker, delivering, format!("status = 'OutcomeUnknown', failure_reason = 'NotDelivered'{lease}")),
        (Role::Recovery, delivering, format!("status = 'Completed', failure_reason = 'NotDelivered'{lease}")),
        (Role::Reconciler, unknown, "status = 'Failed'".to_owned()),
        (Role::Reconciler, unknown, "status = 'Completed', failure_reason = 'NotDelivered'".to_owned()),
        (Role::Corrector, unknown, "status = 'Failed'".to_owned()),
        (Role::Corrector, failed, "status = 'Completed'".to_owned()),
    ] {
        let statement = format!("UPDATE export_jobs SET {set} WHERE id = '{}'", of.job);
        assert_eq!(actors.refused(role, &statement).await?, "23514", "{role:?}: {set}");
    }
    Ok(())
}
