//! Writes about one job: by the whole key or not at all, and from their own states only.

use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;
use waybill::job::evidence::{Evidence, PublishForm, Receipt};
use waybill::job::status::FailureReason;
use waybill::store::take_over::{self, Resolution, TakeOver};
use waybill::store::{
    self, Conclusion, Corrected, DeliveryOutcome, Edit, Ground, NextLook, Reconciliation, ReconciliationByHand,
    TermsEdit, Write,
};

use super::{SOON, STAGES, Stage, another_tenant, bring, delivery, everything, of};
use crate::recovery::actors::{Actors, NOT_DELIVERED, reconciliation, resolving};
use crate::store::world::{Attempt, LEASE, MAX_ATTEMPTS, World};

/// A write, and where it may take place.
struct Act {
    name: &'static str,
    from: &'static [Stage],
    /// The lease must have run out.
    expired: bool,
    run: for<'a> fn(&'a Actors, Uuid, Attempt) -> BoxFuture<'a, anyhow::Result<bool>>,
}

macro_rules! act {
    ($name:literal, $from:expr, $expired:literal, |$actors:ident, $tenant:ident, $of:ident| $run:expr) => {
        Act {
            name: $name,
            from: $from,
            expired: $expired,
            run: |$actors, $tenant, $of| {
                let _ = $tenant;
                Box::pin(async move { Ok($run) })
            },
        }
    };
}

const ACTS: &[Act] = &[
    act!(
        "renew",
        &[Stage::Running, Stage::Stopping, Stage::Delivering, Stage::Intended],
        false,
        |actors, tenant, of| store::renew(&actors.worker, of.job, of.attempt, LEASE).await?.is_written()
    ),
    act!("authorize_delivery", &[Stage::Running], false, |actors, tenant, of| {
        let answer = store::authorize_delivery(&actors.worker, delivery(actors, of).await?).await?;
        answer == store::Authorization::Authorized
    }),
    act!("intend_publish", &[Stage::Delivering], false, |actors, tenant, of| {
        store::intend_publish(&actors.worker, of.job, of.attempt, PublishForm::Link).await?.is_written()
    }),
    act!("finish_delivery", &[Stage::Delivering, Stage::Intended], false, |actors, tenant, of| {
        actors.finish(of, NOT_DELIVERED).await?.is_written()
    }),
    act!("finish_delivery, completed", &[Stage::Intended], false, |actors, tenant, of| {
        actors.finish(of, DeliveryOutcome::Completed).await?.is_written()
    }),
    act!("finish_failed", &[Stage::Running, Stage::Stopping], false, |actors, tenant, of| {
        let reason = FailureReason::BuildFailed;
        store::finish_failed(&actors.worker, of.job, of.attempt, reason, "no rows").await?.is_written()
    }),
    act!("finish_stopped", &[Stage::Stopping], false, |actors, tenant, of| {
        store::finish_stopped(&actors.worker, of.job, of.attempt, "building").await?.is_written()
    }),
    act!("release", &[Stage::Running, Stage::Stopping], false, |actors, tenant, of| {
        store::release(&actors.worker, World::release(of)).await?.is_written()
    }),
    act!("requeue", &[Stage::Running], true, |actors, tenant, of| {
        take_over::requeue(&actors.recovery, taking(of), MAX_ATTEMPTS).await?.is_written()
    }),
    act!("exhaust", &[Stage::Running], true, |actors, tenant, of| {
        take_over::exhaust(&actors.recovery, taking(of), 1).await?.is_written()
    }),
    act!("stop", &[Stage::Stopping], true, |actors, tenant, of| {
        take_over::stop(&actors.recovery, taking(of)).await?.is_written()
    }),
    act!("resolve", &[Stage::Delivering, Stage::Intended], true, |actors, tenant, of| {
        take_over::resolve(&actors.recovery, resolving(of, Resolution::OutcomeUnknown, "run-1")).await?.is_written()
    }),
    act!("resolve, by content", &[Stage::Intended], true, |actors, tenant, of| {
        let resolution = Resolution::Completed(Ground::Content);
        take_over::resolve(&actors.recovery, resolving(of, resolution, "run-1")).await?.is_written()
    }),
    act!("resolve, by a listing", &[Stage::Intended], true, |actors, tenant, of| {
        let resolution = Resolution::Completed(Ground::Listing);
        take_over::resolve(&actors.recovery, resolving(of, resolution, "run-1")).await?.is_written()
    }),
    act!("reconcile, by content", &[Stage::Unknown], false, |actors, tenant, of| {
        let reconciliation = reconciliation(of, Conclusion::Completed(Ground::Content));
        store::reconcile(&actors.reconciler, reconciliation).await?.is_written()
    }),
    act!("reconcile, by a listing", &[Stage::Unknown], false, |actors, tenant, of| {
        let reconciliation = Reconciliation {
            acknowledgment_within: Some(SOON),
            ..reconciliation(of, Conclusion::Completed(Ground::Listing))
        };
        store::reconcile(&actors.reconciler, reconciliation).await?.is_written()
    }),
    act!("reconcile, never fenced", &[Stage::Unfenced], false, |actors, tenant, of| {
        store::reconcile(&actors.reconciler, reconciliation(of, Conclusion::NeverFenced)).await?.is_written()
    }),
    act!("reconcile, not delivered", &[Stage::Unknown, Stage::Unfenced], false, |actors, tenant, of| {
        store::reconcile(&actors.reconciler, reconciliation(of, Conclusion::NotDelivered)).await?.is_written()
    }),
    act!("reconcile_by_hand", &[Stage::Unknown, Stage::Unfenced], false, |actors, tenant, of| {
        let by_hand = ReconciliationByHand { tenant, ..actors.by_hand(of, false) };
        store::reconcile_by_hand(&actors.corrector, by_hand).await?.is_written()
    }),
    act!("correct to completed", &[Stage::Failed], false, |actors, tenant, of| {
        let correction = store::Correction { tenant, ..actors.correction(of, Corrected::ToCompleted) };
        store::correct(&actors.corrector, correction).await?.is_ok()
    }),
    act!("correct to failed", &[Stage::Completed], false, |actors, tenant, of| {
        let correction =
            store::Correction { tenant, ..actors.correction(of, Corrected::ToFailed(FailureReason::NotDelivered)) };
        store::correct(&actors.corrector, correction).await?.is_ok()
    }),
];

