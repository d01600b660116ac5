//! A replacement that went silent beside its original.

use uuid::Uuid;
use waybill::job::status::{EventKind, Status};
use waybill::store::{self, NewReplacement};
use waybill::upkeep::Looked;
use waybill_tests::house::TENANT;
use waybill_tests::sftp_server::{Action, Fault, Gate, When};

use super::{NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

#[tokio::test]
async fn rcv_11_rec_05_a_replacement_without_a_baseline_is_unknown_and_the_originals_file_proves_neither()
-> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    let bytes = silent.server.read(&silent.temporary().await?).unwrap_or_default();
    let replacement = Uuid::now_v7();
    let new = NewReplacement {
        id: replacement,
        tenant: TENANT,
        original: silent.job,
        created_by: "rosa".to_owned(),
        reason: "the partner never saw it".to_owned(),
        overwrite_agreement_ref: None,
        cannot_upload: Some("its host was switched off for good".to_owned()),
    };
    if let Err(refused) = store::create_replacement(&silent.house.api, new).await? {
        panic!("{refused}");
    }
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
