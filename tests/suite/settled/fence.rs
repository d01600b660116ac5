//! The temporary-name fence at a server: each row of its table, and what must never happen.

use std::time::Duration;

use waybill::job::evidence::{Answer, Evidence};
use waybill::job::status::{EventKind, Role, Status};
use waybill::store;
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, Gate, RenameSteps, When};
use waybill_tests::{Plan, wait};

use super::replacements::reconciled_to_completed;
use super::{COMPLETED, NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// An attempt whose RENAME is held before it happens, taken over.
async fn cut_before(behaviour: Behaviour, plan: Plan) -> anyhow::Result<Silent> {
    let mut silent = Silent::at(behaviour, plan, When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    Ok(silent)
}

/// The same before a link.
async fn cut_before_link(contract: &str) -> anyhow::Result<Silent> {
    let mut silent = Silent::at(Behaviour::default(), agreed(contract), When::Before, Action::Link).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    Ok(silent)
}

#[tokio::test]
async fn fen_05_the_removed_temporary_proves_not_delivered_and_the_old_process_publishes_nothing() -> anyhow::Result<()>
{
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    let temporary = silent.temporary().await?;
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    assert_eq!(silent.stands().await?, UNKNOWN, "the first look after a removal concludes nothing by itself");
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    assert_eq!(silent.detail(EventKind::Reconciled).await?["proof"]["conclusion"], "temporary_removed");
    silent.gate.open();
    wait::until("the old process's publish", async || {
        let answered = silent
            .evidence()
            .await?
            .into_iter()
            .any(|one| matches!(one, Evidence::Publish { answer: Answer::Refused { .. }, .. }));
        Ok(answered.then_some(()))
    })
    .await?;
    assert_eq!(silent.server.read(&silent.name()), None);
    assert_eq!(silent.server.read(&temporary), None);
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    Ok(())
}

#[tokio::test]
async fn fen_06_a_link_is_disproven_only_while_the_partner_keeps_final_names() -> anyhow::Result<()> {
    let keeps = format!("{ONE_STEP}\nkeeps_seconds = 3600");
    let silent = cut_before_link(&keeps).await?;
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);

    let silent = cut_before_link(ONE_STEP).await?;
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    silent.looked().await?;
    assert_eq!(silent.stands().await?, UNKNOWN, "without keeps a link may have been made and collected");

    let silent = cut_before_link(&keeps).await?;
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    silent.house.ages(silent.job, Duration::from_hours(2)).await?;
    silent.looked().await?;
    assert_eq!(silent.stands().await?, UNKNOWN, "the look came after the time that final names are kept");
    Ok(())
}

#[tokio::test]
async fn fen_06_a_file_seen_after_the_removal_is_weighed_like_any_other() -> anyhow::Result<()> {
    for (contract, stands) in
        [(ONE_STEP.to_owned(), UNKNOWN), (format!("{ONE_STEP}\nname_and_size_identify = true"), COMPLETED)]
    {
        let silent = cut_before(renames(), agreed(&contract)).await?;
        let bytes = silent.server.read(&silent.temporary().await?).unwrap_or_default();
        assert_eq!(silent.looked().await?, [Looked::Removed]);
        silent.server.put(&silent.name(), bytes)?;
        silent.looked().await?;
        assert_eq!(silent.stands().await?, stands, "{contract}");
    }
    Ok(())
}

#[tokio::test]
async fn fen_06_a_temporary_that_became_the_final_name_completes_where_names_appear_whole() -> anyhow::Result<()> {
    for (contract, stands) in [(ONE_STEP, COMPLETED), ("may_remove_temporaries = true\none_name_space = true", UNKNOWN)]
    {
        let silent = cut_before(renames(), agreed(contract)).await?;
        let temporary = silent.temporary().await?;
        let bytes = silent.server.read(&temporary).unwrap_or_default();
        silent.server.put(&silent.name(), bytes)?;
        silent.server.collect(&temporary);
        silent.looked().await?;
        assert_eq!((silent.stands().await?, silent.removals().await?), (stands, 0), "{contract}");
    }
    Ok(())
}

#[tokio::test]
async fn fen_06_beside_a_final_name_the_temporary_stays_until_the_conclusion() -> anyhow::Result<()> {
    for (contract, stands) in
        [(ONE_STEP.to_owned(), UNKNOWN), (format!("{ONE_STEP}\nname_and_size_identify = true"), COMPLETED)]
    {
        let silent = cut_before(renames(), agreed(&contract)).await?;
        let temporary = silent.temporary().await?;
        let bytes = silent.server.read(&temporary).unwrap_or_default();
        silent.server.put(&silent.name(), bytes)?;
        silent.looked().await?;
        assert_eq!(silent.stands().await?, stands, "{contract}");
        assert!(silent.server.read(&temporary).is_some(), "{contract}");
        assert_eq!(silent.removals().await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn fen_06_neither_name_there_stays_unknown() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    silent.server.collect(&silent.temporary().await?);
    assert_eq!(silent.looked().await?, [Looked::Open]);
    assert_eq!((silent.stands().await?, silent.removals().await?), (UNKNOWN, 0));
    Ok(())
}

#[tokio::test]
async fn fen_06_fen_08_without_leave_or_one_name_space_nothing_is_removed() -> anyhow::Result<()> {
    for contract in [
        "publishes_whole = true\none_name_space = true\nrename_one_step = true",
        "publishes_whole = true\nmay_remove_temporaries = true\nrename_one_step = true",
    ] {
        let silent = cut_before(renames(), agreed(contract)).await?;
        assert_eq!(silent.looked().await?, [Looked::Open], "{contract}");
        assert_eq!((silent.stands().await?, silent.removals().await?), (UNKNOWN, 0), "{contract}");
    }
    Ok(())
}

#[tokio::test]
async fn fen_06_a_settle_time_is_waited_for_after_the_removal() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(&format!("{ONE_STEP}\nsettle_seconds = 600"))).await?;
    assert_eq!(silent.looked().await?, [Looked::Open], "a look within the settle time shows no absence");
    silent.house.ages(silent.job, Duration::from_secs(601)).await?;
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    assert_eq!(silent.looked().await?, [Looked::Open], "nor does one within it after the removal");
    silent.house.ages(silent.job, Duration::from_secs(601)).await?;
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    Ok(())
}

#[tokio::test]
async fn fen_07_between_the_link_and_the_removal_of_a_two_step_rename_nothing_is_lost() -> anyhow::Result<()> {
    for collected in [false, true] {
        let two_steps = Behaviour { rename_steps: RenameSteps::LinkThenRemove, ..renames() };
        let contract = "publishes_whole = true\none_name_space = true\nmay_remove_temporaries = true";
        let mut silent = Silent::at(two_steps, agreed(contract), When::Between, Action::Rename).await?;
        let bytes = silent.server.read(&silent.name());
        assert!(bytes.is_some(), "the link was made");
        assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
        if collected {
            assert!(silent.server.collect(&silent.name()));
        }
        silent.looked().await?;
        silent.looked().await?;
        assert_eq!((silent.stands().await?, silent.removals().await?), (UNKNOWN, 0), "collected: {collected}");
        silent.gate.open();
        wait::until("the rename to be answered", async || {
            let answered = silent.evidence().await?.iter().any(|one| matches!(one, Evidence::Receipt(_)));
            Ok(answered.then_some(()))
        })
        .await?;
        if !collected {
            assert_eq!(silent.server.read(&silent.name()), bytes, "a delivered file was lost");
            silent.looked().await?;
            assert_eq!(silent.stands().await?, COMPLETED);
        }
        assert_ne!(silent.stands().await?, NOT_DELIVERED);
    }
    Ok(())
}

#[tokio::test]
async fn fen_11_the_intention_is_on_record_before_the_server_is_asked() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    let gate = silent.server.hold(When::Before, Action::Remove);
    silent.house.look_is_due(silent.job).await?;
    let reconciler = silent.house.reconciler().await?;
    let run = tokio::spawn(async move { reconciler.run_once().await });
    gate.reached().await?;
    let evidence = silent.evidence().await?;
    assert!(matches!(evidence.last(), Some(Evidence::RemovalIntended { .. })), "{evidence:?}");
    gate.open();
    assert_eq!(run.await??, [Looked::Removed]);
    let evidence = silent.evidence().await?;
    assert!(
        matches!(evidence.last(), Some(Evidence::RemovalAnswered { answer: Answer::Acknowledged, .. })),
        "{evidence:?}"
    );
    Ok(())
}

