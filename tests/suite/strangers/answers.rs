//! What a claim, a cutoff, a look or a count answers is about its own row, where others would answer as well.

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::evidence::{Evidence, Receipt};
use waybill::job::facts::FileFacts;
use waybill::job::status::{EventKind, FailureReason, Role};
use waybill::store::{
    self, Authorization, Claim, CreatedOnce, Delivery, Edit, HeldBack, KeyedCreation, Switched, TermsEdit, Write,
};
use waybill_tests::Proxy;
use waybill_tests::proxy::{Fault, Moment};

use super::partners::switch;
use super::told::replaced;
use super::{SOON, Stage, another_tenant, bring, delivery, reader};
use crate::recovery::actors::Actors;
use crate::store::world::{Attempt, World};

#[tokio::test]
async fn evidence_is_appended_once_however_much_an_attempt_has_on_record() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = bring(&actors, &actors.new_job(), Stage::Intended).await?;
    let receipt = Evidence::Receipt(Receipt::default());
    assert!(store::append_evidence(&actors.worker, of.job, of.attempt, "worker-1", &receipt).await?.is_written());
    let kinds = actors.kinds(of.job).await?;
    assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::DeliveryEvidence).count(), 1, "{kinds:?}");
    Ok(())
}

#[tokio::test]
async fn aut_06_a_replacement_is_held_by_its_own_original_and_by_no_other() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let [original, replacement] = replaced(&actors, actors.tenant, actors.destination, "spring").await?;
    replaced(&actors, actors.tenant, actors.destination, "summer").await?;
    let by_hand = store::reconcile_by_hand(&actors.corrector, actors.by_hand(original, true)).await?;
    assert!(by_hand.is_written());
    let answer = store::authorize_delivery(&actors.worker, delivery(&actors, replacement).await?).await?;
    assert_eq!(answer, Authorization::OriginalCompleted);
    Ok(())
}

#[tokio::test]
async fn rpl_08_an_earlier_replacement_that_built_nothing_is_not_what_a_name_differs_from() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = bring(&actors, &actors.new_job(), Stage::Unknown).await?;
    let first = actors.replacement(original.job).await?;
    let first = Attempt { job: first, attempt: actors.claimed(first).await?.attempt };
    let failed = store::finish_failed(&actors.worker, first.job, first.attempt, FailureReason::BuildFailed, "no rows");
    assert!(failed.await?.is_written());
    let second = actors.replacement(original.job).await?;
    let second = Attempt { job: second, attempt: actors.claimed(second).await?.attempt };
    // Its row lies behind the others now.
    actors.touch(original.job).await?;
    let right = delivery(&actors, second).await?;
    let wrong = Delivery { last_part: "other.csv".to_owned(), ..right.clone() };
    let wrong = Delivery { expected: FileFacts { name: "other.csv".to_owned(), ..right.expected.clone() }, ..wrong };
    let answer = store::authorize_delivery(&actors.worker, wrong).await?;
    let name = Some(right.expected.name);
    assert_eq!(answer, Authorization::DiffersFromEarlier { destination: actors.destination, name });
    Ok(())
}

