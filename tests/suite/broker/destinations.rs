use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::policy::growing_delay;
use waybill::store::{
    self, Authorization, FinishedCheck, JoinedDestination, Joining, NewJob, PAUSE_CAP, PAUSE_FIRST, Pausing,
    PolicyFacts, Switch, Switched,
};

use crate::store::world::{Attempt, CHECKED, World, check_of};

const PROBE: Duration = Duration::from_secs(30);

fn joined(tenant: Uuid, revision: i32) -> JoinedDestination {
    JoinedDestination {
        id: Uuid::new_v4(),
        tenant,
        name: "north".to_owned(),
        partner: "partner".to_owned(),
        revision,
        manifest: json!({ "revision": revision }),
        contract: json!({}),
        rules: json!({}),
        digests: json!({}),
        endpoint: "SFTP.Partner.test:22".to_owned(),
    }
}

/// Joins one destination alone.
async fn join(world: &World, one: &JoinedDestination) -> anyhow::Result<Joining> {
    let mut answers = store::upsert_destinations(&world.worker, std::slice::from_ref(one)).await?;
    let (id, joining) = answers.pop().context("no answer")?;
    assert!(id == one.id && answers.is_empty(), "{answers:?}");
    Ok(joining)
}

async fn facts(world: &World, job: Uuid, period: Option<Duration>) -> anyhow::Result<PolicyFacts> {
    store::policy_facts(&world.worker, job, period).await?.context("no such job")
}

/// Lets an interval of every pause pass.
async fn pass(world: &World, interval: &str) -> anyhow::Result<()> {
    let statement = format!(
        "UPDATE destinations SET paused_at = paused_at - interval '{interval}',
                paused_until = paused_until - interval '{interval}', probe_until = probe_until - interval '{interval}'"
    );
    world.run(Role::Worker, &statement).await?;
    Ok(())
}

#[tokio::test]
async fn plg_01_the_newest_manifest_stands_and_the_operators_switch_is_kept() -> anyhow::Result<()> {
    let world = World::new().await?;
    let first = joined(world.tenant, 2);
    assert_eq!(join(&world, &first).await?, Joining::Joined);
    world.run(Role::Api, &format!("UPDATE destinations SET enabled = false WHERE id = '{}'", first.id)).await?;
    store::mark_attention(&world.worker, first.id, "the partner refuses our key").await?;

    let newer = JoinedDestination { name: "south".to_owned(), revision: 3, ..first.clone() };
    assert_eq!(join(&world, &newer).await?, Joining::Joined);
    assert_eq!(join(&world, &first).await?, Joining::Older { in_force: 3 });
    let edited = JoinedDestination { name: "west".to_owned(), ..newer.clone() };
    assert_eq!(join(&world, &edited).await?, Joining::Joined, "the same revision replaces");
    // The operator's part is free under a revision; the partner's is not.
    let digests = |builder: &str, settings: &str| json!({ "builder": builder, "manifest": "m", "settings": settings });
    let (fourth, other) = (JoinedDestination { revision: 4, digests: digests("b", "s"), ..edited.clone() }, "c");
    assert_eq!(join(&world, &fourth).await?, Joining::Joined);
    let settings = JoinedDestination { digests: digests("b", "t"), ..fourth.clone() };
    assert_eq!(join(&world, &settings).await?, Joining::Joined);
    let unraised = JoinedDestination { name: "lost".to_owned(), digests: digests(other, "u"), ..fourth.clone() };
    let refused = Joining::SameRevision { differ: vec!["builder".to_owned()] };
    assert_eq!(join(&world, &unraised).await?, refused);

    let state = store::destination_state(&world.worker, first.id).await?.context("it is gone")?;
    assert_eq!((state.name.as_str(), state.revision), ("west", 4));
    assert!(!state.enabled, "joining switched it on");
    assert_eq!(state.attention.map(|attention| attention.why).as_deref(), Some("the partner refuses our key"));
    let folded =
        format!("SELECT count(*) FROM destinations WHERE id = '{}' AND endpoint = 'sftp.partner.test:22'", first.id);
    assert_eq!(world.count(&folded).await?, 1);
    Ok(())
}

