//! Replacements at the partner: what they find there, what they may overwrite, and one that went silent itself.

use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence, PublishForm};
use waybill::job::model::Job;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{self, Decision, NewReplacement, ReconciliationByHand};
use waybill::upkeep::Looked;
use waybill_tests::house::TENANT;
use waybill_tests::sftp_server::{Action, Fault, Gate, When};
use waybill_tests::wait;

use super::{NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};
use crate::delivery::HeldBuilds;

const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));
const ORIGINAL: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::OriginalDelivered));

/// An original whose RENAME is held for good, and which is `OutcomeUnknown`.
async fn unknown_original(contract: &str, read_back_mib: u32) -> anyhow::Result<Silent> {
    let mut plan = agreed(contract);
    plan.manifest = plan.manifest.replace("read_back_mib = 0", &format!("read_back_mib = {read_back_mib}"));
    let mut silent = Silent::at(renames(), plan, When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    Ok(silent)
}

pub async fn replace(silent: &Silent, overwrite_agreement_ref: Option<&str>) -> anyhow::Result<Uuid> {
    let id = Uuid::now_v7();
    let new = NewReplacement {
        id,
        tenant: TENANT,
        original: silent.job,
        created_by: "rosa".to_owned(),
        reason: "the partner never saw it".to_owned(),
        overwrite_agreement_ref: overwrite_agreement_ref.map(str::to_owned),
        cannot_upload: Some("its host was switched off for good".to_owned()),
    };
    match store::create_replacement(&silent.house.api, new).await? {
        Ok(()) => Ok(id),
        Err(refused) => anyhow::bail!("{refused}"),
    }
}

/// The replacement, run to its end by the worker that is there.
async fn ended(silent: &Silent, replacement: Uuid) -> anyhow::Result<Job> {
    let _dispatcher = silent.house.dispatcher().await?;
    silent.house.until_ended(replacement).await
}

/// A person says that the original was delivered.
pub async fn reconciled_to_completed(silent: &Silent) -> anyhow::Result<()> {
    reconciled(silent, true).await
}

async fn reconciled(silent: &Silent, delivered: bool) -> anyhow::Result<()> {
    let pool = silent.house.database.store(Role::Corrector).await?;
    let attempt = silent.house.job(silent.job).await?.attempt.unwrap_or_default();
    let decision = Decision::new("rosa", "the partner has it", "call 17")?;
    let by_hand = ReconciliationByHand {
        tenant: TENANT,
        job: silent.job,
        attempt,
        delivered,
        decision,
        look_after: std::time::Duration::from_secs(60),
        acknowledgment_within: None,
    };
    anyhow::ensure!(store::reconcile_by_hand(&pool, by_hand).await?.is_written(), "not reconciled");
    Ok(())
}

#[tokio::test]
async fn rpl_05_the_originals_file_is_recognised_and_nothing_is_uploaded() -> anyhow::Result<()> {
    let acknowledged = acknowledging();
    let sized = format!("{ONE_STEP}\nname_and_size_identify = true");
    for (contract, read_back_mib, acknowledges) in
        [(ONE_STEP, 1, false), (sized.as_str(), 0, false), (acknowledged.as_str(), 0, true)]
    {
        let silent = unknown_original(contract, read_back_mib).await?;
        let bytes = silent.server.read(&silent.temporary().await?).unwrap_or_default();
        silent.server.put(&silent.name(), bytes.clone())?;
        if acknowledges {
            let key = silent.house.job(silent.job).await?.delivery_key;
            silent.server.put(&format!("{}.ack", silent.name()), format!("ok {key}\n").into_bytes())?;
        }
        let created = silent.server.operations().iter().filter(|done| done.operation.creates().is_some()).count();
        let replacement = replace(&silent, None).await?;
        let job = ended(&silent, replacement).await?;
        assert_eq!((job.status, job.failure_reason), ORIGINAL, "{contract}");
        let now = silent.server.operations().iter().filter(|done| done.operation.creates().is_some()).count();
        assert_eq!((now, silent.server.read(&silent.name())), (created, Some(bytes)), "{contract}");
    }
    Ok(())
}

fn acknowledging() -> String {
    format!(
        "{ONE_STEP}\n[contract.acknowledgment]\nname = '{{final}}.ack'\naccept = '^ok (?P<key>\\S+)'\nperiod_seconds = 3600"
    )
}

#[tokio::test]
async fn rpl_05_while_the_partners_word_on_the_original_cannot_be_read_nothing_is_sent() -> anyhow::Result<()> {
    let silent = unknown_original(&acknowledging(), 0).await?;
    // The partner has collected and acknowledged the original's file, and its answers cannot be listed.
    let key = silent.house.job(silent.job).await?.delivery_key;
    silent.server.put(&format!("{}.ack", silent.name()), format!("ok {key}\n").into_bytes())?;
    silent.server.always(When::Before, Action::List, Fault::refuse(4, "not now"));
    let created = silent.server.operations().iter().filter(|done| done.operation.creates().is_some()).count();
    let replacement = replace(&silent, None).await?;
    let dispatcher = silent.house.dispatcher().await?;
    wait::until("the replacement to be handed back", async || {
        let events = silent.house.events(replacement).await?;
        Ok(events.iter().any(|event| event.kind == EventKind::ReleasedByWorker).then_some(()))
    })
    .await?;
    let now = silent.server.operations().iter().filter(|done| done.operation.creates().is_some()).count();
    assert_eq!(now, created, "something was sent");
    // Once they can be, it is told that the original was delivered.
    silent.server.clear_hooks();
    let job = silent.house.until_ended(replacement).await?;
    assert_eq!((job.status, job.failure_reason), ORIGINAL);
    dispatcher.stop().await?;
    Ok(())
}

#[tokio::test]
async fn rpl_06_a_file_of_the_same_size_that_nothing_identifies_is_an_occupied_name() -> anyhow::Result<()> {
    let silent = unknown_original(ONE_STEP, 0).await?;
    let bytes = silent.server.read(&silent.temporary().await?).unwrap_or_default();
    silent.server.put(&silent.name(), bytes.clone())?;
    let replacement = replace(&silent, None).await?;
    let job = ended(&silent, replacement).await?;
    assert_eq!((job.status, job.failure_reason), OCCUPIED);
    assert_eq!(silent.stands().await?, UNKNOWN, "the original is left as it was");
    assert_eq!(silent.server.read(&silent.name()), Some(bytes));
    Ok(())
}

#[tokio::test]
async fn rpl_07_an_agreed_overwrite_completes_only_on_what_can_tell_the_files_apart() -> anyhow::Result<()> {
    for (contract, read_back_mib, stands) in [
        (ONE_STEP.to_owned(), 1, (Status::Completed, None)),
        (ONE_STEP.to_owned(), 0, UNKNOWN),
        (format!("{ONE_STEP}\ntime_proves_overwrite = true"), 0, (Status::Completed, None)),
    ] {
        let silent = unknown_original(&contract, read_back_mib).await?;
        let mut other = silent.server.read(&silent.temporary().await?).unwrap_or_default();
        // Somebody's file of the same size, with another first letter.
        if let Some(first) = other.first_mut() {
            *first = b'#';
        }
        silent.server.put(&silent.name(), other.clone())?;
        let replacement = replace(&silent, Some("mail of 2026-11-02")).await?;
        let job = ended(&silent, replacement).await?;
        assert_eq!((job.status, job.failure_reason), stands, "{contract}");
        let now = silent.server.read(&silent.name()).unwrap_or_default();
        assert_eq!((now.len(), now == other), (other.len(), false), "{contract}: it was overwritten");
        let events = silent.house.events(replacement).await?;
        let form = events.iter().find_map(|event| match serde_json::from_value(event.detail.clone()?) {
            Ok(Evidence::Publish { form, .. }) => Some(form),
            _ => None,
        });
        assert_eq!(form, Some(PublishForm::PosixRename));
    }
    Ok(())
}

/// Words are demanded by creation; here they are taken away, as if the attempt had become open after it.
async fn without_words(silent: &Silent, replacement: Uuid) -> anyhow::Result<()> {
    sqlx::query("UPDATE export_jobs SET cannot_upload_statement = NULL WHERE id = $1")
        .bind(replacement)
        .execute(&mut silent.house.unguarded().await?)
        .await?;
    Ok(())
}

#[tokio::test]
async fn rpl_09_beside_an_attempt_that_may_still_upload_and_without_words_nothing_is_published() -> anyhow::Result<()> {
    // Each lacks one of the words without which a temporary file is left alone.
    for missing in ["may_remove_temporaries = true", "one_name_space = true", "rename_one_step = true"] {
        let silent = unknown_original(&ONE_STEP.replace(missing, ""), 0).await?;
        let replacement = replace(&silent, None).await?;
        without_words(&silent, replacement).await?;
        let job = ended(&silent, replacement).await?;
        assert_eq!((job.status, job.failure_reason), NOT_DELIVERED, "without {missing}");
        // The one request on the final name is the original's, which the server still holds.
        assert_eq!((silent.server.times_created(&silent.name()), silent.removals().await?), (1, 0));
        assert!(job.publish_intended_at.is_none() && job.delivery_authorized_at.is_some());
        let told = events_text(&silent, replacement).await?;
        assert!(told.contains("may still bring its file") && told.contains(&silent.job.to_string()), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn rpl_09_the_replacements_worker_fences_what_is_open_and_lists_again() -> anyhow::Result<()> {
    // The reconciler's look has not come yet, or a person settled the original by hand and no look is left.
    for settled_by_hand in [false, true] {
        let silent = unknown_original(ONE_STEP, 1).await?;
        let temporary = silent.temporary().await?;
        let replacement = replace(&silent, None).await?;
        without_words(&silent, replacement).await?;
        if settled_by_hand {
            reconciled(&silent, false).await?;
        }
        let (looked, held) = silent.house.look_of(silent.job).await?;
        assert_eq!((looked, held), (settled_by_hand, None));
        let job = ended(&silent, replacement).await?;
        assert_eq!((job.status, job.failure_reason), (Status::Completed, None));
        assert_eq!(silent.server.read(&temporary), None);
        let recorded: Vec<&'static str> = silent
            .evidence()
            .await?
            .iter()
            .filter_map(|one| match one {
                Evidence::RemovalIntended { temporary: intended } if *intended == temporary => Some("intended"),
                Evidence::RemovalAnswered { answer: Answer::Acknowledged, .. } => Some("removed"),
                _ => None,
            })
            .collect();
        assert_eq!(recorded, ["intended", "removed"], "on the original's record");
        assert_eq!(silent.house.look_of(silent.job).await?, (settled_by_hand, None), "the look was given back");
        // The original's process, resumed, has nothing left that it could publish.
        let delivered = silent.server.read(&silent.name());
        silent.gate.open();
        wait::until("the original's publish to be answered", async || {
            Ok(silent.evidence().await?.iter().any(|one| matches!(one, Evidence::Publish { .. })).then_some(()))
        })
        .await?;
        assert!(delivered.is_some() && silent.server.read(&silent.name()) == delivered);
        assert_eq!(store::open_attempts(&silent.house.api, TENANT, silent.job).await?.len(), 1, "only the replacement");
    }
    Ok(())
}

#[tokio::test]
async fn rpl_09_a_file_that_came_first_is_found_and_its_temporary_is_left_alone() -> anyhow::Result<()> {
    let silent = unknown_original(ONE_STEP, 1).await?;
    let replacement = replace(&silent, None).await?;
    without_words(&silent, replacement).await?;
    // The publish takes effect on the server's side just when the replacement has been authorized.
    let (name, temporary) = (silent.name(), silent.temporary().await?);
    let bytes = silent.server.read(&temporary).unwrap_or_default();
    let (gate, mut looks) = (Gate::default(), 0);
    let (held, looked_at) = (gate.clone(), temporary.clone());
    silent.server.hook(move |event| {
        let look = event.when == When::After && event.action == Action::Stat && event.path.ends_with(&looked_at);
        looks += usize::from(look);
        (look && looks == 1).then(|| Fault::Wait(held.clone()))
    });
    let dispatcher = silent.house.dispatcher().await?;
    gate.reached().await?;
    silent.server.put(&name, bytes.clone())?;
    gate.open();
    let job = silent.house.until_ended(replacement).await?;
    dispatcher.stop().await?;
    assert_eq!((job.status, job.failure_reason), NOT_DELIVERED);
    assert_eq!((silent.server.read(&temporary), silent.server.read(&name)), (Some(bytes.clone()), Some(bytes)));
    assert_eq!(silent.removals().await?, 0);
    let told = events_text(&silent, silent.job).await?;
    assert!(told.contains("no longer seen absent"), "{told}");
    Ok(())
}

async fn events_text(silent: &Silent, job: Uuid) -> anyhow::Result<String> {
    let events = silent.house.events(job).await?;
    Ok(events.into_iter().filter_map(|event| event.detail).map(|detail| detail.to_string()).collect())
}

#[tokio::test]
async fn rpl_09_a_removal_that_the_server_confirmed_closes_the_earlier_attempt() -> anyhow::Result<()> {
    let silent = unknown_original(&format!("{ONE_STEP}\nsettle_seconds = 0"), 0).await?;
    let open = store::open_attempts(&silent.house.api, TENANT, silent.job).await?;
    assert_eq!(open.len(), 1);
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    let open = store::open_attempts(&silent.house.api, TENANT, silent.job).await?;
    assert_eq!(open, []);
    Ok(())
}

#[tokio::test]
async fn aut_05_a_replacement_of_an_original_that_was_reconciled_to_completed_sends_nothing() -> anyhow::Result<()> {
    for building in [false, true] {
        let silent = unknown_original(ONE_STEP, 0).await?;
        let replacement = replace(&silent, None).await?;
        let held = HeldBuilds::hold(&silent.house).await?;
        if !building {
            reconciled_to_completed(&silent).await?;
        }
        let dispatcher = silent.house.dispatcher().await?;
        held.reached_by(1).await?;
        if building {
            reconciled_to_completed(&silent).await?;
        }
        held.let_go().await?;
        let job = silent.house.until_ended(replacement).await?;
        assert_eq!((job.status, job.failure_reason), ORIGINAL, "while building: {building}");
        assert!(job.delivery_authorized_at.is_none());
        // The one request on the final name is the original's, which the server still holds.
        assert_eq!(silent.server.times_created(&silent.name()), 1);
        dispatcher.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn lse_03_a_takeover_before_the_fence_ends_the_upload_and_removes_its_temporary() -> anyhow::Result<()> {
    let mut silent = Silent::held_at_a_known_server(renames(), agreed(ONE_STEP), |_, when, action, _| {
        when == When::Before && action == Action::Close
    })
    .await?;
    let job = silent.job;
    let temporary = silent.temporary().await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.gate.open();
    assert_eq!(silent.until_removal().await?, Answer::Acknowledged);
    assert_eq!(silent.server.read(&temporary), None);
    assert_eq!(silent.house.job(job).await?.status, Status::OutcomeUnknown);
    assert_eq!(silent.server.times_created(&silent.name()), 0);
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    Ok(())
}

#[tokio::test]
async fn rcv_11_rec_05_a_replacement_without_a_baseline_is_unknown_and_the_originals_file_proves_neither()
-> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    let bytes = silent.server.read(&silent.temporary().await?).unwrap_or_default();
    let replacement = replace(&silent, None).await?;
    // Its third look at the final name is that of the baseline.
    let (gate, name, mut looks) = (Gate::default(), silent.name(), 0);
    let held = gate.clone();
    silent.server.hook(move |event| {
        let look = event.when == When::Before && event.action == Action::Stat && event.path.ends_with(&name);
        looks += usize::from(look);
        (look && looks == 3).then(|| Fault::Wait(held.clone()))
    });
    let dispatcher = silent.house.dispatcher().await?;
    gate.reached().await?;
    dispatcher.stop().await?;
    assert_eq!(silent.house.job(replacement).await?.status, Status::Delivering);
    silent.server.put(&silent.name(), bytes)?;
    silent.house.expire_lease(replacement).await?;
    silent.house.recovery().await?.run_once().await?;
    assert_eq!(silent.house.job(replacement).await?.status, Status::OutcomeUnknown);
    // The original's very file is there, with the expected size, where names appear only whole: and once a replacement was
    // authorized, that says nothing about the original.
    silent.server.collect(&silent.temporary().await?);
    assert_eq!(silent.looked().await?, [Looked::Open]);
    assert_eq!(silent.stands().await?, UNKNOWN);
    assert_eq!(silent.looked_at(replacement).await?, [Looked::Reconciled(Status::Failed)]);
    let job = silent.house.job(replacement).await?;
    assert_eq!((job.status, job.failure_reason), NOT_DELIVERED);
    let events = silent.house.events(replacement).await?;
    let reconciled = events.iter().find(|event| event.kind == EventKind::Reconciled);
    let detail = reconciled.and_then(|event| event.detail.clone()).unwrap_or_default();
    assert_eq!(detail["rests_on"], "absent_fence", "{detail}");
    Ok(())
}
