use std::time::Duration;

use serde_json::json;
use uuid::Uuid;
use waybill::job::facts::Sha256;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{self, Conclusion, Ground, Reconciliation, ReconciliationByHand, Write};

use super::actors::{Actors, NOT_DELIVERED, reconciliation};
use crate::store::world::Attempt;

const SAME: Sha256 = Sha256([7; 32]);
const OTHER: Sha256 = Sha256([8; 32]);

#[tokio::test]
async fn rec_01_an_unknown_outcome_is_reconciled_once_and_both_events_survive() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for (conclusion, status, reason) in [
        (Conclusion::Completed(Ground::Listing), Status::Completed, None),
        (Conclusion::NotDelivered, Status::Failed, Some(FailureReason::NotDelivered)),
    ] {
        let of = actors.unknown(true).await?;
        assert!(actors.reconcile(of, conclusion).await?.is_written());
        let found = actors.found(of.job).await?;
        assert!(found.is(status, of.attempt) && found.failure_reason == reason, "{found:?}");
        let kinds = actors.kinds(of.job).await?;
        assert_eq!(kinds[kinds.len() - 2..], [EventKind::ResolvedByRecovery, EventKind::Reconciled]);
        let (observer, detail) = actors.detail(of.job, EventKind::Reconciled).await?;
        assert_eq!(observer.as_deref(), Some("reconciler-1"));
        assert_eq!(detail["outcome"], json!(status));
        assert_eq!(detail["proof"]["look"], "as the test says");

        for again in [Conclusion::NotDelivered, Conclusion::Completed(Ground::Attempt)] {
            assert!(matches!(actors.reconcile(of, again).await?, Write::Refused(found) if found.status == status));
        }
        let second = format!(
            "INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail)
             VALUES ('{}', '{}', 'Reconciled', 'reconciler-2', '{{}}')",
            of.job, of.attempt
        );
        assert_eq!(actors.refused(Role::Reconciler, &second).await?, "23505");
    }
    Ok(())
}

#[tokio::test]
async fn rec_01_a_reconciliation_asks_for_status_and_attempt() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(true).await?;
    let other = Attempt { attempt: Uuid::new_v4(), ..of };
    assert!(matches!(actors.reconcile(other, Conclusion::NotDelivered).await?, Write::Refused(_)));
    let missing = Attempt { job: Uuid::new_v4(), ..of };
    assert_eq!(actors.reconcile(missing, Conclusion::NotDelivered).await?, Write::Absent);
    let live = actors.intended().await?;
    assert!(
        matches!(actors.reconcile(live, Conclusion::NotDelivered).await?, Write::Refused(found) if found.status == Status::Delivering)
    );
    assert_eq!(actors.status(of.job).await?, Status::OutcomeUnknown);
    Ok(())
}

#[tokio::test]
async fn rec_01_of_two_reconcilers_and_a_person_one_settles_it() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(true).await?;
    let held = actors.hold(Role::Reconciler, of, EventKind::Reconciled).await?;
    let first = tokio::spawn({
        let pool = actors.reconciler.clone();
        async move { store::reconcile(&pool, reconciliation(of, Conclusion::NotDelivered)).await }
    });
    let reconciling = actors.blocked_by(held.pid).await?;
    let second = tokio::spawn({
        let (pool, by_hand) = (actors.corrector.clone(), actors.by_hand(of, true));
        async move { store::reconcile_by_hand(&pool, by_hand).await }
    });
    actors.blocked_by(reconciling).await?;
    held.roll_back().await?;
    assert!(first.await??.is_written());
    assert!(matches!(second.await??, Write::Refused(found) if found.is(Status::Failed, of.attempt)));
    Ok(())
}

