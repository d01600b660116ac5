//! Two versions of the contract side by side: a bundle that was built for an earlier one goes on delivering, and its two
//! components need not be of the same one.

use waybill::job::status::Status;
use waybill::remote::simulated::Behaviour;
use waybill::store::NewJob;
use waybill_tests::house::PlannedQuery;
use waybill_tests::{Database, House, Plan, Reach, SftpServer};

use super::fixture::guest;

const MANIFEST: &str = "[names]\nfinal = 'out/*-{key}.csv'\ntemporary = 'out/.{attempt}.part'\n\
    [contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\n\
    [[contract.auxiliary]]\nname = '{final}.done'\n";

/// What a delivery by these two components leaves at the partner.
async fn delivered(builder: &'static str, destination: &'static str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let server = SftpServer::start(Behaviour::default()).await?;
    server.make_directory("/out")?;
    let data = Database::fresh().await?;
    let password = tempfile::tempdir()?;
    let plan = Plan {
        manifest: MANIFEST.to_owned(),
        destination:
            "settings = { name = 'out/file-{key}.csv', query = 'rows', header = 'no', line_ending = 'lf', done_file = '{final}.done' }\n"
                .to_owned(),
        builder,
        plugin: destination,
        query: Some(PlannedQuery {
            url: data.url(),
            sql: "select n, n::text as name from generate_series(1, 250) as n where :tenant::uuid is not null order by n",
        }),
        ..Plan::default()
    };
    let house = House::before(&Reach::in_process(&server, password.path())?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create_job(NewJob { delivery_key: "K-1".to_owned(), ..House::new_job() }).await?;
    let job = house.until_ended(id).await?;
    assert_eq!(job.status, Status::Completed, "{builder}, {destination}: {:?}", house.events(id).await?);
    let mut files = Vec::new();
    for name in server.names_in("/out") {
        let bytes = server.read(&format!("/out/{name}")).unwrap_or_default();
        files.push((name, bytes));
    }
    Ok(files)
}

#[tokio::test]
async fn plg_01_a_bundle_of_an_earlier_version_of_the_contract_goes_on_delivering() -> anyhow::Result<()> {
    let mut rows = String::new();
    for n in 1..=250 {
        rows.push_str(&format!("{n},{n}\n"));
    }
    let expected = vec![("file-K-1.csv".to_owned(), rows.into_bytes()), ("file-K-1.csv.done".to_owned(), Vec::new())];
    for (builder, destination) in [
        ("earlier-builder", "earlier-destination"),
        ("earlier-builder", "sftp-destination"),
        ("csv-builder", "earlier-destination"),
    ] {
        assert_eq!(delivered(builder, destination).await?, expected, "{builder}, {destination}");
    }
    Ok(())
}

#[test]
fn plg_01_the_earlier_guests_are_of_the_earlier_version_and_the_others_of_the_newest() {
    let names_a_version = |guest: &[u8], version: &str| {
        let name = format!("waybill:partner/types@{version}");
        guest.windows(name.len()).any(|window| window == name.as_bytes())
    };
    for (name, version) in [
        ("earlier-builder", "0.1.0"),
        ("earlier-destination", "0.1.0"),
        ("csv-builder", "0.2.0"),
        ("sftp-destination", "0.2.0"),
    ] {
        assert!(names_a_version(&guest(name), version), "{name} is not of {version}");
    }
}
