//! Done-files, sidecars and manifests: where, when and as what they are written, and what follows if they are not.

use waybill::job::evidence::Answer;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill_tests::sftp_server::{Action, Fault, When};
use waybill_tests::{Operation, Plan};

use super::{Partner, completed, not_delivered};
use crate::settled::{ONE_STEP, agreed};

/// A checksum in another folder before the data, and a manifest with another extension after it, which the partner acts on.
fn listed() -> Plan {
    let contract = format!(
        "{ONE_STEP}\n[[contract.auxiliary]]\nname = 'sums/{{final.name}}.sha256'\nbefore_publish = true\n\
         [[contract.auxiliary]]\nname = '{{final.stem}}.json'\ntrigger = true"
    );
    let plan = agreed(&contract);
    Plan {
        manifest: plan
            .manifest
            .replace("read_back_mib = 0", "read_back_mib = 1")
            .replace("final = 'contacts", "final = 'in/contacts"),
        destination: "[destination.settings]\nname = 'in/contacts-{key}.csv'\nquery = 'rows'\n\
             before_file = 'sums/{final.name}.sha256'\nbefore_content = 'sha256'\n\
             done_file = '{final.stem}.json'\ndone_content = 'text'\n\
             done_text = '{{\"file\": \"{final.name}\", \"bytes\": {bytes}, \"sha256\": \"{sha256}\"}}'\n"
            .to_owned(),
        ..plan
    }
}

#[tokio::test]
async fn del_10_files_beside_the_data_come_at_their_place_in_the_agreed_order() -> anyhow::Result<()> {
    let partner = Partner::agreed(listed(), &["in", "sums"]).await?;
    partner.server.forget();
    let job = partner.deliver("spring").await?;
    assert_eq!(partner.outcome(&job).await?, completed("checksum"));
    let expected = job.expected.clone().ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    let named: Vec<String> = partner
        .server
        .operations()
        .into_iter()
        .filter_map(|done| match done.operation {
            Operation::Open { path, mode } if mode.create => Some(path),
            Operation::Rename { to, .. } => Some(to),
            _ => None,
        })
        .collect();
    let [_temporary, sum, data, manifest] = &named[..] else { panic!("{named:?}") };
    assert_eq!(
        [sum.as_str(), data.as_str(), manifest.as_str()],
        ["/sums/contacts-spring.csv.sha256", "/in/contacts-spring.csv", "/in/contacts-spring.json"]
    );
    let text = |name: &str| String::from_utf8(partner.server.read(name).unwrap_or_default());
    let (bytes, sha256) = (expected.bytes, expected.sha256);
    assert_eq!(text(sum)?, format!("{sha256}  contacts-spring.csv\n"));
    assert_eq!(
        text(manifest)?,
        format!("{{\"file\": \"contacts-spring.csv\", \"bytes\": {bytes}, \"sha256\": \"{sha256}\"}}")
    );
    let put = partner.seen(&job).await?.auxiliary;
    assert_eq!(put.iter().map(|put| put.trigger).collect::<Vec<_>>(), [false, true]);
    assert!(put.iter().all(|put| put.answer == Answer::Acknowledged), "{put:?}");
    Ok(())
}

#[tokio::test]
async fn del_10_without_the_file_that_comes_first_nothing_is_published_and_a_replacement_finds_what_is_left_of_it()
-> anyhow::Result<()> {
    let partner = Partner::agreed(listed(), &["in", "sums"]).await?;
    partner.server.hook(|event| {
        let first = event.when == When::Before && event.action == Action::Open && event.path.starts_with("/sums/");
        first.then(|| Fault::refuse(4, "not today"))
    });
    let job = partner.deliver("spring").await?;
    assert_eq!(partner.outcome(&job).await?, not_delivered("never_sent"));
    assert_eq!(partner.server.times_created("in/contacts-spring.csv"), 0);
    // The checksum is there, and the publish was refused: the replacement's is the very same, and the delivery goes on.
    partner.server.clear_hooks();
    let mut refused = false;
    partner.server.hook(move |event| {
        let publish = !refused && event.when == When::Before && event.action == Action::Rename;
        refused |= publish;
        publish.then(|| Fault::refuse(4, "not today"))
    });
    let original = partner.deliver("summer").await?;
    assert_eq!(partner.outcome(&original).await?, not_delivered("refused_and_unchanged"));
    assert!(partner.server.read("sums/contacts-summer.csv.sha256").is_some());
    let replacement = partner.replace(original.id).await?;
    assert_eq!(partner.outcome(&replacement).await?, completed("checksum"));
    assert_eq!(partner.seen(&replacement).await?.differences, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn del_10_a_file_beside_the_data_that_could_pass_for_an_answer_is_refused_by_name() -> anyhow::Result<()> {
    let contract = format!(
        "{ONE_STEP}\n[[contract.auxiliary]]\nname = 'out/{{key}}.txt'\n\
         [contract.acknowledgment]\nname = 'out/*.txt'\naccept = '^ok (?P<key>\\S+)'\nperiod_seconds = 3600"
    );
    let fault =
        waybill::plugin::Manifest::parse(&format!("partner = 'acme'\nrevision = 1\n{}", agreed(&contract).manifest));
    let said = fault.map_or_else(|fault| fault.to_string(), |_| String::new());
    assert!(said.contains("out/{key}.txt matches the acknowledgment's name (out/*.txt)"), "{said}");

    // Patterns that no manifest can tell apart, because a key may be anything: the attempt's names are refused.
    let contract = contract.replace("out/{key}.txt", "out/{final.stem}").replace("out/*.txt", "out/contacts-today");
    let partner = Partner::agreed(agreed(&contract), &["out"]).await?;
    let job = partner.deliver("today").await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::BuildFailed)));
    let events = partner.house.events(job.id).await?;
    let failed = events.iter().find(|event| event.kind == EventKind::Failed).and_then(|event| event.detail.clone());
    assert!(failed.unwrap_or_default().to_string().contains("could pass for the partner's answer"), "{events:?}");
    assert_eq!(partner.server.times_created("contacts-today.csv"), 0);
    Ok(())
}
