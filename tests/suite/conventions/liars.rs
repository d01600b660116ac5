//! PLG-05: plugins that say what is not so, in real deliveries. What the host saw decides, and the difference is on record.

use waybill::job::evidence::Evidence;
use waybill::job::status::{FailureReason, Status};
use waybill::upkeep::Looked;
use waybill_tests::Plan;
use waybill_tests::sftp_server::{Action, Fault, When};

use super::{Outcome, Partner, completed, not_delivered, unknown};
use crate::settled::{ONE_STEP, agreed};

/// A partner with a misbehaving plugin, whose every job says in its scope what it does.
async fn lying(contract: &str, read_back_mib: u32) -> anyhow::Result<Partner> {
    let answers =
        "[contract.acknowledgment]\nname = 'answers/{key}.txt'\naccept = '^ok (?P<key>\\S+)'\nperiod_seconds = 3600";
    let plan = agreed(&format!("{contract}\n{answers}"));
    let plan = Plan {
        manifest: plan.manifest.replace("read_back_mib = 0", &format!("read_back_mib = {read_back_mib}")),
        destination: "settings = { name = 'contacts-{key}.csv', query = 'rows', parameters = '' }\n".to_owned(),
        plugin: "misbehaving-destination",
        ..plan
    };
    Partner::agreed(plan, &["answers"]).await
}

/// The key of a job says what its plugin does.
async fn told(partner: &Partner, behaviour: &str) -> anyhow::Result<(Outcome, Vec<String>)> {
    let job = partner.deliver_with(behaviour, serde_json::json!({ "behaviour": behaviour })).await?;
    Ok((partner.outcome(&job).await?, partner.seen(&job).await?.differences))
}

#[tokio::test]
async fn plg_05_what_a_plugin_claims_changes_no_outcome_and_the_difference_is_on_record() -> anyhow::Result<()> {
    let partner = lying(&format!("{ONE_STEP}\n[[contract.auxiliary]]\nname = '{{final}}.done'"), 1).await?;
    for (behaviour, outcome, difference) in [
        ("well", completed("checksum"), ""),
        ("lie-receipt", not_delivered("never_sent"), "the host saw no file, the plugin reported a file"),
        ("never-send", not_delivered("never_sent"), ""),
        ("never-publish", not_delivered("never_sent"), ""),
        ("lie-absent", completed("checksum"), "the host saw a file, the plugin reported no file"),
        ("lie-name", completed("checksum"), "the plugin reported \"somebody-elses.csv\""),
        ("lie-auxiliary", completed("checksum"), "files beside the data file that it did not put (1)"),
        ("lie-acknowledgment", completed("checksum"), "reported an acknowledgment, the host read none"),
        ("fail-after-publish", unknown("interrupted"), ""),
    ] {
        let (stands, differences) = told(&partner, behaviour).await?;
        assert_eq!(stands, outcome, "{behaviour}");
        match differences.as_slice() {
            [] => assert_eq!(difference, "", "{behaviour}"),
            [one] => assert!(!difference.is_empty() && one.contains(difference), "{behaviour}: {one}"),
            several => panic!("{behaviour}: {several:?}"),
        }
        let there = partner.server.read(&format!("contacts-{behaviour}.csv")).is_some();
        assert_eq!(there, outcome.0 != Status::Failed, "{behaviour}");
    }
    assert_eq!(partner.server.names_in("answers"), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn plg_05_where_nothing_else_is_promised_a_claimed_answer_or_checksum_is_no_proof() -> anyhow::Result<()> {
    let partner = lying("one_name_space = true", 0).await?;
    for behaviour in ["lie-acknowledgment", "lie-own-acknowledgment", "lie-digest"] {
        let (stands, differences) = told(&partner, behaviour).await?;
        assert_eq!(stands, unknown("not_promised_whole"), "{behaviour}: {differences:?}");
        assert_eq!(differences.len(), usize::from(behaviour != "lie-digest"), "{behaviour}: {differences:?}");
    }
    // Its own key, said by the partner: that counts, and the other job's claim still does not.
    let job = partner.deliver_with("honest", serde_json::json!({ "behaviour": "lie-acknowledgment" })).await?;
    partner.server.put("answers/another-key.txt", "ok another-key\n")?;
    assert_eq!(partner.looked(&job).await?, [Looked::Open]);
    partner.server.put("answers/honest.txt", "ok honest\n")?;
    assert_eq!(partner.looked(&job).await?, [Looked::Reconciled(Status::Completed)]);
    Ok(())
}

#[tokio::test]
async fn plg_05_the_expected_checksum_in_a_listing_hides_no_other_content() -> anyhow::Result<()> {
    let partner = lying(ONE_STEP, 1).await?;
    partner.when_published(|server, key| {
        let name = format!("contacts-{key}.csv");
        let mut other = server.read(&name).unwrap();
        other[0] ^= 1;
        server.put(&name, other).unwrap();
    });
    let (stands, differences) = told(&partner, "lie-digest").await?;
    assert_eq!(stands, unknown("checksum_differs"));
    assert!(matches!(differences.as_slice(), [one] if one.contains("the host read the checksum")), "{differences:?}");
    Ok(())
}

#[tokio::test]
async fn plg_05_an_absent_baseline_over_a_present_file_replaces_nothing() -> anyhow::Result<()> {
    let partner = lying(ONE_STEP, 1).await?;
    // Before cutoff 2: nothing is sent.
    partner.server.put("contacts-early.csv", "somebody else's")?;
    let job = partner.deliver_with("early", serde_json::json!({ "behaviour": "lie-absent" })).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::FinalNameOccupied)));
    assert_eq!((job.delivery_authorized_at, partner.server.times_created("contacts-early.csv")), (None, 0));
    // After it: the recorded baseline is the host's, with the plugin's beside it.
    let looks = std::sync::atomic::AtomicU32::new(0);
    partner.when(When::Before, Action::Stat, move |server, key| {
        // The host's look and the plugin's come before cutoff 2, and the host's next one is the baseline.
        if looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2 {
            server.put(&format!("contacts-{key}.csv"), "somebody else's").unwrap();
        }
    });
    let job = partner.deliver_with("late", serde_json::json!({ "behaviour": "lie-absent" })).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::FinalNameOccupied)));
    assert!(job.delivery_authorized_at.is_some());
    let [Evidence::Baseline { look, reported: Some(reported), .. }, ..] = &partner.evidence(&job).await?[..] else {
        panic!("no baseline is on record")
    };
    assert_ne!(look.found, reported.found);
    for key in ["early", "late"] {
        assert_eq!(partner.server.read(&format!("contacts-{key}.csv")).as_deref(), Some(&b"somebody else's"[..]));
    }
    Ok(())
}

