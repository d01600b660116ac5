//! What is read, counted and switched of one destination is its own: its check, its probe, its starts, its wake-ups.

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, FinishedCheck, PublishedWakeup, Switch, Switched};

use super::{SOON, another_tenant};
use crate::recovery::actors::Actors;
use crate::store::world::{CHECKED, check_of};

#[tokio::test]
async fn clm_06_a_check_that_has_not_ended_proves_nothing_and_takes_nothing_away() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let proof = json!({ "form": "link" });
    store::keep_check(&actors.worker, check_of(actors.destination, "openssh", proof.clone())).await?;
    let asked = format!(
        "INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by, server, server_fingerprint, checked)
         VALUES ('{}', '{}', '{}', 'rosa', '{{}}', 'openssh', '{CHECKED}')",
        Uuid::new_v4(),
        actors.tenant,
        actors.destination
    );
    sqlx::query(sqlx::AssertSqlSafe(asked)).execute(&actors.database.admin().await?).await?;
    let found = store::find_check(&actors.worker, actors.destination, CHECKED, "openssh").await?;
    assert_eq!(found.map(|showed| showed.proof), Some(proof));
    Ok(())
}

#[tokio::test]
async fn plg_01_a_check_is_told_and_kept_of_its_own_destination() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let other = actors.destination(actors.tenant, json!({})).await?;
    let open = Uuid::new_v4();
    let asked = format!(
        "INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by, checked)
         VALUES ('{open}', '{}', '{}', 'rosa', '{CHECKED}')",
        actors.tenant, actors.destination
    );
    sqlx::query(sqlx::AssertSqlSafe(asked)).execute(&actors.database.admin().await?).await?;
    for (destination, form) in [(actors.destination, "link"), (other, "rename")] {
        store::keep_check(&actors.worker, check_of(destination, "openssh", json!({ "form": form }))).await?;
    }
    for (destination, form) in [(actors.destination, "link"), (other, "rename")] {
        let elsewhere = FinishedCheck { checked: "as it was".to_owned(), ..check_of(destination, "other", json!({})) };
        store::keep_check(&actors.worker, elsewhere).await?;
        let latest = store::latest_check(&actors.api, destination, CHECKED).await?.context("no check")?;
        assert_eq!(latest.proof, Some(json!({ "form": form })), "the check of another server counts");
    }
    let left = format!("SELECT count(*) FROM destination_checks WHERE id = '{open}' AND finished_at IS NULL");
    assert_eq!(actors.count(&left).await?, 1, "what was asked for and not done is as it was");
    Ok(())
}

#[tokio::test]
async fn clm_06_policy_reads_of_its_own_destination_and_counts_claims_only() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let other = actors.destination(actors.tenant, json!({})).await?;
    let first = actors.queued().await?;
    let second = actors.create(&store::NewJob { destination: other, ..actors.new_job() }).await?;
    for (job, destination) in [(first, actors.destination), (second, other)] {
        let state = store::destination_state(&actors.worker, destination).await?.context("the destination")?;
        let facts = store::policy_facts(&actors.worker, job, Some(SOON)).await?.context("facts")?;
        assert_eq!((facts.destination, facts.destination_name), (destination, state.name));
    }
    // What another job probes is told as long as it has time or runs.
    store::pause_destination(&actors.worker, actors.destination, first).await?;
    actors.end_pauses().await?;
    let prober = actors.queued().await?;
    assert!(store::take_probe(&actors.worker, actors.destination, prober, SOON).await?);
    let probing = async || {
        let facts = store::policy_facts(&actors.worker, first, None).await?.context("facts")?;
        anyhow::Ok(facts.pause.context("it is paused")?.probing)
    };
    assert_eq!(probing().await?, Some(prober));
    actors.end_probes().await?;
    assert_eq!(probing().await?, None);

    let claimed = actors.claimed(prober).await?;
    let named = json!({ "evidence": "publish", "destination_id": actors.destination }).to_string();
    actors.record(prober, claimed.attempt, &named).await?;
    let facts = store::policy_facts(&actors.worker, first, Some(SOON)).await?.context("facts")?;
    assert_eq!(facts.started, 1, "evidence that names a destination is no start there");
    let facts = store::policy_facts(&actors.worker, first, None).await?.context("facts")?;
    assert_eq!((facts.started, facts.oldest_start), (0, std::time::Duration::ZERO), "no rate, no count");
    Ok(())
}

