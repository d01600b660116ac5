//! Two versions of the contract side by side: a bundle that was built for an earlier one goes on delivering, and its two
//! components need not be of the same one.

use waybill::job::evidence::{Evidence, Receipt};
use waybill::job::status::Status;
use waybill::remote::simulated::Behaviour;
use waybill::store::NewJob;
use waybill::upkeep::Looked;
use waybill_tests::house::PlannedQuery;
use waybill_tests::sftp_server::{Action, When};
use waybill_tests::{Database, House, Plan, Reach, SftpServer, wait};

use super::fixture::guest;
use crate::settled::{COMPLETED, ONE_STEP, Silent, agreed, renames};

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

/// Recovery and reconciler call the same old component, with what it knows and nothing else.
#[tokio::test]
async fn plg_01_rec_02_an_outcome_that_an_earlier_version_left_open_is_looked_at_by_it_and_settled()
-> anyhow::Result<()> {
    let no_leave = ONE_STEP.replace("may_remove_temporaries = true\n", "");
    let contract = format!("{no_leave}\n[[contract.auxiliary]]\nname = '{{final}}.done'");
    let plan = agreed(&contract);
    let plan = Plan {
        manifest: plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1"),
        builder: "earlier-builder",
        plugin: "earlier-destination",
        ..plan
    };
    let mut silent = Silent::at(renames(), plan, When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    let seen = async || -> anyhow::Result<Vec<Receipt>> {
        let evidence = silent.evidence().await?.into_iter();
        Ok(evidence.filter_map(|one| if let Evidence::Observation(seen) = one { Some(seen) } else { None }).collect())
    };
    // Its worker is held before the publish: the file is not there, for recovery's look and for a later one.
    assert_eq!(silent.looked().await?, [Looked::Open]);
    let before = seen().await?;
    silent.gate.open();
    wait::until("the file", async || Ok(silent.server.read(&silent.name()))).await?;
    silent.until_receipt().await?;
    assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)]);
    assert_eq!(silent.stands().await?, COMPLETED);
    let after = seen().await?;
    let (name, last) = (silent.name(), after.last().cloned().unwrap_or_default());
    assert!(!before.is_empty() && after.len() > before.len(), "{after:?}");
    for (seen, found) in [(before.last().cloned().unwrap_or_default(), "absent"), (last, "present")] {
        // What the plugin says is its own look, in the words of the version that it was built for, and differs in nothing.
        let reported = seen.reported.clone().unwrap_or_default();
        let listing = reported.get("listing").cloned().unwrap_or_default();
        assert_eq!((listing["at"].as_str(), seen.call.as_ref()), (Some(name.as_str()), None), "{seen:?}");
        assert!(listing["found"].to_string().to_lowercase().contains(found), "{found}: {reported}");
        assert_eq!(seen.differences, [""; 0], "{reported}");
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