fn taking(of: Attempt) -> TakeOver {
    TakeOver { job: of.job, attempt: of.attempt, run: "run-1".to_owned() }
}

/// Brought there, with its lease as the act wants it.
async fn subject(
    actors: &Actors,
    act: &Act,
    stage: Stage,
    tenant: Uuid,
    destination: Uuid,
    key: &str,
) -> anyhow::Result<Attempt> {
    let new = store::NewJob { tenant, destination, delivery_key: key.to_owned(), ..actors.new_job() };
    let of = bring(actors, &new, stage).await?;
    if act.expired && matches!(stage, Stage::Running | Stage::Stopping | Stage::Delivering | Stage::Intended) {
        actors.expire(of).await?;
    }
    Ok(of)
}

#[tokio::test]
async fn aut_03_no_write_goes_by_half_of_its_key_and_none_touches_a_stranger() -> anyhow::Result<()> {
    for act in ACTS {
        let actors = Actors::new().await?;
        let (other, their) = another_tenant(&actors).await?;
        let stage = act.from[0];
        let ours = (actors.tenant, actors.destination);
        let one = subject(&actors, act, stage, ours.0, ours.1, "spring").await?;
        let neighbour = subject(&actors, act, stage, ours.0, ours.1, "summer").await?;
        // The same delivery key, the same content.
        let stranger = subject(&actors, act, stage, other, their, "spring").await?;
        for (tenant, job, attempt) in [
            (ours.0, one.job, neighbour.attempt),
            (ours.0, neighbour.job, one.attempt),
            (ours.0, one.job, stranger.attempt),
            (ours.0, one.job, Uuid::new_v4()),
            (ours.0, Uuid::new_v4(), one.attempt),
        ] {
            let before = everything(&actors).await?;
            // Whoever names a job that is not there cannot be told what it should deliver.
            let answer = (act.run)(&actors, tenant, Attempt { job, attempt }).await;
            assert!(!answer.unwrap_or(false), "{}: written by half of its key", act.name);
            assert!(everything(&actors).await? == before, "{}: something changed", act.name);
        }
        let strangers = [of(&actors, neighbour.job).await?, of(&actors, stranger.job).await?];
        assert!((act.run)(&actors, ours.0, one).await?, "{} was refused beside strangers", act.name);
        assert!([of(&actors, neighbour.job).await?, of(&actors, stranger.job).await?] == strangers, "{}", act.name);
    }
    Ok(())
}

