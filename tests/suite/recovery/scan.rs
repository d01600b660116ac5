use waybill::job::status::Role;
use waybill::store::{self, Case, DeliveryOutcome, Expired, Standing};

use super::actors::{Actors, CASES};
use crate::store::world::MAX_ATTEMPTS;

#[tokio::test]
async fn rcv_01_the_scan_finds_expired_attempts_and_nothing_else() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    actors.queued().await?;
    actors.running().await?;
    actors.delivering().await?;
    actors.ended(DeliveryOutcome::OutcomeUnknown).await?;
    assert_eq!(store::find_expired(&actors.recovery, None, 100).await?, []);

    for case in CASES {
        let of = actors.silent(case).await?;
        let found = store::find_expired(&actors.recovery, None, 100).await?;
        let [expired] = found.as_slice() else { panic!("{case:?}: {found:?}") };
        assert_eq!((expired.job, expired.attempt), (of.job, of.attempt));
        assert_eq!((expired.tenant, expired.destination), (actors.tenant, actors.destination));
        assert_eq!(expired.worker, "worker-1");
        assert_eq!(expired.case(MAX_ATTEMPTS), case);
        assert!(expired.history_known);
        if case == Case::Resolve {
            assert_eq!(expired.standing, Standing::Delivering { publish_intended: true });
        }
        assert!(actors.take_over(case, of, "run-1").await?.is_written());
    }
    Ok(())
}

#[tokio::test]
async fn rcv_01_the_scan_pages_past_what_cannot_be_taken_over_now() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(actors.silent(Case::Requeue).await?.job);
    }
    // Two expired at the same moment: the job's id tells them apart.
    let same = format!(
        "UPDATE export_jobs SET lease_expires_at = '2020-01-01' WHERE id IN ('{}', '{}')",
        silent[1], silent[3]
    );
    actors.run(Role::Worker, &same).await?;
    actors.forget_history(silent[0]).await?;

    let (mut seen, mut after): (Vec<Expired>, _) = (Vec::new(), None);
    loop {
        let page = store::find_expired(&actors.recovery, after, 2).await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2, "a page is bounded");
        after = Some(last.place());
        seen.extend(page);
    }
    let mut jobs: Vec<_> = seen.iter().map(|expired| expired.job).collect();
    jobs.sort();
    silent.sort();
    assert_eq!(jobs, silent, "each once, though none was taken over");
    assert_eq!(seen.iter().filter(|expired| !expired.history_known).count(), 1);
    Ok(())
}
