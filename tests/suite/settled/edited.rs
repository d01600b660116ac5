//! The contract is edited between an attempt and the looks at it: the partner's answers are read by both.

use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::upkeep::{Looked, Registered};
use waybill_tests::sftp_server::{Action, Event, Fault, When};
use waybill_tests::wait;

use super::replacements::replace;
use super::{COMPLETED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// `SSH_FX_NO_SUCH_FILE`.
const NO_SUCH_FILE: u8 = 2;

/// Answers as two partners, or one partner twice, might write them.
fn answers(name: &str, accept: &str, refuse: &str) -> String {
    format!(
        "{ONE_STEP}\n[contract.acknowledgment]\nname = '{name}'\naccept = '^{accept} (?P<key>\\S+)'\nrefuse = '^{refuse} (?P<key>\\S+)'\nperiod_seconds = 3600"
    )
}

/// A partner of whom the file of an attempt is taken at once, and whose answer to the publish was lost.
async fn taken(contract: &str) -> anyhow::Result<Silent> {
    let silent = Silent::ended_with(renames(), agreed(contract), &["old", "new"], |name, event| {
        let publish = event.action == Action::Rename && event.path.ends_with(name);
        (publish && event.when == When::After).then_some(Fault::Cut)
    })
    .await?;
    anyhow::ensure!(silent.stands().await? == UNKNOWN, "{:?}", silent.stands().await?);
    Ok(silent)
}

/// The operator puts another revision of the bundle there.
async fn agree_anew(silent: &Silent, contract: &str) -> anyhow::Result<()> {
    let manifest = agreed(contract).manifest;
    let bundle = silent.house.partners().join("acme");
    let revision = silent.house.registry.bundles().iter().map(|bundle| bundle.manifest.revision).max().unwrap_or(0) + 1;
    std::fs::write(bundle.join("partner.toml"), format!("partner = 'acme'\nrevision = {revision}\n{manifest}"))?;
    let registrar = silent.house.registrar().await?;
    wait::until("the new revision", async || {
        let changes = registrar.run_once().await?;
        anyhow::ensure!(!changes.iter().any(|one| matches!(one, Registered::Refused { .. })), "{changes:?}");
        let bundles = silent.house.registry.bundles();
        Ok(bundles.iter().any(|bundle| bundle.manifest.revision == revision).then_some(()))
    })
    .await
}

async fn key(silent: &Silent) -> anyhow::Result<String> {
    Ok(silent.house.job(silent.job).await?.delivery_key)
}

#[tokio::test]
async fn del_10_rec_02_a_refusal_counts_by_the_contract_of_the_claim_and_by_the_one_of_now() -> anyhow::Result<()> {
    let (old, new) = (answers("old/{key}.txt", "OK", "NO"), answers("new/{key}.txt", "TAKEN", "REFUSED"));
    for (answer, expected) in [
        (Some(("old", "NO")), UNKNOWN),
        (Some(("new", "REFUSED")), UNKNOWN),
        // The file is there, whole by the contract, and nobody says no.
        (None, COMPLETED),
    ] {
        let silent = taken(&old).await?;
        let key = key(&silent).await?;
        agree_anew(&silent, &new).await?;
        if let Some((folder, says)) = answer {
            silent.server.put(&format!("{folder}/{key}.txt"), format!("{says} {key}\n"))?;
        }
        let looked = silent.looked().await?;
        assert_eq!((silent.stands().await?, looked.len()), (expected, 1), "{answer:?}: {looked:?}");
        let looks = silent.evidence().await?;
        let said: Vec<_> = looks.iter().filter_map(|one| one.look()).flat_map(|look| &look.acknowledgments).collect();
        assert_eq!(said.len(), usize::from(answer.is_some()), "{answer:?}: {said:?}");
        assert!(said.iter().all(|said| said.says == "refused"), "{said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn del_10_rec_02_an_acceptance_completes_only_by_both_contracts() -> anyhow::Result<()> {
    // Nothing but an answer can complete it.
    let vague = |accept: &str| answers("old/{key}.txt", accept, "NO").replace("publishes_whole = true\n", "");
    for (says, looked, stands) in [
        ("OK", Looked::Open, UNKNOWN),
        ("TAKEN", Looked::Open, UNKNOWN),
        ("FINE", Looked::Reconciled(Status::Completed), COMPLETED),
    ] {
        let silent = taken(&vague("(?:OK|FINE)")).await?;
        let key = key(&silent).await?;
        agree_anew(&silent, &vague("(?:TAKEN|FINE)")).await?;
        silent.server.put(&format!("old/{key}.txt"), format!("{says} {key}\n"))?;
        assert_eq!((silent.looked().await?, silent.stands().await?), (vec![looked], stands), "{says}");
    }
    Ok(())
}

/// What completes nothing may still mean that the partner has it.
#[tokio::test]
async fn rpl_05_del_10_beside_an_acceptance_by_one_of_the_contracts_nothing_is_sent_again() -> anyhow::Result<()> {
    let at = |folder: &str, accept: &str| answers(&format!("{folder}/{{key}}.txt"), accept, "NO");
    for (now, says) in [(at("old", "(?:OK|TAKEN)"), ("old", "TAKEN")), (at("new", "OK"), ("new", "OK"))] {
        let silent = taken(&at("old", "OK")).await?;
        let key = key(&silent).await?;
        // The partner has collected the file.
        assert!(silent.server.collect(&silent.name()));
        agree_anew(&silent, &now).await?;
        let answer = format!("{}/{key}.txt", says.0);
        silent.server.put(&answer, format!("{} {key}\n", says.1))?;
        let replacement = replace(&silent, None).await?;
        let why = wait::until("the replacement to be handed back", async || {
            let events = silent.house.events(replacement).await?;
            Ok(events.into_iter().find(|event| event.kind == EventKind::ReleasedByWorker))
        })
        .await?;
        let why = why.detail.unwrap_or_default().to_string();
        assert!(why.contains("may accept it") && why.contains(says.0), "{why}");
        // Both contracts read it once the partner writes what both know.
        agree_anew(&silent, &at("old", "OK")).await?;
        assert!(silent.server.collect(&answer));
        silent.server.put(&format!("old/{key}.txt"), format!("OK {key}\n"))?;
        let job = silent.house.until_ended(replacement).await?;
        assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::OriginalDelivered)));
        assert!(job.delivery_authorized_at.is_none() && silent.server.times_created(&silent.name()) == 1, "{job:?}");
    }
    Ok(())
}