#[tokio::test]
async fn rec_01_by_hand_a_named_person_records_why_and_where_the_evidence_is() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for (delivered, status) in [(true, Status::Completed), (false, Status::Failed)] {
        let of = actors.unknown(true).await?;
        let foreign = ReconciliationByHand { tenant: Uuid::new_v4(), ..actors.by_hand(of, delivered) };
        assert_eq!(
            store::reconcile_by_hand(&actors.corrector, foreign).await?,
            Write::Absent,
            "another tenant's is none"
        );
        let other = Attempt { attempt: Uuid::new_v4(), ..of };
        let stale = store::reconcile_by_hand(&actors.corrector, actors.by_hand(other, delivered)).await?;
        assert!(matches!(stale, Write::Refused(_)));

        assert!(store::reconcile_by_hand(&actors.corrector, actors.by_hand(of, delivered)).await?.is_written());
        assert!(actors.found(of.job).await?.is(status, of.attempt));
        let (person, detail) = actors.detail(of.job, EventKind::Reconciled).await?;
        assert_eq!(person.as_deref(), Some("rosa"));
        assert_eq!(detail["reason"], "the partner sent its log");
        assert_eq!(detail["evidence_ref"], "case 4711");
        assert_eq!(detail["rests_on"], "person");
        let again = store::reconcile_by_hand(&actors.corrector, actors.by_hand(of, !delivered)).await?;
        assert!(matches!(again, Write::Refused(_)), "once");
    }
    Ok(())
}

#[tokio::test]
async fn rec_01_each_reconciliation_has_its_own_login() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(true).await?;
    for role in [Role::Owner, Role::Api, Role::Worker, Role::Dispatcher, Role::Recovery, Role::Reader] {
        let error = store::reconcile(&actors.pool(role).await?, reconciliation(of, Conclusion::NotDelivered))
            .await
            .unwrap_err();
        assert!(matches!(error.code(), Some("42501" | "WB001")), "{role:?}: {error:?}");
    }
    assert_eq!(actors.status(of.job).await?, Status::OutcomeUnknown);
    Ok(())
}

#[tokio::test]
async fn fen_03_an_absent_fence_proves_not_delivered_in_the_reconciling_statement() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(false).await?;
    for ground in [Ground::Attempt, Ground::Content, Ground::Listing] {
        let refused = actors.reconcile(of, Conclusion::Completed(ground)).await?;
        assert!(matches!(refused, Write::Refused(_)), "a file found there is somebody else's: {ground:?}");
    }
    let by_hand = store::reconcile_by_hand(&actors.corrector, actors.by_hand(of, true)).await?;
    assert!(matches!(by_hand, Write::Refused(_)), "for a person too");

    let with_file = Reconciliation {
        proof: json!({ "found": { "name": "contacts.csv", "bytes": 99 } }),
        ..reconciliation(of, Conclusion::NeverFenced)
    };
    assert!(store::reconcile(&actors.reconciler, with_file).await?.is_written());
    let found = actors.found(of.job).await?;
    assert_eq!((found.status, found.failure_reason), (Status::Failed, Some(FailureReason::NotDelivered)));
    let detail = actors.detail(of.job, EventKind::Reconciled).await?.1;
    assert_eq!(detail["rests_on"], "absent_fence");
    assert_eq!(detail["proof"]["found"]["name"], "contacts.csv");

    let fenced = actors.unknown(true).await?;
    assert!(
        matches!(actors.reconcile(fenced, Conclusion::NeverFenced).await?, Write::Refused(found) if found.publish_intended)
    );
    Ok(())
}

#[tokio::test]
async fn fen_03_while_the_attempt_owns_the_job_an_absent_fence_proves_nothing() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.delivering().await?;
    actors.expire(of).await?;
    assert!(
        matches!(actors.reconcile(of, Conclusion::NeverFenced).await?, Write::Refused(found) if found.status == Status::Delivering)
    );
    Ok(())
}

