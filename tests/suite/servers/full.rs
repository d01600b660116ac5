//! Real servers on a disk that is really full. Some say yes to every write and to the close: the size that is read back is
//! what tells.

use waybill::job::status::Status;
use waybill_tests::{House, PartnerServer, Plan, Product, Reach, SmallDisk, wait};

use crate::settled::NOT_DELIVERED;

/// Some megabytes of CSV, for a disk of one.
const MANY_ROWS: i32 = 60_000;

/// In the order in which they are made, so that they are taken down the other way round.
struct Full {
    _server: PartnerServer,
    disk: SmallDisk,
    house: House,
}

async fn full(product: Product, plan: Plan) -> anyhow::Result<Full> {
    let server = PartnerServer::start(product).await?;
    let disk = SmallDisk::mount(&server.files().join("incoming"), 1024)?;
    let reach = Reach { directory: "incoming".to_owned(), ..server.reach() };
    let house = House::before(&reach, Plan { rows: MANY_ROWS, ..plan }).await?;
    Ok(Full { _server: server, disk, house })
}

async fn has_no_file(product: Product) -> anyhow::Result<()> {
    let Full { _server, disk, house } = full(product, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(house.create().await?).await?;
    assert_eq!((job.status, job.failure_reason), NOT_DELIVERED, "{:?}", house.events(job.id).await?);
    assert_eq!(job.publish_intended_at, None, "the publish was asked for");
    assert!(job.expected.is_some_and(|expected| expected.bytes > 1 << 20));
    // The temporary file is removed once the end is on record.
    wait::until("nothing to stay at the partner", async || Ok(disk.names()?.is_empty().then_some(()))).await
}

#[tokio::test]
async fn del_07_proftpd_on_a_full_disk_has_no_file_and_keeps_no_temporary() -> anyhow::Result<()> {
    has_no_file(Product::ProFtpd).await
}

#[tokio::test]
async fn del_07_asyncssh_on_a_full_disk_has_no_file_and_keeps_no_temporary() -> anyhow::Result<()> {
    has_no_file(Product::AsyncSsh).await
}

#[tokio::test]
async fn del_07_a_disk_that_fills_during_an_exclusive_create_is_unknown_and_the_trigger_is_never_sent()
-> anyhow::Result<()> {
    let plan = Plan {
        manifest: "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\nexclusive_create = true\n\
                   [[contract.auxiliary]]\nname = '{final}.done'\ntrigger = true\n"
            .to_owned(),
        destination: "settings = { name = 'contacts-{key}.csv', query = 'rows', done_file = '{final}.done' }\n"
            .to_owned(),
        ..Plan::default()
    };
    let Full { _server, disk, house } = full(Product::ParamikoStub, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(house.create().await?).await?;
    assert_eq!((job.status, job.failure_reason), (Status::OutcomeUnknown, None), "{:?}", house.events(job.id).await?);
    assert_eq!(disk.names()?, [House::final_name(job.id)], "half a file, and no trigger that would have it read");
    Ok(())
}