#[tokio::test]
async fn fen_11_a_reconciler_that_died_after_its_removal_leaves_an_absence_that_proves_nothing() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    let gate = silent.server.hold(When::After, Action::Remove);
    silent.house.look_is_due(silent.job).await?;
    let reconciler = silent.house.reconciler().await?;
    let run = tokio::spawn(async move { reconciler.run_once().await });
    gate.reached().await?;
    run.abort();
    sqlx::query("UPDATE looks SET expires_at = clock_timestamp() - interval '1 second' WHERE job_id = $1")
        .bind(silent.job)
        .execute(&mut silent.house.unguarded().await?)
        .await?;
    for _ in 0..2 {
        assert_eq!(silent.looked().await?, [Looked::Open]);
    }
    assert_eq!(silent.stands().await?, UNKNOWN);
    Ok(())
}

#[tokio::test]
async fn fen_11_of_two_reconcilers_one_removes() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    silent.house.look_is_due(silent.job).await?;
    let (one, other) = (silent.house.reconciler().await?, silent.house.reconciler().await?);
    let (one, other) = tokio::join!(one.run_once(), other.run_once());
    let mut looked = one?;
    looked.extend(other?);
    assert_eq!(looked.iter().filter(|looked| **looked == Looked::Removed).count(), 1, "{looked:?}");
    assert_eq!(silent.removals().await?, 1);
    Ok(())
}

