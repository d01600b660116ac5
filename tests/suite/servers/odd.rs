//! Servers that behave oddly, each met by a whole delivery: what it ends in is the truth by the server's own log.

use waybill::job::status::{EventKind, Status};
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, HardLink, Listing, RenameOver, When};
use waybill_tests::{House, Plan, Reach, SftpServer, wait};

use crate::settled::{COMPLETED, NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

fn takes(behaviour: Behaviour) -> Behaviour {
    behaviour.collecting(|name| name.starts_with("/contacts-"))
}

/// The one appearance of the final name, with the bytes that were authorized.
async fn appeared_once(silent: &Silent) -> anyhow::Result<()> {
    let expected = silent.house.job(silent.job).await?.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    let appeared = silent.server.appearances(&silent.name());
    let digests: Vec<_> = appeared.iter().map(|appearance| appearance.sha256).collect();
    assert_eq!(digests, [expected.sha256]);
    assert_eq!(silent.server.times_created(&silent.name()), 1);
    Ok(())
}

#[tokio::test]
async fn del_07_a_partner_that_collects_at_once_and_says_so_has_its_renamed_file() -> anyhow::Result<()> {
    let silent = Silent::ended(takes(renames()), agreed(&format!("{ONE_STEP}\ncollects = true")), |_, _| None).await?;
    assert_eq!(silent.stands().await?, COMPLETED);
    assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "collected");
    assert_eq!(silent.server.read(&silent.name()), None);
    appeared_once(&silent).await
}

#[tokio::test]
async fn del_07_a_partner_that_collects_at_once_and_never_said_so_leaves_an_unknown_outcome() -> anyhow::Result<()> {
    // The file was there and is gone; a link that nobody saw made proves nothing in either contract.
    let collects = format!("{ONE_STEP}\ncollects = true");
    for (behaviour, contract) in
        [(renames(), ONE_STEP), (Behaviour::default(), ONE_STEP), (Behaviour::default(), collects.as_str())]
    {
        let silent = Silent::ended(takes(behaviour), agreed(contract), |_, _| None).await?;
        assert_eq!(silent.stands().await?, UNKNOWN, "{contract}");
        for _ in 0..3 {
            silent.looked().await?;
            assert_eq!(silent.stands().await?, UNKNOWN, "{contract}: the partner has the file");
        }
        appeared_once(&silent).await?;
    }
    Ok(())
}

#[tokio::test]
async fn del_07_a_server_whose_folders_cannot_be_listed_is_delivered_to() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    server.always(When::Before, Action::List, Fault::refuse(3, "listing is forbidden here"));
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    assert_eq!(house.until_ended(id).await?.status, Status::Completed);
    assert_eq!(server.times_written(&House::final_name(id)), 1);
    Ok(())
}

/// A server that shows nothing from the first day on; what stands at it afterwards, with the job.
async fn shows_nothing(contract: &str) -> anyhow::Result<(SftpServer, House, waybill::job::model::Job)> {
    let server = SftpServer::start(Behaviour { listing: Listing::Forbidden, ..Behaviour::default() }).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, agreed(contract)).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    house.until_attention().await?;
    let job = house.until(id, Status::Queued).await?;
    assert_eq!(server.times_created(&House::final_name(job.id)), 0, "something was sent under the final name");
    assert_eq!(server.names_in("/"), Vec::<String>::new(), "something was left behind");
    Ok((server, house, job))
}

#[tokio::test]
async fn del_07_a_server_that_shows_nothing_is_sent_nothing_unless_that_was_agreed() -> anyhow::Result<()> {
    let (_server, house, job) = shows_nothing(ONE_STEP).await?;
    assert_eq!(job.delivery_authorized_at, None, "it was authorized");
    let why = house.until_attention().await?;
    assert!(why.contains("a file that we wrote is not shown under its name"), "{why:?}");
    Ok(())
}

