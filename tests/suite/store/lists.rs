use std::collections::BTreeSet;

use uuid::Uuid;
use waybill::job::status::{Role, Status};
use waybill::store::{self, JobFilter};

use super::world::World;

#[tokio::test]
async fn api_03_pages_neither_skip_nor_repeat_while_jobs_are_created() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut wanted = BTreeSet::new();
    for _ in 0..7 {
        wanted.insert(world.queued().await?);
    }
    let reader = world.pool(Role::Reader).await?;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store::list_jobs(&reader, world.tenant, &JobFilter::default(), after, 3).await?;
        seen.extend(page.jobs.iter().map(|job| job.id));
        world.queued().await?;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), wanted.len(), "none twice");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), wanted);
    Ok(())
}

#[tokio::test]
async fn api_02_api_03_a_list_is_the_tenants_own_and_filtered() -> anyhow::Result<()> {
    let world = World::new().await?;
    let running = world.running().await?.job;
    let queued = world.new_job();
    world.create(&queued).await?;
    let list = async |tenant: Uuid, filter: JobFilter| -> anyhow::Result<Vec<Uuid>> {
        let page = store::list_jobs(&world.api, tenant, &filter, None, 100).await?;
        Ok(page.jobs.iter().map(|job| job.id).collect())
    };
    assert!(list(Uuid::new_v4(), JobFilter::default()).await?.is_empty());
    assert_eq!(list(world.tenant, JobFilter::default()).await?, [queued.id, running], "newest first");
    let by_status = JobFilter { statuses: vec![Status::Running, Status::Failed], ..JobFilter::default() };
    assert_eq!(list(world.tenant, by_status).await?, [running]);
    let by_key = JobFilter { delivery_key: Some(queued.delivery_key.clone()), ..JobFilter::default() };
    assert_eq!(list(world.tenant, by_key).await?, [queued.id]);
    let elsewhere = JobFilter { destination: Some(Uuid::new_v4()), ..JobFilter::default() };
    assert!(list(world.tenant, elsewhere).await?.is_empty());
    let by_person = JobFilter { created_by: Some("paul".to_owned()), ..JobFilter::default() };
    assert!(list(world.tenant, by_person).await?.is_empty());
    Ok(())
}