#[tokio::test]
async fn fen_03_ops_04_a_database_that_lost_commits_may_have_lost_the_fence() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.unknown(false).await?;
    actors.forget_history(of.job).await?;
    assert!(!actors.reconcile(of, Conclusion::NeverFenced).await?.is_written());
    actors.accept_loss(of.job, false).await?;
    assert!(!actors.reconcile(of, Conclusion::NeverFenced).await?.is_written(), "fences may be among what was lost");

    let delivered = actors.unknown(false).await?;
    actors.forget_history(delivered.job).await?;
    assert!(
        actors.reconcile(delivered, Conclusion::Completed(Ground::Content)).await?.is_written(),
        "a checksum counts"
    );

    actors.accept_loss(of.job, true).await?;
    assert!(
        !actors.reconcile(of, Conclusion::Completed(Ground::Content)).await?.is_written(),
        "now it is a proof again"
    );
    assert!(actors.reconcile(of, Conclusion::NeverFenced).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn rec_05_a_listing_completes_neither_once_another_attempt_of_the_key_was_authorized() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let of = actors.replacement_under_way(original.job, SAME).await?;
    actors.finish(of, store::DeliveryOutcome::OutcomeUnknown).await?.written().unwrap();
    for side in [original, of] {
        for ground in [Ground::Listing, Ground::Content] {
            let refused = actors.reconcile(side, Conclusion::Completed(ground)).await?;
            assert!(matches!(refused, Write::Refused(found) if found.status == Status::OutcomeUnknown), "{ground:?}");
        }
    }
    for side in [original, of] {
        assert!(
            actors.reconcile(side, Conclusion::Completed(Ground::Attempt)).await?.is_written(),
            "what names it counts"
        );
    }

    let original = actors.unknown(true).await?;
    let other = actors.replacement_under_way(original.job, OTHER).await?;
    actors.finish(other, NOT_DELIVERED).await?.written().unwrap();
    assert!(
        !actors.reconcile(original, Conclusion::Completed(Ground::Listing)).await?.is_written(),
        "however it ended"
    );
    assert!(actors.reconcile(original, Conclusion::Completed(Ground::Content)).await?.is_written(), "its own content");
    Ok(())
}

#[tokio::test]
async fn rec_05_a_replacement_that_was_not_authorized_takes_nothing_away() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let replacement = actors.replacement(original.job).await?;
    actors.claimed(replacement).await?;
    assert!(actors.reconcile(original, Conclusion::Completed(Ground::Listing)).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn rec_04_the_look_for_the_outcome_ends_or_goes_on_for_the_acknowledgment() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let period = Some(Duration::from_secs(3600));
    let look = |of: Attempt, what: &str| {
        format!("SELECT count(*) FROM looks WHERE job_id = '{}' AND purpose = 'acknowledgment' AND {what}", of.job)
    };
    let leased = |of: Attempt| {
        format!(
            "UPDATE looks SET owner = 'reconciler-1', token = gen_random_uuid(), expires_at = clock_timestamp() + interval '1 minute'
             WHERE job_id = '{}'",
            of.job
        )
    };

    let ended = actors.unknown(true).await?;
    actors.run(Role::Reconciler, &leased(ended)).await?;
    assert!(actors.reconcile(ended, Conclusion::NotDelivered).await?.is_written());
    assert_eq!(actors.count(&look(ended, "ended_at IS NOT NULL AND token IS NULL")).await?, 1);

    let goes_on = actors.unknown(true).await?;
    actors.run(Role::Reconciler, &leased(goes_on)).await?;
    let with_period = Reconciliation {
        acknowledgment_within: period,
        ..reconciliation(goes_on, Conclusion::Completed(Ground::Content))
    };
    assert!(store::reconcile(&actors.reconciler, with_period).await?.is_written());
    let open = "ended_at IS NULL AND token IS NULL AND next_at > clock_timestamp() AND until > next_at";
    assert_eq!(actors.count(&look(goes_on, open)).await?, 1);

    let by_hand = actors.unknown(true).await?;
    assert!(store::reconcile_by_hand(&actors.corrector, actors.by_hand(by_hand, false)).await?.is_written());
    assert_eq!(actors.count(&look(by_hand, "ended_at IS NOT NULL")).await?, 1);

    let under_way = actors.unknown(true).await?;
    actors.run(Role::Reconciler, &leased(under_way)).await?;
    assert!(store::reconcile_by_hand(&actors.corrector, actors.by_hand(under_way, false)).await?.is_written());
    let left = "ended_at IS NULL AND token IS NOT NULL AND until <= clock_timestamp()";
    assert_eq!(actors.count(&look(under_way, left)).await?, 1, "the reconciler's lease is its own");

    let kept = actors.unknown(true).await?;
    let with_period = ReconciliationByHand { acknowledgment_within: period, ..actors.by_hand(kept, true) };
    assert!(store::reconcile_by_hand(&actors.corrector, with_period).await?.is_written());
    assert_eq!(actors.count(&look(kept, open)).await?, 1);
    Ok(())
}
