//! A directory that goes away in the middle of a delivery.

use waybill_tests::House;
use waybill_tests::proxy::Moment;

use super::{Directory, names};
use crate::remotes::Place as _;
use crate::remotes::place::{Held, NOT_DELIVERED, stands};

#[tokio::test]
async fn del_03_a_directory_that_goes_away_before_the_link_gets_no_final_name() -> anyhow::Result<()> {
    let held = Held::<Directory>::at_the_fence(Moment::After).await?;
    let away = held.at.place.path.with_file_name("away");
    std::fs::rename(&held.at.place.path, &away)?;
    // As a share that is unmounted leaves the empty directory under it.
    std::fs::create_dir(&held.at.place.path)?;
    held.gate.open();
    let job = held.at.house.until_ended(held.job).await?;
    assert_eq!(stands(&job), NOT_DELIVERED);
    assert_eq!(held.at.published(held.job).await?, None, "it was never sent");
    let call = held.at.receipt(held.job).await?.call.unwrap_or_default();
    assert_eq!(held.at.place.names()?, Vec::<String>::new(), "{call}");
    assert!(names(&away)?.iter().all(|name| name != &House::final_name(held.job)), "{call}");
    Ok(())
}