#[tokio::test]
async fn a_job_of_a_destination_that_is_switched_off_waits_while_others_go_on() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let other = actors.destination(actors.tenant, json!({})).await?;
    let waits = actors.queued().await?;
    let goes = actors.create(&store::NewJob { destination: other, ..actors.new_job() }).await?;
    assert_eq!(
        store::disable_destination(&actors.api, &switch(actors.tenant, actors.destination)).await?,
        Switched::Switched { before: true }
    );
    match store::claim(&actors.worker, World::claim(waits, 1)).await? {
        Write::Refused(found) => assert!(!found.destination_enabled),
        other => panic!("{other:?}"),
    }
    assert!(actors.found(goes).await?.destination_enabled);
    assert!(store::claim(&actors.worker, World::claim(goes, 1)).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn lst_01_a_claim_tells_of_its_own_job_and_original_with_and_without_its_answer() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let line = Proxy::before(&actors.database)?;
    let worker = line.store(&actors.database, Role::Worker).await?;
    for lose in [false, true] {
        // Older pairs, of which each could be taken for the one that is asked about.
        for key in ["spring", "summer"] {
            replaced(&actors, actors.tenant, actors.destination, &format!("{key}-{lose}")).await?;
        }
        let new = |key: &str| store::NewJob { delivery_key: format!("{key}-{lose}"), ..actors.new_job() };
        let original = bring(&actors, &new("autumn"), Stage::Unknown).await?.job;
        let (replacement, plain) = (actors.replacement(original).await?, actors.create(&new("winter")).await?);
        let ask = async |job: Uuid| {
            let struck = lose.then(|| line.at("claim", Fault::cut(Moment::After)));
            let claimed = store::claim(&worker, World::claim(job, 1)).await?.written().context("claimed")?;
            assert!(struck.is_none_or(|struck| struck.has_happened()));
            anyhow::Ok(claimed)
        };
        let claimed = ask(plain).await?;
        assert_eq!((claimed.id, claimed.delivery_key), (plain, format!("winter-{lose}")));
        assert_eq!((claimed.created_at, claimed.replacement), (actors.created_at(plain).await?, None));
        let claimed = ask(replacement).await?;
        let told = claimed.replacement.context("it is a replacement")?;
        let expected = store::find_job(&worker, original).await?.context("the original")?.expected;
        assert!(expected.is_some());
        assert_eq!((told.original, told.original_expected), (original, expected));
        assert_eq!(claimed.created_at, actors.created_at(original).await?);
    }
    Ok(())
}

#[tokio::test]
async fn lst_01_another_jobs_claim_and_an_ended_one_are_no_answer() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let running = bring(&actors, &actors.new_job(), Stage::Running).await?;
    let canceled = bring(&actors, &actors.new_job(), Stage::Canceled).await?;
    let delivering = bring(&actors, &actors.new_job(), Stage::Delivering).await?;
    for (job, attempt) in [
        // This attempt runs, and is another job's.
        (canceled.job, running.attempt),
        // This job runs, by another attempt.
        (running.job, Uuid::new_v4()),
        // This attempt's job is no longer Running.
        (delivering.job, delivering.attempt),
    ] {
        let answer = store::claim(&actors.worker, Claim { attempt, ..World::claim(job, 1) }).await?;
        assert!(matches!(answer, Write::Refused(_)), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rec_02_a_look_is_taken_for_its_own_jobs_destination_until_it_ends() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let other = actors.destination(actors.tenant, json!({})).await?;
    let unknown = bring(&actors, &actors.new_job(), Stage::Unknown).await?;
    let second = bring(&actors, &actors.new_job(), Stage::Unknown).await?;
    bring(&actors, &store::NewJob { destination: other, ..actors.new_job() }, Stage::Completed).await?;
    actors.make_looks_due().await?;
    let claim = async |destination: Uuid| store::claim_look(&actors.reconciler, "r-1", &[destination], SOON).await;
    assert_eq!(claim(other).await?, None, "no job of that destination waits for a look");
    let taken = claim(actors.destination).await?.context("the first look")?;
    // Only that one: the other is still there to be taken.
    let next = claim(actors.destination).await?.context("the second look")?;
    assert_ne!(taken.job, next.job);
    assert!([unknown.job, second.job].contains(&taken.job) && [unknown.job, second.job].contains(&next.job));
    assert_eq!(claim(actors.destination).await?, None, "both are taken");
    assert!(store::finish_look(&actors.reconciler, &taken, None, store::NextLook::Never).await?);
    actors.make_looks_due().await?;
    assert_eq!(claim(actors.destination).await?, None, "what has ended is not looked at again");
    Ok(())
}

#[tokio::test]
async fn out_05_a_dead_entry_is_not_claimed_though_its_time_has_come() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (dead, alive) = (actors.queued().await?, actors.queued().await?);
    let bury = format!(
        "UPDATE outbox_claims SET dead_lettered_at = clock_timestamp(), dead_reason_code = 'test'
         WHERE message_id = (SELECT message_id FROM outbox WHERE job_id = '{dead}')"
    );
    assert_eq!(actors.run(Role::Dispatcher, &bury).await?, 1);
    let dispatcher = actors.pool(Role::Dispatcher).await?;
    let claimed = crate::broker::claim(&dispatcher, 10).await?;
    assert_eq!(claimed.iter().map(|entry| entry.job).collect::<Vec<_>>(), [alive]);
    Ok(())
}

