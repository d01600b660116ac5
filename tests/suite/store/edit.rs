use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::status::{Role, Status};
use waybill::store::{self, Edit, TermsEdit, Write};

use super::world::World;

fn edit(world: &World, job: Uuid, expected_version: i32, destination: Uuid) -> TermsEdit {
    TermsEdit {
        tenant: world.tenant,
        job,
        expected_version,
        destination,
        scope: json!({ "list": "autumn" }),
        not_before: None,
        edited_by: "olga".to_owned(),
    }
}

#[tokio::test]
async fn edt_01_an_edit_raises_the_version_and_wakes_the_job() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let elsewhere = world.destination(world.tenant, json!({})).await?;
    let before = store::find_job(&world.worker, job).await?.context("the job")?;
    assert_eq!(
        store::edit_terms(&world.api, edit(&world, job, 1, elsewhere)).await?,
        Edit::Answered(Write::Written(2))
    );
    let after = store::find_job(&world.worker, job).await?.context("the job")?;
    assert_eq!((after.version, after.destination, after.scope), (2, elsewhere, json!({ "list": "autumn" })));
    assert!(after.woken_at > before.woken_at);
    assert_eq!(world.wakeups(job).await?, 2);
    assert_eq!(world.count("SELECT count(*) FROM audit WHERE action = 'edit' AND actor = 'olga'").await?, 1);
    Ok(())
}

#[tokio::test]
async fn edt_01_an_edit_of_another_version_or_status_changes_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let refused = async |edit: TermsEdit| -> anyhow::Result<store::Found> {
        match store::edit_terms(&world.api, edit).await? {
            Edit::Answered(Write::Refused(found)) => Ok(found),
            other => anyhow::bail!("{other:?}"),
        }
    };
    assert_eq!(refused(edit(&world, job, 2, world.destination)).await?.version, 1);
    let foreign = TermsEdit { tenant: Uuid::new_v4(), ..edit(&world, job, 1, world.destination) };
    assert_eq!(store::edit_terms(&world.api, foreign).await?, Edit::Answered(Write::Absent));
    let nowhere = edit(&world, job, 1, Uuid::new_v4());
    assert_eq!(store::edit_terms(&world.api, nowhere).await?, Edit::NoSuchDestination);
    world.claimed(job).await?;
    assert_eq!(refused(edit(&world, job, 1, world.destination)).await?.status, Status::Running);
    assert_eq!(world.wakeups(job).await?, 1);
    assert_eq!(world.count("SELECT count(*) FROM audit").await?, 0);
    Ok(())
}

#[tokio::test]
async fn edt_02_no_statement_changes_terms_without_the_version() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let elsewhere = world.destination(world.tenant, json!({})).await?;
    for term in [
        format!("destination_id = '{elsewhere}'"),
        "scope = '{\"list\": \"all\"}'".to_owned(),
        "not_before = clock_timestamp()".to_owned(),
    ] {
        for version in ["", ", version = version + 2", ", version = version - 1"] {
            let statement = format!("UPDATE export_jobs SET {term}{version} WHERE id = '{job}'");
            assert_eq!(world.refused(Role::Api, &statement).await?, "WB004", "{statement}");
        }
    }
    let raise = format!("UPDATE export_jobs SET version = version + 1 WHERE id = '{job}'");
    assert_eq!(world.run(Role::Api, &raise).await?, 1);
    world.claimed(job).await?;
    assert_eq!(world.refused(Role::Api, &raise).await?, "WB004", "only while it is queued");
    Ok(())
}