#[tokio::test]
async fn fen_11_without_the_looks_lease_or_once_it_is_settled_no_removal_is_intended() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    let pool = silent.house.database.store(Role::Reconciler).await?;
    silent.house.look_is_due(silent.job).await?;
    let destinations = [waybill_tests::house::DESTINATION];
    let lease = Duration::from_secs(60);
    let look = store::claim_look(&pool, "one", &destinations, lease).await?.unwrap();
    assert_eq!(store::claim_look(&pool, "two", &destinations, lease).await?, None, "the look is leased");
    let another = store::DueLook { token: uuid::Uuid::new_v4(), ..look.clone() };
    assert!(!store::intend_removal(&pool, &another, "run", "x", lease).await?.is_written());
    assert!(store::intend_removal(&pool, &look, "run", "x", lease).await?.is_written());
    let expire = "UPDATE looks SET expires_at = clock_timestamp() - interval '1 second' WHERE job_id = $1";
    sqlx::query(expire).bind(silent.job).execute(&mut silent.house.unguarded().await?).await?;
    assert!(!store::intend_removal(&pool, &look, "run", "x", lease).await?.is_written(), "its lease ran out");
    let look = store::claim_look(&pool, "two", &destinations, lease).await?.unwrap();
    let settle = "UPDATE export_jobs SET status = 'Completed' WHERE id = $1";
    sqlx::query(settle).bind(silent.job).execute(&mut silent.house.unguarded().await?).await?;
    assert!(!store::intend_removal(&pool, &look, "run", "x", lease).await?.is_written(), "it is settled");
    Ok(())
}

#[tokio::test]
async fn fen_11_an_outcome_that_a_person_settles_during_the_look_keeps_its_temporary() -> anyhow::Result<()> {
    let silent = cut_before(renames(), agreed(ONE_STEP)).await?;
    let temporary = silent.temporary().await?;
    let (gate, name) = (Gate::default(), temporary.clone());
    let held = gate.clone();
    silent.server.hook(move |event| {
        let look = event.when == When::Before && event.action == Action::Stat && event.path.ends_with(&name);
        look.then(|| Fault::Wait(held.clone()))
    });
    silent.house.look_is_due(silent.job).await?;
    let reconciler = silent.house.reconciler().await?;
    let run = tokio::spawn(async move { reconciler.run_once().await });
    gate.reached().await?;
    reconciled_to_completed(&silent).await?;
    gate.open();
    assert_eq!(run.await??, [Looked::Open]);
    assert_eq!(silent.removals().await?, 0);
    assert!(silent.server.read(&temporary).is_some());
    assert_eq!(silent.stands().await?, COMPLETED);
    Ok(())
}