#[tokio::test]
async fn plg_05_a_trigger_that_was_only_claimed_is_not_confirmed() -> anyhow::Result<()> {
    let contract = format!("{ONE_STEP}\n[[contract.auxiliary]]\nname = '{{final}}.done'\ntrigger = true");
    let partner = lying(&contract, 1).await?;
    let (stands, differences) = told(&partner, "lie-auxiliary").await?;
    assert_eq!(stands, unknown("trigger_not_confirmed"));
    assert_eq!(differences.len(), 1, "{differences:?}");
    Ok(())
}

#[tokio::test]
async fn plg_05_what_a_plugin_says_at_a_later_look_settles_nothing() -> anyhow::Result<()> {
    let partner = lying("publishes_whole = true", 1).await?;
    partner.server.hook(|event| {
        let publish = event.when == When::Before && event.action == Action::Rename;
        publish.then(|| Fault::Cut)
    });
    for (behaviour, difference) in
        [("lie-digest", "the host saw no file"), ("lie-own-acknowledgment", "the host read none")]
    {
        let job = partner.deliver_with(behaviour, serde_json::json!({ "behaviour": behaviour })).await?;
        assert_eq!(partner.outcome(&job).await?, unknown("unanswered_and_absent"), "{behaviour}");
        assert_eq!(partner.looked(&job).await?, [Looked::Open], "{behaviour}");
        assert_eq!(partner.outcome(&job).await?, unknown("unanswered_and_absent"), "{behaviour}");
        let seen = partner.seen(&job).await?;
        assert!(seen.differences.iter().any(|one| one.contains(difference)), "{behaviour}: {seen:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_05_our_own_file_never_passes_for_the_partners_answer() -> anyhow::Result<()> {
    let partner = lying("one_name_space = true", 0).await?;
    let script = "send,put:answers/forged.txt,publish,put:answers/forged.txt,mkdir:answers/x,publish-over";
    let scope = serde_json::json!({ "behaviour": "script", "script": script });
    let job = partner.deliver_with("forged", scope).await?;
    assert_eq!(partner.outcome(&job).await?, unknown("not_promised_whole"));
    assert_eq!(partner.server.names_in("answers"), Vec::<String>::new());
    let reported = partner.seen(&job).await?.reported.unwrap_or_default();
    let answers = reported["extra"].as_array().cloned().unwrap_or_default();
    let forbidden = answers.iter().filter(|answer| answer.to_string().contains("Forbidden")).count();
    assert_eq!((answers.len(), forbidden), (6, 4), "{reported}");
    Ok(())
}

#[tokio::test]
async fn plg_05_a_baseline_without_end_or_of_another_name_ends_the_job_before_anything_is_sent() -> anyhow::Result<()> {
    let partner = lying(ONE_STEP, 1).await?;
    for behaviour in ["flood-report", "lie-baseline-name"] {
        let job = partner.deliver_with(behaviour, serde_json::json!({ "behaviour": behaviour })).await?;
        assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::BuildFailed)), "{behaviour}");
        let created = partner.server.times_created(&format!("contacts-{behaviour}.csv"));
        assert_eq!((job.delivery_authorized_at, created), (None, 0), "{behaviour}");
        let recorded = format!("{:?}", partner.house.events(job.id).await?);
        assert!(recorded.len() < 10_000, "{behaviour}: {} bytes were recorded of it", recorded.len());
    }
    Ok(())
}

#[tokio::test]
async fn plg_05_rpl_08_a_replacement_that_is_named_otherwise_is_not_sent() -> anyhow::Result<()> {
    let plan = agreed(ONE_STEP);
    let plan = Plan {
        manifest: plan.manifest.replace("contacts-{key}.csv", "contacts-{key}*.csv"),
        destination: "settings = { behaviour = 'name-unstable', query = 'rows' }\n".to_owned(),
        plugin: "misbehaving-destination",
        ..plan
    };
    let partner = Partner::agreed(plan, &[]).await?;
    partner.server.once(When::Before, Action::Rename, Fault::refuse(4, "not today"));
    let original = partner.deliver("spring").await?;
    assert_eq!(partner.outcome(&original).await?, not_delivered("refused_and_unchanged"));
    partner.server.forget();
    let replacement = partner.replace(original.id).await?;
    assert_eq!((replacement.status, replacement.failure_reason), (Status::Failed, Some(FailureReason::BuildFailed)));
    let created: Vec<_> = partner.server.log().into_iter().filter(|done| done.operation.creates().is_some()).collect();
    assert!(created.is_empty(), "{created:?}");
    Ok(())
}
