//! Several acknowledgment files beside each other: which one counts.

use waybill::job::status::{EventKind, Status};
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Fault, When};

use super::replacements::replace;
use super::{COMPLETED, Silent, UNKNOWN, agreed, renames};

/// The key always, the attempt where the partner names it.
const CONTRACT: &str = "[contract.acknowledgment]\nname = '{final}.*.ack'\n\
    accept = '^ok (?P<key>\\S+)(?: (?P<attempt>\\S+))?'\nperiod_seconds = 3600";

#[tokio::test]
async fn vrd_03_del_10_an_acceptance_that_names_only_the_key_hides_none_that_names_the_attempt() -> anyhow::Result<()> {
    // Files are read in the order of the listing, so either one comes first once.
    for (vague, tied) in [("1", "2"), ("2", "1")] {
        let silent = Silent::ended(renames(), agreed(CONTRACT), |name, event| {
            let publish = event.action == Action::Rename && event.path.ends_with(name);
            (publish && event.when == When::Before).then_some(Fault::Cut)
        })
        .await?;
        let replacement = silent.house.until_ended(replace(&silent, None).await?).await?;
        let original = silent.house.job(silent.job).await?;
        for job in [&original, &replacement] {
            assert_eq!((job.status, job.publish_intended_at.is_some()), (Status::OutcomeUnknown, true));
        }
        let (key, attempt) = (&original.delivery_key, original.attempt.unwrap_or_default());
        silent.server.put(&format!("{}.{vague}.ack", silent.name()), format!("ok {key}\n"))?;
        assert_eq!(silent.looked().await?, [Looked::Open]);
        assert_eq!(silent.stands().await?, UNKNOWN, "two attempts passed the fence, and the key names both");
        silent.server.put(&format!("{}.{tied}.ack", silent.name()), format!("ok {key} {attempt}\n"))?;
        assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)], "the tied one is {tied}");
        assert_eq!(silent.stands().await?, COMPLETED);
        assert_eq!(silent.detail(EventKind::Reconciled).await?["proof"]["conclusion"], "acknowledged_attempt");
        assert_eq!(silent.looked_at(replacement.id).await?, [Looked::Open], "it is the original's alone");
    }
    Ok(())
}
