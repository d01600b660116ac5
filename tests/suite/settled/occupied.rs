//! A replacement that finds a file which is not its original's, and that it may not replace.

use waybill::job::status::{FailureReason, Status};
use waybill_tests::sftp_server::{Action, Fault, When};

use super::replacements::replace;
use super::{ONE_STEP, Silent, UNKNOWN, agreed, renames};

const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));

impl Silent {
    /// How often anything was asked that creates a name.
    fn creations(&self) -> usize {
        self.server.operations().iter().filter(|done| done.operation.creates().is_some()).count()
    }
}

#[tokio::test]
async fn rpl_06_a_file_that_is_shown_not_to_be_the_originals_is_an_occupied_name_too() -> anyhow::Result<()> {
    for more in ["", "and longer"] {
        let mut plan = agreed(ONE_STEP);
        plan.manifest = plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1");
        let silent = Silent::ended(renames(), plan, |name, event| {
            let publish = event.action == Action::Rename && event.path.ends_with(name);
            (publish && event.when == When::Before).then_some(Fault::Cut)
        })
        .await?;
        let mut other = silent.server.read(&silent.temporary().await?).unwrap_or_default();
        other[0] = b'#';
        other.extend_from_slice(more.as_bytes());
        silent.server.put(&silent.name(), other.clone())?;
        let before = silent.creations();
        let replacement = silent.house.until_ended(replace(&silent, None).await?).await?;
        assert_eq!((replacement.status, replacement.failure_reason), OCCUPIED, "{more:?}");
        assert_eq!((silent.creations(), silent.server.read(&silent.name())), (before, Some(other)), "{more:?}");
        assert_eq!(silent.stands().await?, UNKNOWN, "the original is left as it was");
    }
    Ok(())
}