/// A destination's row, by its columns.
async fn row(world: &World, id: Uuid) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let mut connection = world.login(Role::Reader).await?;
    let row: serde_json::Value = sqlx::query_scalar("SELECT to_jsonb(one) FROM destinations AS one WHERE id = $1")
        .bind(id)
        .fetch_one(&mut connection)
        .await?;
    row.as_object().cloned().context("a row is an object")
}

/// A contract that stays in its row would be held against deliveries of another one; a rule or an address likewise.
#[tokio::test]
async fn plg_01_all_that_a_bundle_says_of_a_destination_is_taken_over_and_nothing_else_is_touched() -> anyhow::Result<()>
{
    let world = World::new().await?;
    let digests = |manifest: &str, settings: &str| json!({ "builder": "b", "destination": "d", "manifest": manifest, "settings": settings, "contract": settings });
    let first = JoinedDestination { digests: digests("first", "first"), ..joined(world.tenant, 1) };
    assert_eq!(join(&world, &first).await?, Joining::Joined);
    let raised = JoinedDestination {
        name: "south".to_owned(),
        revision: 2,
        manifest: json!({ "revision": 2, "options": { "delimiter": ";" } }),
        contract: json!({ "publishes_whole": true }),
        rules: json!({ "most_an_hour": 3 }),
        digests: digests("second", "second"),
        endpoint: "Files.Partner.test:2222".to_owned(),
        ..first.clone()
    };
    // Under the same revision: what the operator edited, and what another version of this program reads in the same manifest.
    let edited = JoinedDestination {
        name: "west".to_owned(),
        manifest: json!({ "revision": 2, "options": { "delimiter": ";" }, "read_by": "a newer host" }),
        contract: json!({ "publishes_whole": true, "collects": false }),
        rules: json!({}),
        digests: digests("second", "third"),
        endpoint: "in.partner.test:22".to_owned(),
        ..raised.clone()
    };
    for next in [raised, edited] {
        let before = row(&world, first.id).await?;
        assert_eq!(join(&world, &next).await?, Joining::Joined);
        let after = row(&world, first.id).await?;
        let mut expected = before.clone();
        for (column, value) in [
            ("name", json!(next.name)),
            ("revision", json!(next.revision)),
            ("manifest", next.manifest),
            ("contract", next.contract),
            ("rules", next.rules),
            ("digests", next.digests),
            ("endpoint", json!(next.endpoint.to_lowercase())),
            ("updated_at", after.get("updated_at").cloned().context("no time")?),
        ] {
            let old = expected.insert(column.to_owned(), value.clone()).context("no such column")?;
            assert!(old != value || column == "revision", "the test changes no {column}");
        }
        assert_eq!(after, expected);
    }
    Ok(())
}

#[tokio::test]
async fn plg_01_a_destination_never_changes_hands_and_names_are_unique_in_a_tenant() -> anyhow::Result<()> {
    let world = World::new().await?;
    let ours = joined(world.tenant, 1);
    assert_eq!(join(&world, &ours).await?, Joining::Joined);
    for foreign in [
        JoinedDestination { tenant: Uuid::new_v4(), revision: 9, ..ours.clone() },
        JoinedDestination { partner: "another".to_owned(), revision: 9, ..ours.clone() },
    ] {
        assert_eq!(join(&world, &foreign).await?, Joining::Foreign);
    }
    let same_name = JoinedDestination { id: Uuid::new_v4(), ..ours.clone() };
    assert_eq!(join(&world, &same_name).await?, Joining::NameTaken);
    let elsewhere = JoinedDestination { tenant: Uuid::new_v4(), ..same_name };
    assert_eq!(join(&world, &elsewhere).await?, Joining::Joined);
    Ok(())
}

