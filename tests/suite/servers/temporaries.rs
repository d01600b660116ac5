//! What becomes of the temporary file: removed where the contract gives leave, else named on record and left; and after a
//! publish that was not answered nobody's but the reconciler's.

use waybill::job::evidence::{Answer, Evidence, Receipt};
use waybill::job::facts::Found;
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, When};

use crate::settled::{COMPLETED, NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

const NO_LEAVE: &str = "publishes_whole = true\none_name_space = true\nrename_one_step = true";

/// Refuses the close of the delivery's temporary file, or its publish.
async fn broken(contract: &str, publish: bool) -> anyhow::Result<Silent> {
    Silent::ended(renames(), agreed(contract), move |name, event| {
        let here = if publish {
            event.action == Action::Rename && event.path.ends_with(name)
        } else {
            event.action == Action::Close && event.path.ends_with("part")
        };
        (here && event.when == When::Before).then(|| Fault::refuse(4, "not today"))
    })
    .await
}

/// The receipt says under which name the file lies.
fn named(receipt: &Receipt, temporary: &str) -> bool {
    let seen = receipt.temporary.as_ref();
    seen.is_some_and(|look| look.at == temporary && matches!(look.found, Found::Present(_)))
}

#[tokio::test]
async fn del_09_with_leave_the_temporary_of_a_failed_delivery_is_removed() -> anyhow::Result<()> {
    for publish in [false, true] {
        let silent = broken(ONE_STEP, publish).await?;
        assert_eq!(silent.stands().await?, NOT_DELIVERED);
        assert_eq!(silent.until_removal().await?, Answer::Acknowledged, "publish: {publish}");
        assert_eq!((silent.server.read(&silent.temporary().await?), silent.removals().await?), (None, 1));
    }
    Ok(())
}

#[tokio::test]
async fn del_09_without_leave_the_temporary_of_a_failed_delivery_is_named_and_left() -> anyhow::Result<()> {
    for publish in [false, true] {
        let mut silent = broken(NO_LEAVE, publish).await?;
        assert_eq!(silent.stands().await?, NOT_DELIVERED);
        let (receipt, temporary) = (silent.receipt().await?, silent.temporary().await?);
        assert!(named(&receipt, &temporary), "publish: {publish}: {receipt:?}");
        // Whatever its worker still does after its end is done then.
        let another = silent.house.worker().await?;
        assert!(std::mem::replace(&mut silent.worker, another).stop().await?, "something was under way");
        assert!(silent.server.read(&temporary).is_some());
        // Nor does anybody else, later.
        silent.house.recovery().await?.run_once().await?;
        silent.house.reconciler().await?.run_once().await?;
        assert_eq!(silent.removals().await?, 0, "publish: {publish}");
    }
    Ok(())
}

#[tokio::test]
async fn del_09_after_an_unanswered_publish_only_the_reconciler_removes_the_temporary() -> anyhow::Result<()> {
    let silent = Silent::ended(renames(), agreed(ONE_STEP), |name, event| {
        let publish = event.action == Action::Rename && event.path.ends_with(name);
        (publish && event.when == When::Before).then_some(Fault::Cut)
    })
    .await?;
    let temporary = silent.temporary().await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    silent.receipt().await?;
    silent.house.recovery().await?.run_once().await?;
    assert_eq!(silent.removals().await?, 0, "somebody asked before the reconciler's look was due");
    assert!(silent.server.read(&temporary).is_some());
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    assert_eq!((silent.server.read(&temporary), silent.removals().await?), (None, 1));
    let evidence = silent.evidence().await?;
    let intended =
        evidence.iter().any(|one| matches!(one, Evidence::RemovalIntended { temporary: of } if *of == temporary));
    let answered = evidence.iter().any(|one| {
        matches!(one, Evidence::RemovalAnswered { temporary: of, answer: Answer::Acknowledged } if *of == temporary)
    });
    assert!(intended && answered, "{evidence:?}");
    Ok(())
}

#[tokio::test]
async fn del_09_after_an_unanswered_publish_and_without_leave_nobody_removes_it_and_it_is_named() -> anyhow::Result<()>
{
    let silent = Silent::ended(renames(), agreed(NO_LEAVE), |name, event| {
        let publish = event.action == Action::Rename && event.path.ends_with(name);
        (publish && event.when == When::Before).then_some(Fault::Cut)
    })
    .await?;
    for _ in 0..3 {
        assert_eq!(silent.looked().await?, [Looked::Open]);
    }
    let temporary = silent.temporary().await?;
    assert_eq!((silent.stands().await?, silent.removals().await?), (UNKNOWN, 0));
    assert!(silent.server.read(&temporary).is_some());
    let looks: Vec<Receipt> = silent.evidence().await?.iter().filter_map(|one| one.look().cloned()).collect();
    assert!(looks.iter().any(|look| named(look, &temporary)), "{looks:?}");
    Ok(())
}

#[tokio::test]
async fn del_09_a_linked_file_whose_temporary_name_stays_is_delivered_and_the_name_is_on_record() -> anyhow::Result<()>
{
    // A line that is cut there ends the plugin's call too, and a later look completes it.
    for (fault, first) in [(Fault::refuse(4, "not today"), COMPLETED), (Fault::Cut, UNKNOWN)] {
        let told = fault.clone();
        let silent = Silent::ended(Behaviour::default(), agreed(ONE_STEP), move |_, event| {
            (event.when == When::Before && event.action == Action::Remove).then(|| told.clone())
        })
        .await?;
        assert_eq!(silent.stands().await?, first, "{fault:?}");
        let (receipt, temporary) = (silent.receipt().await?, silent.temporary().await?);
        assert!(named(&receipt, &temporary), "{fault:?}: {receipt:?}");
        assert_eq!(receipt.temporary_removed, Some(false), "{fault:?}");
        silent.looked().await?;
        assert_eq!(silent.stands().await?, COMPLETED, "{fault:?}");
        assert!(silent.server.read(&temporary).is_some(), "{fault:?}");
        assert_eq!((silent.server.times_written(&silent.name()), silent.removals().await?), (1, 1), "{fault:?}");
    }
    Ok(())
}