/// Answers lie elsewhere now, and the partner has cleared the old folder away.
#[tokio::test]
async fn rpl_05_del_10_a_folder_that_only_the_earlier_contract_names_may_be_gone() -> anyhow::Result<()> {
    let silent = taken(&answers("old/{key}.txt", "OK", "NO")).await?;
    assert!(silent.server.collect(&silent.name()));
    let gone = |event: &Event<'_>| {
        let old = event.action == Action::List && event.path.ends_with("old") && event.when == When::Before;
        old.then(|| Fault::refuse(NO_SUCH_FILE, "gone"))
    };
    silent.server.clear_hooks();
    silent.server.hook(gone);
    agree_anew(&silent, &answers("new/{key}.txt", "OK", "NO")).await?;
    let key = key(&silent).await?;
    silent.server.put(&format!("new/{key}.txt"), format!("NO {key}\n"))?;
    assert_eq!(silent.looked().await?, [Looked::Open]);
    let last = silent.evidence().await?.into_iter().rev().find_map(|one| one.look().cloned()).unwrap_or_default();
    assert_eq!((last.acknowledgments.len(), last.unread), (1, None));
    // It is sent: the partner has refused the original.
    let replacement = silent.house.until_ended(replace(&silent, None).await?).await?;
    assert_eq!((replacement.publish_intended_at.is_some(), silent.server.times_created(&silent.name())), (true, 2));
    Ok(())
}

#[tokio::test]
async fn rec_04_del_10_an_answer_is_waited_for_as_long_as_either_contract_says() -> anyhow::Result<()> {
    let agreed_for = |seconds: u32| {
        answers("old/{key}.txt", "OK", "NO").replace("period_seconds = 3600", &format!("period_seconds = {seconds}"))
    };
    for (then, now) in [(86_400, 60), (60, 86_400)] {
        let silent = taken(&agreed_for(then)).await?;
        agree_anew(&silent, &agreed_for(now)).await?;
        assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)]);
        let left: f64 = sqlx::query_scalar(
            "SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM looks WHERE job_id = $1",
        )
        .bind(silent.job)
        .fetch_one(&silent.house.admin)
        .await?;
        assert!(left > 80_000.0, "{then}, {now}: {left}");
    }
    Ok(())
}