#[tokio::test]
async fn plg_01_destinations_are_joined_together_or_not_at_all() -> anyhow::Result<()> {
    let world = World::new().await?;
    let named = |id: u128, name: &str, revision: i32| JoinedDestination {
        id: Uuid::from_u128(id),
        name: name.to_owned(),
        ..joined(world.tenant, revision)
    };
    let all = [named(2, "b", 1), named(1, "a", 1), named(3, "c", 1)];
    let ids = |answers: &[(Uuid, Joining)]| answers.iter().map(|(id, _)| id.as_u128()).collect::<Vec<_>>();
    let answers = store::upsert_destinations(&world.worker, &all[..2]).await?;
    assert_eq!(ids(&answers), [1, 2], "two hosts that join the same take the rows in one order");
    assert_eq!(join(&world, &all[2]).await?, Joining::Joined);
    let nul = JoinedDestination { manifest: json!({ "delimiter": "\0" }), ..named(2, "b", 2) };
    for (second, refusal) in [(named(2, "c", 2), "NameTaken"), (nul, "Unfit { why: \"")] {
        let answers = store::upsert_destinations(&world.worker, &[named(1, "a", 2), second, named(3, "c", 2)]).await?;
        assert_eq!(ids(&answers), [1, 2], "it went on after a refusal");
        assert!(format!("{:?}", answers[1].1).starts_with(refusal), "{answers:?}");
        for one in &all {
            let state = store::destination_state(&world.worker, one.id).await?.context("it is gone")?;
            assert_eq!((state.revision, &state.name), (1, &one.name), "after {refusal}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn clm_06_a_pause_grows_as_policy_reckons_and_one_job_at_a_time_probes() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (probing, waiting) = (world.queued().await?, world.queued().await?);
    let destination = world.destination;
    assert!(!store::take_probe(&world.worker, destination, probing, PROBE).await?, "it is not paused");
    for failures in 1..=8 {
        let expected = growing_delay(failures, PAUSE_FIRST, PAUSE_CAP);
        let pausing = store::pause_destination(&world.worker, destination, probing).await?;
        assert_eq!(pausing, Pausing::Paused { failures: i32::try_from(failures)?, delay: expected });
        let under_way = store::pause_destination(&world.worker, destination, waiting).await?;
        assert_eq!(under_way, Pausing::AlreadyPaused, "one outage counted twice");
        let pause = facts(&world, waiting, None).await?.pause.context("no pause")?;
        assert!(
            pause.left <= expected && pause.left + pause.since >= expected.saturating_sub(Duration::from_millis(1))
        );
        assert!(!store::take_probe(&world.worker, destination, probing, PROBE).await?, "its delay is not over");

        pass(&world, "15 minutes").await?;
        assert!(store::take_probe(&world.worker, destination, probing, PROBE).await?);
        assert!(!store::take_probe(&world.worker, destination, waiting, PROBE).await?, "two jobs probe at once");
        assert_eq!(facts(&world, waiting, None).await?.pause.context("no pause")?.probing, Some(probing));
        assert_eq!(facts(&world, probing, None).await?.pause.context("no pause")?.probing, None, "it waits for itself");
    }
    assert!(store::clear_pause(&world.worker, destination).await?);
    assert!(!store::clear_pause(&world.worker, destination).await?);
    assert_eq!(facts(&world, waiting, None).await?.pause, None);
    assert_eq!(store::pause_destination(&world.worker, Uuid::new_v4(), probing).await?, Pausing::Absent);
    Ok(())
}

#[tokio::test]
async fn clm_06_a_probe_keeps_its_place_while_its_attempt_lives_and_no_longer() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (first, second) = (world.queued().await?, world.queued().await?);
    let _ = store::pause_destination(&world.worker, world.destination, first).await?;
    pass(&world, "15 minutes").await?;
    assert!(store::take_probe(&world.worker, world.destination, first, PROBE).await?);
    let claimed = world.claimed(first).await?;
    pass(&world, "15 minutes").await?;
    assert!(!store::take_probe(&world.worker, world.destination, second, PROBE).await?, "a build is under way");
    world.expire(Attempt { job: first, attempt: claimed.attempt }).await?;
    assert!(store::take_probe(&world.worker, world.destination, second, PROBE).await?, "a dead worker kept the probe");
    let state = store::destination_state(&world.worker, world.destination).await?.context("it is gone")?;
    assert_eq!(state.pause.context("no pause")?.probing, Some(second));
    Ok(())
}

#[tokio::test]
async fn clm_06_only_the_probing_jobs_own_running_attempt_keeps_the_probe() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (first, second, stranger) = (world.queued().await?, world.queued().await?, world.queued().await?);
    let probe = async |job| store::take_probe(&world.worker, world.destination, job, PROBE).await;
    let _ = store::pause_destination(&world.worker, world.destination, first).await?;
    pass(&world, "15 minutes").await?;
    assert!(probe(first).await?);
    world.claimed(stranger).await?;
    pass(&world, "15 minutes").await?;
    assert!(probe(second).await?, "a stranger's attempt kept the probe");
    let attempt = Attempt { job: second, attempt: world.claimed(second).await?.attempt };
    pass(&world, "15 minutes").await?;
    assert!(!probe(first).await?, "a build is under way");
    assert_eq!(world.authorize(attempt).await?, Authorization::Authorized);
    assert!(probe(first).await?, "past cutoff two it has reached the partner");
    Ok(())
}

#[tokio::test]
async fn clm_06_attention_stays_until_someone_clears_it() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    assert!(store::mark_attention(&world.worker, world.destination, "unknown host key").await?);
    let since = store::destination_state(&world.worker, world.destination)
        .await?
        .context("gone")?
        .attention
        .context("unmarked")?
        .since;
    assert!(store::mark_attention(&world.worker, world.destination, "the key is refused").await?);
    assert_eq!(facts(&world, job, None).await?.attention.as_deref(), Some("the key is refused"));
    let state = store::destination_state(&world.worker, world.destination).await?.context("gone")?;
    assert_eq!(state.attention.context("unmarked")?.since, since);
    store::clear_pause(&world.worker, world.destination).await?;
    assert!(facts(&world, job, None).await?.attention.is_some());
    assert!(store::clear_attention(&world.api, world.destination).await?);
    assert!(!store::clear_attention(&world.api, world.destination).await?);
    assert_eq!(facts(&world, job, None).await?.attention, None);
    assert!(!store::mark_attention(&world.worker, Uuid::new_v4(), "nobody").await?);
    Ok(())
}