#[tokio::test]
async fn aut_03_every_write_is_refused_in_every_state_but_its_own() -> anyhow::Result<()> {
    for act in ACTS {
        let actors = Actors::new().await?;
        for stage in STAGES {
            let of = subject(&actors, act, stage, actors.tenant, actors.destination, &format!("{stage:?}")).await?;
            if act.from.contains(&stage) {
                continue;
            }
            let before = everything(&actors).await?;
            let answer = (act.run)(&actors, actors.tenant, of).await;
            let answer = answer.map_err(|error| error.context(format!("{} from {stage:?}", act.name)))?;
            // Asked once more, cutoff 2 tells what it has already written.
            let told = act.name == "authorize_delivery" && matches!(stage, Stage::Delivering | Stage::Intended);
            assert_eq!(answer, told, "{} from {stage:?}", act.name);
            assert!(everything(&actors).await? == before, "{} from {stage:?} changed something", act.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn rcv_10_no_takeover_of_a_current_lease() -> anyhow::Result<()> {
    for act in ACTS.iter().filter(|act| act.expired) {
        let actors = Actors::new().await?;
        for stage in act.from {
            let unexpired = Act { expired: false, ..*act };
            let key = format!("{stage:?}");
            let of = subject(&actors, &unexpired, *stage, actors.tenant, actors.destination, &key).await?;
            assert!(!(act.run)(&actors, actors.tenant, of).await?, "{} of a current lease", act.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn edt_01_can_03_terms_and_people_reach_the_job_and_tenant_that_they_name() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (other, their) = another_tenant(&actors).await?;
    let key = |tenant, destination, key: &str| store::NewJob {
        tenant,
        destination,
        delivery_key: key.to_owned(),
        ..actors.new_job()
    };
    let one = bring(&actors, &key(actors.tenant, actors.destination, "spring"), Stage::Queued).await?;
    let neighbour = bring(&actors, &key(actors.tenant, actors.destination, "summer"), Stage::Queued).await?;
    let stranger = bring(&actors, &key(other, their, "spring"), Stage::Queued).await?;
    let edit = |tenant, job| TermsEdit {
        tenant,
        job,
        expected_version: 1,
        destination: actors.destination,
        scope: json!({ "list": "autumn" }),
        not_before: None,
        edited_by: "olga".to_owned(),
    };
    let before = everything(&actors).await?;
    assert!(!matches!(store::edit_terms(&actors.api, edit(other, one.job)).await?, Edit::Answered(Write::Written(_))));
    assert!(!matches!(
        store::edit_terms(&actors.api, edit(actors.tenant, Uuid::new_v4())).await?,
        Edit::Answered(Write::Written(_))
    ));
    assert!(!store::reject(&actors.worker, Uuid::new_v4(), 1, json!({})).await?.is_written());
    assert!(!store::reject(&actors.worker, one.job, 2, json!({})).await?.is_written());
    assert!(everything(&actors).await? == before);

    let strangers = [of(&actors, neighbour.job).await?, of(&actors, stranger.job).await?];
    assert!(matches!(
        store::edit_terms(&actors.api, edit(actors.tenant, one.job)).await?,
        Edit::Answered(Write::Written(_))
    ));
    assert!(store::reject(&actors.worker, one.job, 2, json!({ "why": "list" })).await?.is_written());
    assert!([of(&actors, neighbour.job).await?, of(&actors, stranger.job).await?] == strangers);
    for stage in STAGES.into_iter().filter(|stage| *stage != Stage::Queued) {
        let of = bring(&actors, &key(actors.tenant, actors.destination, &format!("{stage:?}")), stage).await?;
        let before = everything(&actors).await?;
        assert!(!store::reject(&actors.worker, of.job, 1, json!({})).await?.is_written(), "{stage:?}");
        assert!(!matches!(
            store::edit_terms(&actors.api, edit(actors.tenant, of.job)).await?,
            Edit::Answered(Write::Written(_))
        ));
        assert!(everything(&actors).await? == before, "{stage:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rec_02_a_look_is_held_by_job_attempt_and_lease() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let new = |key: &str| store::NewJob { delivery_key: key.to_owned(), ..actors.new_job() };
    bring(&actors, &new("spring"), Stage::Unknown).await?;
    bring(&actors, &new("summer"), Stage::Unknown).await?;
    actors.make_looks_due().await?;
    let claim = async |destinations: &[Uuid], lease| {
        store::claim_look(&actors.reconciler, "reconciler-1", destinations, lease).await
    };
    assert_eq!(claim(&[Uuid::new_v4()], SOON).await?, None, "at another destination");
    let one = claim(&[actors.destination], SOON).await?.ok_or_else(|| anyhow::anyhow!("no look"))?;
    let other = claim(&[actors.destination], SOON).await?.ok_or_else(|| anyhow::anyhow!("no other look"))?;
    assert_ne!(one.job, other.job);
    assert_eq!(claim(&[actors.destination], SOON).await?, None, "both are held");

    let half = |job, attempt, token| store::DueLook { job, attempt, token, ..one.clone() };
    for wrong in [
        half(other.job, one.attempt, one.token),
        half(one.job, other.attempt, one.token),
        half(one.job, one.attempt, other.token),
        half(other.job, other.attempt, one.token),
    ] {
        let before = everything(&actors).await?;
        assert!(!store::finish_look(&actors.reconciler, &wrong, None, NextLook::Never).await?);
        let intended = store::intend_removal(&actors.reconciler, &wrong, "run-1", ".part", SOON).await?;
        assert!(!intended.is_written());
        assert!(everything(&actors).await? == before, "{wrong:?}");
    }
    let theirs = of(&actors, other.job).await?;
    assert!(store::intend_removal(&actors.reconciler, &one, "run-1", ".part", SOON).await?.is_written());
    assert!(store::finish_look(&actors.reconciler, &one, None, NextLook::After(SOON)).await?);
    assert!(of(&actors, other.job).await? == theirs);
    assert_eq!(claim(&[actors.destination], SOON).await?, None, "not due yet");
    assert!(store::finish_look(&actors.reconciler, &other, None, NextLook::Never).await?);
    assert!(!store::finish_look(&actors.reconciler, &other, None, NextLook::After(SOON)).await?, "it has ended");
    actors.make_looks_due().await?;
    let again = claim(&[actors.destination], std::time::Duration::ZERO).await?.ok_or_else(|| anyhow::anyhow!("due"))?;
    assert_eq!(again.job, one.job, "the other has ended");
    let intended = store::intend_removal(&actors.reconciler, &again, "run-2", ".part", SOON).await?;
    assert!(!intended.is_written(), "its lease has run out");
    Ok(())
}

#[tokio::test]
async fn rcv_08_evidence_is_appended_to_a_claimed_attempt_of_that_job() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (one, other) = (actors.delivering().await?, actors.delivering().await?);
    let evidence = Evidence::Observation(Receipt::default());
    for (job, attempt) in [(one.job, other.attempt), (other.job, one.attempt), (one.job, Uuid::new_v4())] {
        let before = everything(&actors).await?;
        let appended = store::append_evidence(&actors.worker, job, attempt, "worker-1", &evidence).await?;
        assert!(!appended.is_written());
        assert!(everything(&actors).await? == before);
    }
    let theirs = of(&actors, other.job).await?;
    let appended = store::append_evidence(&actors.worker, one.job, one.attempt, "worker-1", &evidence).await?;
    assert!(appended.is_written());
    assert!(of(&actors, other.job).await? == theirs);
    Ok(())
}
