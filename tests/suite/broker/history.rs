use serde_json::json;
use uuid::Uuid;
use waybill::job::facts::{FileFacts, Sha256};
use waybill::job::status::{FailureReason, Role};
use waybill::store::{self, Authorization, Delivery, DeliveryOutcome, FinalPlace, KeyHistory};

use crate::store::world::{Attempt, World};

async fn history(world: &World, of: Attempt) -> anyhow::Result<KeyHistory> {
    Ok(store::key_history(&world.worker, of.job, of.attempt).await?)
}

/// A replacement as its creation writes it.
async fn replacement(world: &World, original: Uuid) -> anyhow::Result<Uuid> {
    let id = Uuid::new_v4();
    let statement = format!(
        "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, replaces_job_id, created_by,
                                  replacement_reason, woken_at, known_system, known_timeline)
         SELECT '{id}', tenant_id, 'Queued', 1, destination_id, delivery_key, id, 'olga', 'lost', clock_timestamp(), system, timeline
         FROM export_jobs, database_history() WHERE id = '{original}'"
    );
    anyhow::ensure!(world.run(Role::Api, &statement).await? == 1, "no replacement was written");
    Ok(id)
}

/// Authorizes under a given name with content that only this seed has.
async fn authorize(world: &World, of: Attempt, name: &str, seed: u8) -> anyhow::Result<FileFacts> {
    let expected = FileFacts { name: name.to_owned(), bytes: u64::from(seed), sha256: Sha256([seed; 32]) };
    let delivery =
        Delivery { expected: expected.clone(), last_part: name.to_owned(), reused: true, ..World::delivery(of) };
    let answer = store::authorize_delivery(&world.worker, delivery).await?;
    anyhow::ensure!(answer == Authorization::Authorized, "{answer:?}");
    Ok(expected)
}

async fn claimed(world: &World, job: Uuid) -> anyhow::Result<Attempt> {
    let claimed = world.claimed(job).await?;
    Ok(Attempt { job, attempt: claimed.attempt })
}

#[tokio::test]
async fn vrd_03_an_attempt_alone_has_no_others_and_counts_its_own_fence() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    assert_eq!(history(&world, of).await?, KeyHistory::default());
    world.intend(of).await?.written();
    assert_eq!(history(&world, of).await?, KeyHistory { past_fence: 1, ..KeyHistory::default() });
    // Of any other attempt of the job, the one that was authorized is another.
    let others = history(&world, Attempt { attempt: Uuid::new_v4(), ..of }).await?.others;
    assert_eq!(others, [Some(World::delivery(of).expected)]);
    Ok(())
}

#[tokio::test]
async fn vrd_03_an_attempt_that_went_back_to_the_queue_was_never_authorized() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    store::release(&world.worker, World::release(of)).await?.written();
    let again = claimed(&world, of.job).await?;
    assert_eq!(history(&world, again).await?, KeyHistory::default());
    Ok(())
}

#[tokio::test]
async fn rec_05_original_and_replacement_see_each_other_once_both_were_authorized() -> anyhow::Result<()> {
    let world = World::new().await?;
    let original = world.ended(DeliveryOutcome::OutcomeUnknown).await?;
    let replacement = claimed(&world, replacement(&world, original.job).await?).await?;
    let originals = World::delivery(original).expected;

    let seen = history(&world, replacement).await?;
    assert_eq!((seen.others, seen.past_fence), (vec![Some(originals.clone())], 1));
    assert_eq!(history(&world, original).await?.others, [], "a replacement that only builds wrote nothing");

    let replacements = authorize(&world, replacement, &originals.name, 9).await?;
    assert_eq!(history(&world, original).await?.others, [Some(replacements)]);
    assert_eq!(history(&world, original).await?.past_fence, 1);
    world.intend(replacement).await?.written();
    assert_eq!(history(&world, original).await?.past_fence, 2);
    assert_eq!(history(&world, replacement).await?.past_fence, 2);
    Ok(())
}

#[tokio::test]
async fn rpl_07_under_a_reused_name_the_other_keys_count_and_the_last_delivery_is_known() -> anyhow::Result<()> {
    let mut world = World::new().await?;
    world.destination = world.destination(world.tenant, json!({ "names_reused": true })).await?;
    let mut files = Vec::new();
    for (seed, outcome) in [
        (1, DeliveryOutcome::Completed),
        (2, DeliveryOutcome::Completed),
        (3, DeliveryOutcome::Failed(FailureReason::NotDelivered)),
    ] {
        let of = world.running().await?;
        files.push(Some(authorize(&world, of, "Weekly.csv", seed).await?));
        world.intend(of).await?.written();
        world.finish(of, outcome).await?.written();
    }
    files.reverse();

    let of = world.running().await?;
    assert_eq!(history(&world, of).await?, KeyHistory::default(), "nothing says yet which name it is for");
    let place = FinalPlace { endpoint: "SFTP.partner.test:22", directory: "/UPLOAD/", last_part: "weekly.CSV" };
    let before = store::key_history_at(&world.worker, of.job, of.attempt, place).await?;
    assert_eq!(before.others, files);
    assert_eq!(before.last, files[1], "what was not delivered is not the last delivery");
    assert_eq!(before.past_fence, 0, "other keys' fences are not this key's");

    authorize(&world, of, "weekly.csv", 4).await?;
    assert_eq!(history(&world, of).await?, before);
    let another = FinalPlace { last_part: "monthly.csv", ..place };
    let fresh = claimed(&world, world.queued().await?).await?;
    let none = store::key_history_at(&world.worker, fresh.job, fresh.attempt, another).await?;
    assert_eq!(none, KeyHistory::default());
    Ok(())
}

#[tokio::test]
async fn ops_04_what_a_database_may_have_lost_counts_as_unknown() -> anyhow::Result<()> {
    let world = World::new().await?;
    let original = world.running().await?;
    store::finish_failed(&world.worker, original.job, original.attempt, FailureReason::BuildFailed, "no rows")
        .await?
        .written();
    let replacement = claimed(&world, replacement(&world, original.job).await?).await?;
    assert_eq!(history(&world, replacement).await?, KeyHistory::default());

    // As after a failover: the original was written on another timeline.
    let mut admin = world.database.admin().await?.acquire().await?.detach();
    sqlx::query("SET session_replication_role = replica").execute(&mut admin).await?;
    sqlx::query("UPDATE export_jobs SET known_timeline = known_timeline + 1 WHERE id = $1")
        .bind(original.job)
        .execute(&mut admin)
        .await?;
    let unknown = KeyHistory { others: vec![None], past_fence: 1, last: None };
    assert_eq!(history(&world, replacement).await?, unknown);

    let accept = |intact: bool| {
        format!(
            "INSERT INTO accepted_losses (job_id, system, timeline, fences_intact, statement, accepted_by)
             SELECT '{}', system, timeline, {intact}, 'nothing that matters', 'olga' FROM database_history()",
            original.job
        )
    };
    world.run(Role::Corrector, &accept(true)).await?;
    assert_eq!(history(&world, replacement).await?, KeyHistory::default());
    world.run(Role::Corrector, &accept(false)).await?;
    assert_eq!(history(&world, replacement).await?, unknown, "a fence that was lost is forgotten");
    Ok(())
}
