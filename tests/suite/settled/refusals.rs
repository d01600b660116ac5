//! A publish that the partner's server refuses: when that proves that nothing was delivered, and when it does not.

use waybill::job::evidence::Answer;
use waybill::job::status::{EventKind, Status};
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, When};

use super::{NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// What comes with the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The server says no to what it did.
    ItTookEffect,
    /// Our temporary file is there with another size afterwards.
    TemporaryOfAnotherSize,
    /// Afterwards the server does not show the final name.
    NameNotShown,
}

const REFUSED: u8 = 4;
const PERMISSION_DENIED: u8 = 3;
const TWO_STEPS: &str = "publishes_whole = true\none_name_space = true\nmay_remove_temporaries = true";

async fn refused(behaviour: Behaviour, contract: &str, beside: Beside) -> anyhow::Result<Silent> {
    let at = if beside == Beside::ItTookEffect { When::After } else { When::Before };
    let mut refused = false;
    Silent::ended(behaviour, agreed(contract), move |name, event| {
        let final_name = event.path.ends_with(name);
        let publish = final_name && matches!(event.action, Action::Rename | Action::Link);
        if publish && event.when == at {
            refused = true;
            return Some(Fault::refuse(REFUSED, "not today"));
        }
        if !refused || event.when != When::Before || event.action != Action::Stat {
            return None;
        }
        match (beside, final_name) {
            (Beside::TemporaryOfAnotherSize, false) => Some(Fault::ReportSize(1)),
            (Beside::NameNotShown, true) => Some(Fault::refuse(PERMISSION_DENIED, "hidden")),
            _ => None,
        }
    })
    .await
}

#[tokio::test]
async fn del_03_a_refusal_with_everything_as_before_is_not_delivered() -> anyhow::Result<()> {
    let kept = format!("{TWO_STEPS}\nkeeps_seconds = 3600");
    for (behaviour, contract) in
        [(renames(), ONE_STEP), (renames(), kept.as_str()), (Behaviour::default(), kept.as_str())]
    {
        let silent = refused(behaviour, contract, Beside::Nothing).await?;
        assert_eq!(silent.stands().await?, NOT_DELIVERED, "{contract}");
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "refused_and_unchanged", "{contract}");
        assert_eq!(silent.server.read(&silent.name()), None);
        // Nothing can be published any more, so the worker clears up what it sent.
        assert_eq!(silent.until_removal().await?, Answer::Acknowledged, "{contract}");
        assert_eq!(silent.server.read(&silent.temporary().await?), None);
    }
    Ok(())
}

#[tokio::test]
async fn del_03_a_refusal_in_two_steps_proves_nothing_unless_final_names_are_kept() -> anyhow::Result<()> {
    let collected = format!("{TWO_STEPS}\nkeeps_seconds = 3600\ncollects = true");
    for (behaviour, contract) in
        [(renames(), TWO_STEPS), (Behaviour::default(), ONE_STEP), (renames(), collected.as_str())]
    {
        let silent = refused(behaviour, contract, Beside::Nothing).await?;
        assert_eq!(silent.stands().await?, UNKNOWN, "{contract}");
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "not_one_step", "{contract}");
        // What may still be published is not for the worker to remove.
        assert_eq!(silent.removals().await?, 0, "{contract}");
    }
    Ok(())
}

#[tokio::test]
async fn del_03_a_refusal_beside_any_change_is_unknown() -> anyhow::Result<()> {
    for (beside, code) in [
        (Beside::ItTookEffect, "not_as_before"),
        (Beside::TemporaryOfAnotherSize, "temporary_not_whole"),
        (Beside::NameNotShown, "not_visible"),
    ] {
        let silent = refused(renames(), ONE_STEP, beside).await?;
        assert_eq!(silent.stands().await?, UNKNOWN, "{beside:?}");
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], code, "{beside:?}");
    }
    Ok(())
}

#[tokio::test]
async fn del_03_a_refusal_whose_temporary_is_gone_is_unknown() -> anyhow::Result<()> {
    let silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    // Somebody takes the file away, and the server has nothing to rename any more.
    assert!(silent.server.collect(&silent.temporary().await?));
    silent.gate.open();
    silent.house.until_ended(silent.job).await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "temporary_not_whole");
    Ok(())
}

#[tokio::test]
async fn del_09_a_removal_that_the_server_did_not_confirm_is_on_record_as_tried() -> anyhow::Result<()> {
    for fault in [Fault::refuse(REFUSED, "not today"), Fault::Cut] {
        let mut refused = false;
        let removal = fault.clone();
        let silent = Silent::ended(renames(), agreed(ONE_STEP), move |name, event| {
            if event.when != When::Before {
                return None;
            }
            if event.action == Action::Rename && event.path.ends_with(name) {
                refused = true;
                return Some(Fault::refuse(REFUSED, "not today"));
            }
            (refused && event.action == Action::Remove).then(|| removal.clone())
        })
        .await?;
        assert_eq!(silent.stands().await?, NOT_DELIVERED, "{fault:?}");
        let answer = silent.until_removal().await?;
        match fault {
            Fault::Cut => assert!(matches!(answer, Answer::Unanswered { .. }), "{answer:?}"),
            _ => assert!(
                matches!(answer, Answer::Refused { code: Some(code), .. } if code == u32::from(REFUSED)),
                "{answer:?}"
            ),
        }
        let temporary = silent.temporary().await?;
        assert!(silent.server.read(&temporary).is_some(), "{fault:?}");
        assert_eq!(silent.removals().await?, 1, "{fault:?}: asked once");
    }
    Ok(())
}

/// Refused, and nobody could look at that moment: a later look settles it, and clears up as the worker would have.
#[tokio::test]
async fn del_09_what_a_later_look_shows_to_be_refused_leaves_no_temporary_either() -> anyhow::Result<()> {
    for leave in [true, false] {
        let contract =
            if leave { ONE_STEP.to_owned() } else { ONE_STEP.replace("may_remove_temporaries = true\n", "") };
        let mut refused = false;
        let silent = Silent::ended(renames(), agreed(&contract), move |name, event| {
            if event.when == When::Before && event.action == Action::Rename && event.path.ends_with(name) {
                refused = true;
                return Some(Fault::refuse(REFUSED, "not today"));
            }
            (refused && matches!(event.action, Action::Stat | Action::RealPath)).then_some(Fault::Cut)
        })
        .await?;
        assert_eq!(silent.stands().await?, UNKNOWN);
        silent.server.clear_hooks();
        assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Failed)]);
        assert_eq!(silent.stands().await?, NOT_DELIVERED);
        assert_eq!(silent.detail(EventKind::Reconciled).await?["proof"]["conclusion"], "refused_and_unchanged");
        let left = silent.server.read(&silent.temporary().await?).is_some();
        assert_eq!((left, silent.removals().await?), (!leave, usize::from(leave)));
        if leave {
            assert_eq!(silent.until_removal().await?, Answer::Acknowledged);
        }
    }
    Ok(())
}
