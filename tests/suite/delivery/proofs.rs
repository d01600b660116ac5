//! How a server publishes is tried once, and again when it is another server.

use waybill::job::evidence::{Evidence, PublishForm};
use waybill::job::status::Status;
use waybill_tests::sftp_server::{Behaviour, HardLink, RenameOver};
use waybill_tests::{House, Plan, Reach, SftpServer};

use super::evidence;

/// Delivers one job by a worker that has no session yet; the form of its publish, and how many scratch files it made.
async fn delivered(house: &House, server: &SftpServer) -> anyhow::Result<(PublishForm, usize)> {
    let before = server.log().len();
    let worker = house.worker().await?;
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    worker.stop().await?;
    let log = server.log();
    let temporary = |name: &str| name.strip_suffix(".part").is_some();
    let made = log[before..].iter().filter(|logged| logged.operation.creates().is_some_and(temporary)).count();
    let form = evidence(&house.events(job).await?)?.into_iter().find_map(|one| match one {
        Evidence::Publish { form, .. } => Some(form),
        _ => None,
    });
    // One of them is the delivery's own.
    Ok((form.ok_or_else(|| anyhow::anyhow!("no publish on record"))?, made - 1))
}

#[tokio::test]
async fn del_05_a_server_that_changed_is_tried_again_before_it_is_delivered_to() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let _dispatcher = house.dispatcher().await?;
    let (form, tried) = delivered(&house, &server).await?;
    assert_eq!(form, PublishForm::Link);
    assert!(tried > 3, "nothing was tried: {tried}");
    assert_eq!(delivered(&house, &server).await?, (PublishForm::Link, 0), "tried twice");

    // An upgrade: it offers hard links as before, and answers yes without making any.
    let mut upgraded =
        Behaviour { hard_link: HardLink::Lies, rename_over: RenameOver::Refuses, ..Behaviour::default() };
    upgraded.extensions.insert("new@example.com".to_owned(), "1".to_owned());
    server.set_behaviour(upgraded);
    let (form, tried) = delivered(&house, &server).await?;
    assert_eq!(form, PublishForm::Rename, "delivered to by what the old server was shown to do");
    assert!(tried > 3, "nothing was tried: {tried}");
    let kept: i64 = sqlx::query_scalar("SELECT count(DISTINCT server_fingerprint) FROM destination_checks")
        .fetch_one(&house.admin)
        .await?;
    assert_eq!(kept, 2);
    Ok(())
}