#[tokio::test]
async fn brk_03_what_waits_for_later_stands_in_nobodys_way() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let dispatcher = actors.pool(Role::Dispatcher).await?;
    let receive = async |most| {
        store::receive_wakeups(&actors.worker, "w-1", Uuid::new_v4(), &[actors.destination], most, SOON).await
    };
    // More of them, and more urgent, than are looked at for one.
    for _ in 0..4 {
        let job = actors.create(&store::NewJob { priority: 9, ..actors.new_job() }).await?;
        let published = store::publish_wakeup(&dispatcher, Uuid::new_v4(), job).await?;
        assert!(matches!(published, PublishedWakeup::Published { .. }), "{published:?}");
    }
    let token = Uuid::new_v4();
    let taken = store::receive_wakeups(&actors.worker, "w-1", token, &[actors.destination], 4, SOON).await?;
    assert_eq!(taken.len(), 4);
    for wakeup in taken {
        assert!(store::hand_back_wakeup(&actors.worker, wakeup.message, token, SOON).await?);
    }
    let job = actors.queued().await?;
    let published = store::publish_wakeup(&dispatcher, Uuid::new_v4(), job).await?;
    assert!(matches!(published, PublishedWakeup::Published { .. }), "{published:?}");
    let received = receive(1).await?;
    assert_eq!(received.iter().map(|wakeup| wakeup.job).collect::<Vec<_>>(), [job]);
    Ok(())
}

#[tokio::test]
async fn clm_06_a_destinations_state_is_its_own_and_a_lapsed_probe_is_none() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (_, theirs) = another_tenant(&actors).await?;
    let others = [actors.destination(actors.tenant, json!({})).await?, theirs];
    for destination in [actors.destination, others[0], others[1]] {
        let state = store::destination_state(&actors.worker, destination).await?.context("the destination")?;
        assert_eq!(state.id, destination);
    }
    let job = actors.queued().await?;
    store::pause_destination(&actors.worker, actors.destination, job).await?;
    actors.end_pauses().await?;
    assert!(store::take_probe(&actors.worker, actors.destination, job, SOON).await?);
    let probing = async || {
        let state = store::destination_state(&actors.worker, actors.destination).await?.context("the destination")?;
        anyhow::Ok(state.pause.context("it is paused")?.probing)
    };
    assert_eq!(probing().await?, Some(job));
    actors.end_probes().await?;
    assert_eq!(probing().await?, None, "its time is over, and it never ran");
    Ok(())
}

pub(super) fn switch(tenant: Uuid, destination: Uuid) -> Switch {
    Switch { tenant, destination, switched_by: "rosa".to_owned(), reason: "why".to_owned() }
}

#[tokio::test]
async fn plg_01_switching_on_is_decided_by_the_destinations_own_finished_check() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (ours, other) = (actors.destination, actors.destination(actors.tenant, json!({})).await?);
    for destination in [ours, other] {
        let off = store::disable_destination(&actors.api, &switch(actors.tenant, destination)).await?;
        assert_eq!(off, Switched::Switched { before: true });
        store::keep_check(&actors.worker, check_of(destination, "openssh", json!({}))).await?;
    }
    let check = store::latest_check(&actors.api, ours, CHECKED).await?.context("no check")?.id;
    let admin = actors.database.admin().await?;
    let as_it_is = format!("UPDATE destinations SET digests = jsonb_build_object('checked', '{CHECKED}')");
    // Asked for, and not done.
    let asked = format!(
        "INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by, checked)
         VALUES ('{}', '{}', '{ours}', 'rosa', '{CHECKED}')",
        Uuid::new_v4(),
        actors.tenant
    );
    for statement in [as_it_is, asked] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&admin).await?;
    }
    let unknown = switch(actors.tenant, Uuid::new_v4());
    assert_eq!(store::enable_destination(&actors.api, &unknown, &json!({}), check).await?, Switched::Absent);
    let on = store::enable_destination(&actors.api, &switch(actors.tenant, ours), &json!({}), check).await?;
    assert_eq!(on, Switched::Switched { before: false });
    for (destination, enabled) in [(ours, true), (other, false)] {
        let state = store::destination_state(&actors.worker, destination).await?.context("the destination")?;
        assert_eq!(state.enabled, enabled);
    }
    Ok(())
}