#[tokio::test]
async fn a_scan_nominates_attempts_under_way_and_nothing_else() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let completed = bring(&actors, &actors.new_job(), Stage::Completed).await?;
    let running = bring(&actors, &actors.new_job(), Stage::Running).await?;
    let delivering = bring(&actors, &actors.new_job(), Stage::Delivering).await?;
    // Were there ever a lease that nobody holds.
    let admin = actors.database.admin().await?;
    sqlx::query("ALTER TABLE export_jobs DROP CONSTRAINT ck_export_jobs_lease").execute(&admin).await?;
    for of in [completed, running, delivering] {
        actors.lapse(of.job).await?;
    }
    let found = store::find_expired(&actors.recovery, None, 10).await?;
    let mut jobs: Vec<Uuid> = found.iter().map(|expired| expired.job).collect();
    let mut expected = vec![running.job, delivering.job];
    jobs.sort();
    expected.sort();
    assert_eq!(jobs, expected);
    Ok(())
}

#[tokio::test]
async fn rec_04_without_a_period_nothing_is_looked_for_after_a_settled_outcome() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for stage in [Stage::Completed, Stage::Failed] {
        bring(&actors, &actors.new_job(), stage).await?;
    }
    assert_eq!(actors.count("SELECT count(*) FROM looks").await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_attempt_that_failed_under_a_stop_request_is_not_stopped_as_well() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = bring(&actors, &actors.new_job(), Stage::Stopping).await?;
    let failed = store::finish_failed(&actors.worker, of.job, of.attempt, FailureReason::BuildFailed, "no rows");
    assert!(failed.await?.is_written());
    let stopped = store::finish_stopped(&actors.worker, of.job, of.attempt, "building").await?;
    assert!(matches!(stopped, Write::Refused(_)), "{stopped:?}");
    Ok(())
}

#[tokio::test]
async fn a_removal_is_intended_only_for_what_is_open_and_passed_its_fence() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for (stage, by_hand) in [(Stage::Unfenced, false), (Stage::Unknown, true)] {
        let of = bring(&actors, &actors.new_job(), stage).await?;
        actors.make_looks_due().await?;
        let look =
            store::claim_look(&actors.reconciler, "r-1", &[actors.destination], SOON).await?.context("a look")?;
        assert_eq!(look.job, of.job);
        if by_hand {
            let settled = store::reconcile_by_hand(&actors.corrector, actors.by_hand(of, false)).await?;
            assert!(settled.is_written());
        }
        let intended = store::intend_removal(&actors.reconciler, &look, "run-1", ".part", SOON).await?;
        assert!(!intended.is_written(), "{stage:?}");
    }
    Ok(())
}

#[tokio::test]
async fn ops_04_words_from_before_a_job_was_created_say_nothing_of_it() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let lost = "INSERT INTO accepted_losses (system, timeline, fences_intact, statement, accepted_by)
                SELECT system, timeline, false, 'nothing after noon', 'rosa' FROM database_history()";
    assert_eq!(actors.run(Role::Corrector, lost).await?, 1);
    let [original, replacement] = replaced(&actors, actors.tenant, actors.destination, "spring").await?;
    let expected = store::find_job(&actors.worker, original.job).await?.context("the original")?.expected;
    let history = store::key_history(&actors.worker, replacement.job, replacement.attempt).await?;
    assert_eq!((history.others, history.past_fence), (vec![expected], 1));
    assert_eq!(actors.run(Role::Corrector, lost).await?, 1);
    let history = store::key_history(&actors.worker, replacement.job, replacement.attempt).await?;
    assert!(history.others.contains(&None), "what was lost since may be of this key: {history:?}");
    Ok(())
}

