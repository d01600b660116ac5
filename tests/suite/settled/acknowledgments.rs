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

/// An answer that cannot be read may say no, so nothing counts for the delivery beside it; and it hides no refusal.
#[tokio::test]
async fn del_10_beside_an_answer_that_cannot_be_read_only_a_refusal_counts() -> anyhow::Result<()> {
    for refusal in [false, true] {
        let contract = format!("{CONTRACT}\nrefuse = '^no (?P<key>\\S+)'");
        let silent = Silent::ended(renames(), agreed(&contract), |name, event| {
            let publish = event.action == Action::Rename && event.path.ends_with(name);
            (publish && event.when == When::After).then_some(Fault::Cut)
        })
        .await?;
        let (key, name) = (silent.house.job(silent.job).await?.delivery_key, silent.name());
        for number in [1, 2] {
            silent.server.put(&format!("{name}.{number}.ack"), format!("ok {key}\n"))?;
        }
        if refusal {
            silent.server.put(&format!("{name}.3.ack"), format!("no {key}\n"))?;
        }
        silent.server.clear_hooks();
        silent.server.hook(|event| {
            let unreadable = event.action == Action::Open && event.path.ends_with(".1.ack");
            (unreadable && event.when == When::Before).then(|| Fault::refuse(3, "permission denied"))
        });
        assert_eq!((silent.looked().await?, silent.stands().await?), (vec![Looked::Open], UNKNOWN));
        let seen = silent.evidence().await?.into_iter().rev().find_map(|one| one.look().cloned()).unwrap_or_default();
        let said: Vec<&str> = seen.acknowledgments.iter().map(|said| said.says.as_str()).collect();
        assert_eq!(said, if refusal { vec!["refused"] } else { vec![] });
        assert!(seen.unread.as_ref().is_some_and(|why| why.contains(".1.ack\" cannot be read")), "{seen:?}");
        silent.server.clear_hooks();
        let (looked, stands) = (silent.looked().await?, silent.stands().await?);
        assert_eq!((looked == [Looked::Open], stands), (refusal, if refusal { UNKNOWN } else { COMPLETED }));
    }
    Ok(())
}