#[tokio::test]
async fn clm_06_policy_reads_terms_clock_and_starts_in_one_look() -> anyhow::Result<()> {
    let world = World::new().await?;
    let in_2100 = time::OffsetDateTime::from_unix_timestamp(4_102_444_800)?;
    let scheduled = world.create(&NewJob { not_before: Some(in_2100), ..world.new_job() }).await?;
    let later = facts(&world, scheduled, None).await?;
    assert!(later.starts_in > Duration::from_hours(24), "{later:?}");
    assert!(later.weekday <= 6 && later.second_of_day < 86_400, "{later:?}");
    assert_eq!((later.version, &later.scope, later.enabled), (1, &json!({ "list": "spring" }), true));

    let job = world.queued().await?;
    let minute = Some(Duration::from_mins(1));
    assert_eq!(facts(&world, job, minute).await?.started, 0);
    for _ in 0..2 {
        world.running().await?;
    }
    let counted = facts(&world, job, minute).await?;
    assert_eq!((counted.started, counted.starts_in), (2, Duration::ZERO));
    assert!(counted.oldest_start > Duration::ZERO && counted.oldest_start < Duration::from_mins(1));
    assert_eq!(facts(&world, job, Some(Duration::ZERO)).await?.started, 0, "starts before the period count");
    assert_eq!(facts(&world, job, None).await?.started, 0);

    let elsewhere = world.destination(world.tenant, json!({})).await?;
    let elsewhere = world.create(&NewJob { destination: elsewhere, ..world.new_job() }).await?;
    assert_eq!(facts(&world, elsewhere, minute).await?.started, 0, "another destination's starts count");
    Ok(())
}

#[tokio::test]
async fn del_05_a_proof_holds_for_the_server_that_gave_it() -> anyhow::Result<()> {
    let world = World::new().await?;
    let find = async |fingerprint: &str| {
        let found = store::find_check(&world.worker, world.destination, CHECKED, fingerprint).await?;
        anyhow::Ok(found.map(|showed| showed.proof))
    };
    assert_eq!(find("openssh").await?, None);
    for refuses in [false, true] {
        let proof = json!({ "rename_refuses": refuses });
        store::keep_check(&world.worker, check_of(world.destination, "openssh", proof)).await?;
    }
    assert_eq!(find("openssh").await?, Some(json!({ "rename_refuses": true })), "the latest counts");
    assert_eq!(find("another").await?, None);
    let elsewhere = world.destination(world.tenant, json!({})).await?;
    assert_eq!(store::find_check(&world.worker, elsewhere, CHECKED, "openssh").await?, None);

    // A later check that met the same server and could prove nothing: it has to be tried again.
    world
        .run(
            Role::Worker,
            &format!(
                "INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by)
         VALUES ('{}', '{}', '{}', 'olga')",
                Uuid::nil(),
                world.tenant,
                world.destination
            ),
        )
        .await?;
    world
        .run(
            Role::Worker,
            &format!(
                "UPDATE destination_checks SET finished_at = clock_timestamp(), server_fingerprint = 'openssh',
                             checked = '{CHECKED}', problem = 'the scratch directory is full' WHERE finished_at IS NULL"
            ),
        )
        .await?;
    assert_eq!(find("openssh").await?, None);
    Ok(())
}