#[tokio::test]
async fn del_07_a_server_that_shows_nothing_cannot_prove_how_it_publishes_and_a_person_is_told() -> anyhow::Result<()> {
    let (_server, house, job) = shows_nothing(&format!("{ONE_STEP}\nlisting_hidden = true")).await?;
    assert_eq!(job.delivery_authorized_at, None, "it was authorized");
    let why = house.until_attention().await?;
    assert!(why.contains("a file that was written and closed is not seen whole"), "{why:?}");
    assert!(!why.contains("not shown under its name"), "that was agreed: {why:?}");
    Ok(())
}

#[tokio::test]
async fn del_07_a_server_that_was_tried_and_shows_nothing_any_more_leaves_an_unknown_outcome() -> anyhow::Result<()> {
    let plan = agreed(&format!("{ONE_STEP}\nlisting_hidden = true"));
    let plan = Plan { manifest: plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1"), ..plan };
    let server = SftpServer::start(renames()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    server.set_behaviour(Behaviour { listing: Listing::Forbidden, ..renames() });
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), UNKNOWN);
    assert_eq!(server.times_written(&House::final_name(id)), 1, "the partner has it");
    house.look_is_due(id).await?;
    assert_eq!(house.reconciler().await?.run_once().await?, [Looked::Open]);
    // The right to look is given again.
    server.set_behaviour(renames());
    house.look_is_due(id).await?;
    assert_eq!(house.reconciler().await?.run_once().await?, [Looked::Reconciled(Status::Completed)]);
    Ok(())
}

#[tokio::test]
async fn del_07_a_server_that_shows_size_0_until_the_close_is_delivered_to() -> anyhow::Result<()> {
    for behaviour in [Behaviour::default(), renames()] {
        let behaviour = Behaviour { listing: Listing::SizeAfterClose, ..behaviour };
        let silent = Silent::ended(behaviour, agreed(ONE_STEP), |_, _| None).await?;
        assert_eq!(silent.stands().await?, COMPLETED);
        appeared_once(&silent).await?;
    }
    Ok(())
}

#[tokio::test]
async fn del_07_a_size_of_0_during_the_upload_is_taken_for_nothing_by_a_takeover() -> anyhow::Result<()> {
    // Created exclusively, the final name is there from the first byte on, with a size that means nothing yet.
    let behaviour = Behaviour {
        listing: Listing::SizeAfterClose,
        hard_link: HardLink::NotOffered,
        rename_over: RenameOver::Replaces,
        ..Behaviour::default()
    };
    let promised = ONE_STEP.replace("publishes_whole = true\n", "");
    let contract =
        format!("{promised}\nexclusive_create = true\n[[contract.auxiliary]]\nname = '{{final}}.done'\ntrigger = true");
    let plan = agreed(&contract);
    let plan = Plan {
        manifest: plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1"),
        destination: "settings = { name = 'contacts-{key}.csv', query = 'rows', done_file = '{final}.done' }\n"
            .to_owned(),
        ..plan
    };
    let mut silent = Silent::at(behaviour, plan, When::Before, Action::Close).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    assert_eq!(silent.looked().await?, [Looked::Open]);
    assert_eq!(silent.stands().await?, UNKNOWN, "a file that grows is neither delivered nor not");
    silent.gate.open();
    silent.until_receipt().await?;
    silent.looked().await?;
    assert_eq!(silent.stands().await?, COMPLETED);
    assert_eq!(silent.server.times_created(&silent.name()), 1);
    assert_eq!(silent.server.times_created(&format!("{}.done", silent.name())), 1, "the worker's own call sent it");
    Ok(())
}

#[tokio::test]
async fn del_07_a_server_that_is_full_has_no_file_and_keeps_no_temporary() -> anyhow::Result<()> {
    for behaviour in [Behaviour::default(), renames()] {
        // The scratch files of the proof fit in it; a delivery does not.
        let behaviour = Behaviour { capacity_bytes: Some(1000), ..behaviour };
        let server = SftpServer::start(behaviour).await?;
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, agreed(ONE_STEP)).await?;
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        let job = house.until_ended(house.create().await?).await?;
        assert_eq!((job.status, job.failure_reason), NOT_DELIVERED);
        assert_eq!(job.publish_intended_at, None);
        wait::until("nothing to be left", async || Ok(server.names_in("/").is_empty().then_some(()))).await?;
    }
    Ok(())
}