fn keyed(actors: &Actors, tenant: Uuid, destination: Uuid, key: &str) -> KeyedCreation {
    KeyedCreation {
        idempotency_key: key.to_owned(),
        job: store::NewJob { tenant, destination, ..actors.new_job() },
        names_delivery_key: false,
        lock_timeout: SOON,
    }
}

#[tokio::test]
async fn cre_03_a_key_answers_for_its_own_tenant_and_request() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    let mut made = Vec::new();
    for (tenant, destination) in [(actors.tenant, actors.destination), (tenant, theirs)] {
        for key in ["order-1", "order-2", "order-3"] {
            match store::create_once(&actors.api, keyed(&actors, tenant, destination, key)).await? {
                CreatedOnce::Created(job) => made.push((tenant, destination, key, job)),
                other => panic!("{other:?}"),
            }
        }
    }
    for (tenant, destination, key, job) in made {
        let again = store::create_once(&actors.api, keyed(&actors, tenant, destination, key)).await?;
        assert_eq!(again, CreatedOnce::Again(job), "{tenant} {key}");
    }
    Ok(())
}

#[tokio::test]
async fn ops_04_only_live_jobs_that_nothing_proves_are_held_back() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let reader = reader(&actors).await?;
    for stage in [Stage::Completed, Stage::Failed, Stage::Canceled, Stage::Unknown, Stage::Unfenced, Stage::Queued] {
        let of = bring(&actors, &actors.new_job(), stage).await?;
        actors.forget_history(of.job).await?;
    }
    // A job of this very history counts nowhere.
    bring(&actors, &actors.new_job(), Stage::Running).await?;
    let state = store::database_state(&reader).await?;
    assert_eq!(state.held_back, HeldBack { queued: 1, owned: 0, unproven: 1 });
    assert!(!state.standing);
    // Words about one job, and standing words about another system, stand for nothing here.
    let words = |job: &str, system: &str, standing: bool| {
        format!(
            "INSERT INTO accepted_losses (job_id, system, timeline, standing, fences_intact, statement, accepted_by)
             SELECT {job}, {system}, timeline, {standing}, false, 'nothing after noon', 'rosa' FROM database_history()"
        )
    };
    let queued = actors.queued().await?;
    assert_eq!(actors.run(Role::Corrector, &words(&format!("'{queued}'"), "system", false)).await?, 1);
    assert_eq!(actors.run(Role::Corrector, &words("NULL", "system + 1", true)).await?, 1);
    assert!(!store::database_state(&reader).await?.standing);
    Ok(())
}

#[tokio::test]
async fn a_replacements_destination_is_not_edited() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let other = actors.destination(actors.tenant, json!({})).await?;
    let original = bring(&actors, &actors.new_job(), Stage::Failed).await?;
    let replacement = actors.replacement(original.job).await?;
    let edit = |destination: Uuid| TermsEdit {
        tenant: actors.tenant,
        job: replacement,
        expected_version: 1,
        destination,
        scope: json!({ "list": "autumn" }),
        not_before: None,
        edited_by: "olga".to_owned(),
    };
    let refused = store::edit_terms(&actors.api, edit(other)).await?;
    assert!(matches!(refused, Edit::Answered(Write::Refused(_))), "{refused:?}");
    let edited = store::edit_terms(&actors.api, edit(actors.destination)).await?;
    assert!(matches!(edited, Edit::Answered(Write::Written(_))), "{edited:?}");
    Ok(())
}

#[tokio::test]
async fn edits_are_told_apart_from_what_else_is_recorded_of_a_job() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let job = actors.queued().await?;
    let recorded = format!(
        "INSERT INTO audit (tenant_id, actor, action, target, detail) VALUES ('{}', 'rosa', 'note', '{job}', '{{}}')",
        actors.tenant
    );
    sqlx::query(sqlx::AssertSqlSafe(recorded)).execute(&actors.database.admin().await?).await?;
    assert_eq!(store::edits_of(&actors.api, actors.tenant, job).await?, []);
    Ok(())
}
