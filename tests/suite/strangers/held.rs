//! Each statement holds by itself: a write that a lock before it made safe asks again for what it needs, and what settles
//! a lost answer is this very caller's record.

use std::sync::Arc;

use sqlx::Executor as _;
use waybill::job::status::{FailureReason, Role, Status};
use waybill::store::{self, Cancellation, Case, Corrected, Correction, Decision, DeliveryOutcome, Write};
use waybill_tests::Proxy;
use waybill_tests::proxy::{Fault, Moment, Rewrite};

use super::{Stage, another_tenant, bring, everything};
use crate::recovery::actors::Actors;
use crate::store::world::World;

const TO_FAILED: Corrected = Corrected::ToFailed(FailureReason::NotDelivered);

/// A line on which the statement that locks a job for a cancellation says something else.
fn lying(actors: &Actors, truth: &'static str, lie: String) -> anyhow::Result<Proxy> {
    let rewrite: Rewrite = Arc::new(move |sql| {
        let locks = sql.starts_with("-- store::request_cancellation\n");
        (locks && sql.contains(truth)).then(|| sql.replace(truth, &lie))
    });
    Proxy::start(actors.database.address(), Some(rewrite))
}

#[tokio::test]
async fn can_01_a_cancellation_writes_nothing_to_a_row_that_is_not_as_its_lock_said() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (tenant, _) = another_tenant(&actors).await?;
    // What is true, how the lock's statement is made to say something else, and on whose behalf.
    let theirs = ("tenant_id = $2", "$2::uuid IS NOT NULL");
    let cases = [
        (Stage::Running, ("SELECT status,", "SELECT 'Queued'::text AS status,"), actors.tenant),
        (Stage::Queued, ("SELECT status,", "SELECT 'Running'::text AS status,"), actors.tenant),
        (Stage::Delivering, ("SELECT status,", "SELECT 'Running'::text AS status,"), actors.tenant),
        (Stage::Stopping, ("stop_request_id,", "NULL::uuid AS stop_request_id,"), actors.tenant),
        (Stage::Queued, theirs, tenant),
        (Stage::Running, theirs, tenant),
    ];
    for (stage, (what, instead), tenant) in cases {
        let line = lying(&actors, what, instead.to_owned())?;
        let api = line.store(&actors.database, Role::Api).await?;
        let of = bring(&actors, &actors.new_job(), stage).await?;
        let before = everything(&actors).await?;
        let request = store::CancellationRequest { tenant, ..actors.cancellation(of.job) };
        let answer = store::request_cancellation(&api, request).await?;
        assert_eq!(answer, Cancellation::Busy, "{stage:?}, {instead}");
        assert!(everything(&actors).await? == before, "{stage:?}, {instead}");
    }
    Ok(())
}

#[tokio::test]
async fn lst_01_only_the_callers_own_correction_settles_its_lost_answer() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let line = Proxy::before(&actors.database)?;
    let corrector = line.store(&actors.database, Role::Corrector).await?;
    let one = actors.ended(DeliveryOutcome::Completed).await?;
    let other = actors.ended(DeliveryOutcome::Completed).await?;
    store::correct(&corrector, actors.correction(one, TO_FAILED)).await??;

    // In the same words, of another job.
    let struck = line.at("correct", Fault::cut(Moment::Before));
    let answer = store::correct(&corrector, actors.correction(other, TO_FAILED)).await;
    assert!(struck.has_happened() && !matches!(answer, Ok(Ok(()))), "{answer:?}");
    assert_eq!(actors.status(other.job).await?, Status::Completed);

    // Of the same job and by the same person, in other words.
    let Correction { decision, .. } = actors.correction(one, TO_FAILED);
    let decision = Decision::new(decision.by(), "something else", "ticket 2")?;
    let struck = line.at("correct", Fault::cut(Moment::After));
    let answer = store::correct(&corrector, Correction { decision, ..actors.correction(one, TO_FAILED) }).await;
    assert!(struck.has_happened() && !matches!(answer, Ok(Ok(()))), "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn lst_01_only_the_attempts_own_release_settles_its_lost_answer() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let line = Proxy::before(&actors.database)?;
    let worker = line.store(&actors.database, Role::Worker).await?;
    let released = bring(&actors, &actors.new_job(), Stage::Running).await?;
    assert!(store::release(&worker, World::release(released)).await?.is_written());
    let of = bring(&actors, &actors.new_job(), Stage::Running).await?;
    let struck = line.at("release", Fault::cut(Moment::Before));
    let answer = store::release(&worker, World::release(of)).await;
    assert!(struck.has_happened() && !matches!(answer, Ok(Write::Written(_))), "{answer:?}");
    assert_eq!(actors.status(of.job).await?, Status::Running);
    Ok(())
}

#[tokio::test]
async fn rcv_03_a_takeover_that_stops_asks_by_itself_whether_the_job_runs() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = bring(&actors, &actors.new_job(), Stage::Delivering).await?;
    // No row can be so; if one were, a file might be on its way.
    let mut admin = actors.database.admin().await?.acquire().await?.detach();
    admin
        .execute(
            "ALTER TABLE export_jobs DROP CONSTRAINT ck_export_jobs_stop_queued;
             SET session_replication_role = replica;
             UPDATE export_jobs SET stop_request_id = gen_random_uuid();",
        )
        .await?;
    actors.expire(of).await?;
    let before = everything(&actors).await?;
    let answer = actors.take_over(Case::Stop, of, "run-1").await?;
    assert!(matches!(answer, Write::Refused(_)), "{answer:?}");
    assert!(everything(&actors).await? == before);
    Ok(())
}
