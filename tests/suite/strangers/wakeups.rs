//! The outbox and its wake-ups: by message and lease.

use sqlx::Executor as _;
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, ConnectOptions, OutboxAnswer, PublishedWakeup};

use super::{SOON, everything, of};
use crate::recovery::actors::Actors;

#[tokio::test]
async fn out_04_an_entry_is_settled_by_message_and_lease() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let dispatcher = actors.pool(Role::Dispatcher).await?;
    for _ in 0..2 {
        actors.queued().await?;
    }
    let (mine, theirs) = (Uuid::new_v4(), Uuid::new_v4());
    let one = store::claim_outbox(&dispatcher, "dispatcher-1", mine, 1, SOON).await?.remove(0);
    let other = store::claim_outbox(&dispatcher, "dispatcher-2", theirs, 1, SOON).await?.remove(0);
    assert_ne!(one.message, other.message);
    for (message, token) in [(one.message, theirs), (other.message, mine), (Uuid::new_v4(), mine)] {
        let before = everything(&actors).await?;
        assert_ne!(store::complete_outbox(&dispatcher, message, token).await?, OutboxAnswer::Applied);
        assert_ne!(store::fail_outbox(&dispatcher, message, token, "Down", SOON).await?, OutboxAnswer::Applied);
        assert_eq!(store::release_outbox(&dispatcher, token, &[message]).await?, 0);
        assert!(everything(&actors).await? == before);
    }
    let left = of(&actors, other.message).await?;
    assert_eq!(store::fail_outbox(&dispatcher, one.message, mine, "Down", SOON).await?, OutboxAnswer::Applied);
    assert!(of(&actors, other.message).await? == left);
    assert_eq!(store::release_outbox(&dispatcher, theirs, &[other.message]).await?, 1);
    let again = Uuid::new_v4();
    let other = store::claim_outbox(&dispatcher, "dispatcher-1", again, 10, SOON).await?;
    assert_eq!(other.len(), 1, "the failed one waits");
    let failed = of(&actors, one.message).await?;
    assert_eq!(store::complete_outbox(&dispatcher, other[0].message, again).await?, OutboxAnswer::Applied);
    assert!(of(&actors, one.message).await? == failed);
    // An end is an end.
    let before = everything(&actors).await?;
    assert_ne!(store::complete_outbox(&dispatcher, other[0].message, again).await?, OutboxAnswer::Applied);
    assert_ne!(store::fail_outbox(&dispatcher, other[0].message, again, "Down", SOON).await?, OutboxAnswer::Applied);
    assert_eq!(store::release_outbox(&dispatcher, again, &[other[0].message]).await?, 0);
    assert!(everything(&actors).await? == before);
    Ok(())
}

#[tokio::test]
async fn brk_03_a_wake_up_is_settled_by_message_and_lease() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let dispatcher = actors.pool(Role::Dispatcher).await?;
    for _ in 0..2 {
        let job = actors.queued().await?;
        let message = Uuid::new_v4();
        let published = store::publish_wakeup(&dispatcher, message, job).await?;
        assert_eq!(published, PublishedWakeup::Published { destination: actors.destination });
    }
    let before = everything(&actors).await?;
    for job in [Uuid::new_v4(), actors.ended(store::DeliveryOutcome::Completed).await?.job] {
        let published = store::publish_wakeup(&dispatcher, Uuid::new_v4(), job).await?;
        assert!(!matches!(published, PublishedWakeup::Published { .. }), "{published:?}");
    }
    assert!(everything(&actors).await?["wakeups"] == before["wakeups"]);

    let receive = async |token, destination| {
        store::receive_wakeups(&actors.worker, "worker-1", token, &[destination], 1, SOON).await
    };
    let (mine, theirs) = (Uuid::new_v4(), Uuid::new_v4());
    assert_eq!(receive(mine, Uuid::new_v4()).await?.len(), 0, "at another destination");
    let one = receive(mine, actors.destination).await?.remove(0);
    let other = receive(theirs, actors.destination).await?.remove(0);
    assert_ne!(one.message, other.message);
    assert_eq!(receive(mine, actors.destination).await?.len(), 0, "both are held");
    for (message, token) in [(one.message, theirs), (other.message, mine), (Uuid::new_v4(), mine)] {
        let before = everything(&actors).await?;
        assert!(!store::hold_wakeup(&actors.worker, message, token, SOON).await?);
        assert!(!store::hand_back_wakeup(&actors.worker, message, token, SOON).await?);
        assert!(!store::settle_wakeup(&actors.worker, message, token).await?);
        assert!(everything(&actors).await? == before);
    }
    let left = of(&actors, other.message).await?;
    assert!(store::hold_wakeup(&actors.worker, one.message, mine, SOON).await?);
    assert!(store::hand_back_wakeup(&actors.worker, one.message, mine, SOON).await?);
    assert_eq!(receive(mine, actors.destination).await?.len(), 0, "one is held, one waits");
    assert!(of(&actors, other.message).await? == left);
    let waits = of(&actors, one.message).await?;
    assert!(store::settle_wakeup(&actors.worker, other.message, theirs).await?);
    assert!(of(&actors, one.message).await? == waits);
    Ok(())
}

#[tokio::test]
async fn brk_03_what_another_worker_took_meanwhile_is_not_received_as_well() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let dispatcher = actors.pool(Role::Dispatcher).await?;
    let job = actors.queued().await?;
    let published = store::publish_wakeup(&dispatcher, Uuid::new_v4(), job).await?;
    assert!(matches!(published, PublishedWakeup::Published { .. }), "{published:?}");
    // The slow worker stops between its look and its lock: at a gate in a policy of the table.
    let mut gate = actors.database.admin().await?.acquire().await?.detach();
    gate.execute(
        "CREATE FUNCTION gate() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('application_name') = 'slow' THEN
                 PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
             END IF;
             RETURN true;
         END $$;
         CREATE POLICY gated ON wakeups USING (gate());
         ALTER TABLE wakeups ENABLE ROW LEVEL SECURITY;
         SELECT pg_advisory_lock(1);",
    )
    .await?;
    let closed_by = waybill_tests::database::backend_pid(&mut gate).await?;
    let options = ConnectOptions::new(actors.database.url(), "slow");
    let (slow, served) = (store::connect(Role::Worker, &options).await?, [actors.destination]);
    let slow =
        tokio::spawn(async move { store::receive_wakeups(&slow, "w-1", Uuid::new_v4(), &served, 1, SOON).await });
    actors.blocked_by(closed_by).await?;
    let quick = store::receive_wakeups(&actors.worker, "w-2", Uuid::new_v4(), &[actors.destination], 1, SOON).await?;
    gate.execute("SELECT pg_advisory_unlock(1)").await?;
    let slow = slow.await??;
    assert_eq!((quick.len(), slow.len()), (1, 0), "{quick:?} {slow:?}");
    Ok(())
}
