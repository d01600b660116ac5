//! Writes about one destination leave every other one as it was.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;
use waybill::store::{self, NewJob, Pausing};

use super::{SOON, STAGES, Stage, another_tenant, bring, everything, of};
use crate::recovery::actors::Actors;
use crate::store::world::{CHECKED, check_of};

type Run = for<'a> fn(&'a Actors, Uuid, Uuid) -> BoxFuture<'a, anyhow::Result<()>>;

#[tokio::test]
async fn clm_06_what_is_said_of_one_destination_is_said_of_no_other() -> anyhow::Result<()> {
    let acts: [(&str, Run); 8] = [
        ("mark_attention", |actors, destination, _| {
            Box::pin(async move {
                assert!(store::mark_attention(&actors.worker, destination, "the key was refused").await?);
                Ok(())
            })
        }),
        ("clear_attention", |actors, destination, _| {
            Box::pin(async move {
                assert!(store::clear_attention(&actors.api, destination).await?);
                assert!(!store::clear_attention(&actors.api, destination).await?, "there is none any more");
                Ok(())
            })
        }),
        ("pause_destination", |actors, destination, job| {
            Box::pin(async move {
                let paused = store::pause_destination(&actors.worker, destination, job).await?;
                assert!(matches!(paused, Pausing::Paused { .. }), "{paused:?}");
                Ok(())
            })
        }),
        ("take_probe", |actors, destination, job| {
            Box::pin(async move {
                assert!(!store::take_probe(&actors.worker, destination, job, SOON).await?, "the pause is not over");
                actors.end_pauses().await?;
                assert!(store::take_probe(&actors.worker, destination, job, SOON).await?);
                assert!(store::take_probe(&actors.worker, destination, job, SOON).await?, "it is its own already");
                assert!(!store::take_probe(&actors.worker, destination, Uuid::new_v4(), SOON).await?, "one at a time");
                Ok(())
            })
        }),
        ("clear_pause", |actors, destination, _| {
            Box::pin(async move {
                assert!(store::clear_pause(&actors.worker, destination).await?);
                assert!(!store::clear_pause(&actors.worker, destination).await?, "there is none any more");
                Ok(())
            })
        }),
        ("keep_check", |actors, destination, _| {
            Box::pin(async move {
                let check = check_of(destination, "banner-1", json!({ "form": "link" }));
                assert!(store::keep_check(&actors.worker, check).await?);
                Ok(())
            })
        }),
        ("find_check", |actors, destination, _| {
            Box::pin(async move {
                let find = async |destination: Uuid, checked: &str, fingerprint: &str| {
                    let found = store::find_check(&actors.worker, destination, checked, fingerprint).await?;
                    anyhow::Ok(found.map(|showed| showed.proof))
                };
                assert_eq!(find(destination, CHECKED, "banner-1").await?, Some(json!({ "form": "link" })));
                assert_eq!(find(destination, CHECKED, "banner-2").await?, None);
                assert_eq!(find(destination, "as it was", "banner-1").await?, None);
                assert_eq!(find(Uuid::new_v4(), CHECKED, "banner-1").await?, None);
                Ok(())
            })
        }),
        ("resume_destination", |actors, destination, _| {
            Box::pin(async move {
                let resumed = store::resume_destination(&actors.api, actors.tenant, destination, "rosa").await?;
                assert!(resumed.is_some());
                Ok(())
            })
        }),
    ];
    // One after the other on the same: each finds what the one before left.
    let actors = Actors::new().await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    let ours = actors.destination(actors.tenant, json!({})).await?;
    let job = actors.queued().await?;
    for destination in [theirs, ours] {
        store::mark_attention(&actors.worker, destination, "the host key changed").await?;
        store::pause_destination(&actors.worker, destination, Uuid::new_v4()).await?;
        store::keep_check(&actors.worker, check_of(destination, "banner-1", json!({ "form": "rename" }))).await?;
    }
    for (name, act) in acts {
        if name == "take_probe" {
            // Time passes for all of them.
            act(&actors, actors.destination, job).await?;
            continue;
        }
        let strangers = [of(&actors, theirs).await?, of(&actors, ours).await?];
        act(&actors, actors.destination, job).await?;
        assert!([of(&actors, theirs).await?, of(&actors, ours).await?] == strangers, "{name}");
    }
    let before = everything(&actors).await?;
    assert_eq!(store::resume_destination(&actors.api, tenant, actors.destination, "rosa").await?, None);
    assert_eq!(store::resume_destination(&actors.api, actors.tenant, theirs, "rosa").await?, None);
    assert!(everything(&actors).await? == before, "another tenant's is not found");
    Ok(())
}

/// The messages that wake a job, with whether each is to be published now.
async fn messages(actors: &Actors) -> anyhow::Result<BTreeSet<(Uuid, Uuid, bool)>> {
    let rows: Vec<(Uuid, Uuid, bool)> = sqlx::query_as(
        "SELECT message_id, job_id, ready_at <= clock_timestamp() FROM outbox JOIN outbox_claims USING (message_id) WHERE kind = 'ExportReady'",
    )
    .fetch_all(&actors.database.admin().await?)
    .await?;
    Ok(rows.into_iter().collect())
}

#[tokio::test]
async fn del_08_who_waits_at_a_resumed_destination_is_woken_and_nobody_else() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    let ours = actors.destination(actors.tenant, json!({})).await?;
    let later = Some(time::macros::datetime!(2100-01-01 00:00 UTC));
    let mut waiting = BTreeSet::new();
    for stage in STAGES {
        let job = bring(&actors, &actors.new_job(), stage).await?.job;
        if stage == Stage::Queued {
            waiting.insert(job);
        }
    }
    for new in [
        NewJob { destination: ours, ..actors.new_job() },
        NewJob { tenant, destination: theirs, ..actors.new_job() },
        NewJob { not_before: later, ..actors.new_job() },
    ] {
        bring(&actors, &new, Stage::Queued).await?;
    }
    store::mark_attention(&actors.worker, actors.destination, "the host key changed").await?;
    let before = messages(&actors).await?;
    assert_eq!(store::resume_destination(&actors.api, tenant, actors.destination, "rosa").await?, None);
    assert_eq!(messages(&actors).await?, before, "another tenant wakes nobody");
    let resumed = store::resume_destination(&actors.api, actors.tenant, actors.destination, "rosa").await?;
    assert_eq!(resumed.map(|found| found.woken), Some(1));
    let after = messages(&actors).await?;
    let new: Vec<_> = after.difference(&before).map(|(_, job, ready)| (*job, *ready)).collect();
    assert_eq!(new, waiting.into_iter().map(|job| (job, true)).collect::<Vec<_>>());
    Ok(())
}