#[tokio::test]
async fn plg_01_enabling_asks_again_for_what_it_was_decided_by() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (destination, contract) = (joined(world.tenant, 1), json!({ "publishes_whole": true }));
    let digests = json!({ "checked": CHECKED });
    let destination = JoinedDestination { contract: contract.clone(), digests, ..destination };
    assert_eq!(join(&world, &destination).await?, Joining::Joined);
    let switch = Switch {
        tenant: world.tenant,
        destination: destination.id,
        switched_by: "rosa".to_owned(),
        reason: "why".to_owned(),
    };
    let check = async || -> anyhow::Result<Uuid> {
        store::keep_check(&world.worker, check_of(destination.id, "openssh", json!({}))).await?;
        Ok(store::latest_check(&world.api, destination.id, CHECKED).await?.context("no check")?.id)
    };
    assert_eq!(store::disable_destination(&world.api, &switch).await?, Switched::Switched { before: true });
    let (first, second) = (check().await?, check().await?);
    let enable = async |switch: &Switch, contract: &serde_json::Value, check: Uuid| {
        store::enable_destination(&world.api, switch, contract, check).await
    };
    assert_eq!(enable(&switch, &contract, first).await?, Switched::Changed, "a later check was not asked for");
    assert_eq!(enable(&switch, &json!({}), second).await?, Switched::Changed, "another contract is in force");
    // Its host is another one since; then it is the old one again, and a check of the other in between counts for nothing.
    let moved = JoinedDestination { digests: json!({ "checked": "moved" }), ..destination.clone() };
    assert_eq!(join(&world, &moved).await?, Joining::Joined, "the operator's part is free");
    assert_eq!(enable(&switch, &contract, second).await?, Switched::Changed, "the check was another server's");
    let agreed = store::agreement_in_force(&world.api, world.tenant, destination.id).await?.context("it is gone")?;
    assert_eq!(agreed.checked.as_deref(), Some("moved"));
    let of_the_other = FinishedCheck { checked: "moved".to_owned(), ..check_of(destination.id, "other", json!({})) };
    assert!(store::keep_check(&world.worker, of_the_other).await?);
    assert_eq!(join(&world, &destination).await?, Joining::Joined);
    let foreign = Switch { tenant: Uuid::new_v4(), ..switch.clone() };
    assert_eq!(enable(&foreign, &contract, second).await?, Switched::Absent);
    assert_eq!(store::disable_destination(&world.api, &foreign).await?, Switched::Absent);
    let state = store::destination_state(&world.api, destination.id).await?.context("it is gone")?;
    assert!(!state.enabled, "a refused switch was written");
    assert_eq!(enable(&switch, &contract, second).await?, Switched::Switched { before: false });
    let recorded = "SELECT count(*) FROM audit WHERE actor = 'rosa' AND detail ->> 'reason' = 'why'";
    assert_eq!(world.count(recorded).await?, 2, "one row a switch that was written");
    let others = format!("SELECT count(*) FROM destinations WHERE id <> '{}' AND NOT enabled", destination.id);
    assert_eq!(world.count(&others).await?, 0);
    let unknown = store::keep_check(&world.worker, check_of(Uuid::new_v4(), "openssh", json!({}))).await?;
    assert!(!unknown && store::agreement_in_force(&world.api, Uuid::new_v4(), destination.id).await?.is_none());
    let agreed = store::agreement_in_force(&world.api, world.tenant, destination.id).await?.context("it is gone")?;
    assert_eq!((agreed.contract, agreed.manifest), (contract, destination.manifest));
    Ok(())
}
