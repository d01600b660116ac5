//! Writes about one destination leave every other one as it was.

use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;
use waybill::store::{self, Pausing};

use super::{SOON, another_tenant, everything, of};
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
