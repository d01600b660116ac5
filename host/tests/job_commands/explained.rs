//! `waybill job explain`: the whole story, what may be said, what can be done.

use waybill::job::status::{FailureReason, Role};
use waybill::store::DeliveryOutcome;

use crate::stage::Stage;

#[tokio::test]
async fn can_08_a_delivery_under_way_is_neither_canceled_nor_delivered() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.delivering().await?;
    stage.intend(of).await?;
    let id = of.job.to_string();
    let late = stage.waybill(&["cancel", &id, "--reason", "wrong region"])?;
    late.says(4, &["TooLate", "It is too late"]);
    assert!(!late.said.contains("canceled"), "{}", late.said);
    let told = stage.waybill(&["explain", &id])?;
    told.says(
        0,
        &[
            "olga created it",
            "Worker worker-1 claimed version 1",
            "Delivery was authorized",
            "will publish now (a link to the final name)",
            "rosa asked for it to be canceled (wrong region). It is too late",
            "is being sent now and may be with you",
            "waybill job watch",
        ],
    );
    for said in ["is canceled", "was delivered", "not delivered", "waybill job cancel", "waybill job replace"] {
        assert!(!told.said.contains(said), "{said:?} is in: {}", told.said);
    }
    Ok(())
}

#[tokio::test]
async fn can_08_an_unknown_outcome_is_neither_delivered_nor_not() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.unknown(true).await?;
    let id = of.job.to_string();
    let told = stage.waybill(&["explain", &id])?;
    told.says(
        0,
        &[
            "lease ran out during the delivery; recovery recorded OutcomeUnknown. Nothing was seen.",
            "may have reached you; please look whether you have it, and do not delete it",
            &format!(
                "waybill job reconcile {id} --tenant {} --attempt {} --outcome completed",
                stage.tenant, of.attempt
            ),
            "--outcome not-delivered",
            "waybill job replace",
        ],
    );
    let json = stage.waybill(&["explain", &id, "--json"])?.json()?;
    assert_eq!(json["state"], "OutcomeUnknown");
    assert!(json["to_the_partner"].as_str().is_some_and(|said| said.contains("may have reached you")), "{json}");
    let (told, next) = (json["told"].as_array().unwrap(), json["next"].as_array().unwrap());
    assert_eq!(told.last().unwrap()["kind"], "ResolvedByRecovery");
    assert!(next.iter().any(|step| step["command"].as_str().is_some_and(|command| command.contains("job replace"))));

    // Proven never to have published: a person cannot complete it, so that step is not offered.
    let never = stage.unknown(false).await?;
    let told = stage.waybill(&["explain", &never.job.to_string()])?;
    told.says(0, &["--outcome not-delivered"]);
    assert!(!told.said.contains("--outcome completed"), "{}", told.said);
    Ok(())
}

#[tokio::test]
async fn cli_01_evidence_that_this_version_does_not_know_is_shown_as_it_stands() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?;
    for detail in [r#"{"evidence":"moon","phase":"full"}"#, "[]", "7"] {
        sqlx::query(
            "INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
             VALUES ($1, $2, 'DeliveryEvidence', 'run-9', $3::jsonb, clock_timestamp())",
        )
        .bind(of.job)
        .bind(of.attempt)
        .bind(detail)
        .execute(&stage.database.pool(Role::Recovery.login()).await?)
        .await?;
    }
    let told = stage.waybill(&["explain", &of.job.to_string()])?;
    told.says(
        0,
        &["run-9 appended evidence of a kind that this version does not know", "\"phase\":\"full\"", "Mend the cause"],
    );
    Ok(())
}
