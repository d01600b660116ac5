//! The statement by which a replacement's worker takes an earlier attempt's look and says that it will remove its file.

use std::time::Duration;

use anyhow::Context;
use uuid::Uuid;
use waybill::job::facts::Sha256;
use waybill::store::take_over::Resolution;
use waybill::store::{self, Conclusion, Fencing};

use super::actors::Actors;
use crate::store::world::Attempt;

/// A replacement that is Delivering and has not passed its fence.
async fn delivering(actors: &Actors, original: Uuid) -> anyhow::Result<Attempt> {
    let job = actors.replacement(original).await?;
    let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    let answer = actors.authorize_replacement(original, of, Sha256([8; 32])).await?;
    anyhow::ensure!(answer == store::Authorization::Authorized, "{answer:?}");
    Ok(of)
}

fn fencing(of: Attempt, earlier: Attempt) -> Fencing {
    Fencing {
        job: of.job,
        attempt: of.attempt,
        earlier_job: earlier.job,
        earlier_attempt: earlier.attempt,
        temporary: ".part".to_owned(),
        worker: "worker-1".to_owned(),
        lease: Duration::from_secs(60),
        token: Uuid::new_v4(),
    }
}

async fn fence(actors: &Actors, fencing: Fencing) -> anyhow::Result<bool> {
    Ok(store::fence_earlier(&actors.worker, fencing).await?.is_written())
}

async fn evidence(actors: &Actors, of: Attempt) -> anyhow::Result<i64> {
    actors
        .count(&format!(
            "SELECT count(*) FROM export_attempt_events WHERE attempt_id = '{}' AND kind = 'DeliveryEvidence'",
            of.attempt
        ))
        .await
}

#[tokio::test]
async fn rpl_09_one_at_a_time_holds_the_look_of_an_earlier_attempt() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let earlier = actors.unknown(true).await?;
    let of = delivering(&actors, earlier.job).await?;
    let bystander = actors.unknown(true).await?;

    let first = fencing(of, earlier);
    assert!(fence(&actors, first.clone()).await?);
    assert_eq!((evidence(&actors, earlier).await?, evidence(&actors, bystander).await?), (1, 0));
    assert!(!fence(&actors, fencing(of, earlier)).await?, "the look is held");
    assert_eq!(evidence(&actors, earlier).await?, 1);
    assert!(!store::give_back_look(&actors.worker, earlier.job, earlier.attempt, Uuid::new_v4()).await?);
    assert!(!store::give_back_look(&actors.worker, bystander.job, earlier.attempt, first.token).await?);
    assert!(!store::give_back_look(&actors.worker, earlier.job, bystander.attempt, first.token).await?);
    assert!(store::give_back_look(&actors.worker, earlier.job, earlier.attempt, first.token).await?);

    let second = Fencing { lease: Duration::ZERO, ..fencing(of, earlier) };
    assert!(fence(&actors, second).await?);
    assert!(fence(&actors, fencing(of, earlier)).await?, "the lease before it ran out");
    Ok(())
}

#[tokio::test]
async fn rpl_09_an_earlier_attempt_is_fenced_in_any_status_but_under_way() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    // Looking has ended there, and nothing was left of it in one case.
    for with_a_look in [true, false] {
        let earlier = actors.unknown(true).await?;
        let of = delivering(&actors, earlier.job).await?;
        actors.reconcile(earlier, Conclusion::NotDelivered).await?.written().context("reconciled")?;
        if !with_a_look {
            actors.forget_look(earlier.job).await?;
        }
        assert!(fence(&actors, fencing(of, earlier)).await?, "with a look: {with_a_look}");
        let left =
            format!("SELECT count(*) FROM looks WHERE job_id = '{}' AND until <= clock_timestamp()", earlier.job);
        assert_eq!(actors.count(&left).await?, i64::from(!with_a_look), "a new look is for one time");
    }
    Ok(())
}

#[tokio::test]
async fn rpl_09_nothing_is_fenced_for_who_does_not_own_the_replacement_or_what_is_closed() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (earlier, unfenced) = (actors.unknown(true).await?, actors.unknown(false).await?);
    let of = delivering(&actors, earlier.job).await?;
    let of_unfenced = delivering(&actors, unfenced.job).await?;
    let stranger = delivering(&actors, actors.unknown(true).await?.job).await?;
    let (waiting, left) = (actors.unknown(true).await?, actors.unknown(true).await?);
    let job = actors.replacement(waiting.job).await?;
    let running = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    let lost = delivering(&actors, left.job).await?;
    actors.expire(lost).await?;
    actors.resolve(lost, Resolution::OutcomeUnknown).await?.written().context("the takeover")?;
    for (case, fencing) in [
        ("another attempt of the replacement", fencing(Attempt { attempt: Uuid::new_v4(), ..of }, earlier)),
        ("another job", fencing(Attempt { job: stranger.job, ..of }, earlier)),
        ("another key", fencing(stranger, earlier)),
        ("another attempt of the earlier job", fencing(of, Attempt { attempt: stranger.attempt, ..earlier })),
        ("another earlier job", fencing(of, Attempt { job: unfenced.job, ..earlier })),
        ("itself", fencing(of, of)),
        ("without a fence", fencing(of_unfenced, unfenced)),
        ("a replacement that is not authorized yet", fencing(running, waiting)),
        ("a replacement that was taken over", fencing(lost, left)),
    ] {
        assert!(!fence(&actors, fencing).await?, "{case}");
    }
    // After a restore an attempt without a fence is open, and yet nothing tells of a file that it might publish.
    actors.forget_history(unfenced.job).await?;
    assert!(!fence(&actors, fencing(of_unfenced, unfenced)).await?);

    actors.confirm_removal(earlier).await?;
    let before = evidence(&actors, earlier).await?;
    assert!(!fence(&actors, fencing(of, earlier)).await?, "closed");
    assert_eq!(evidence(&actors, earlier).await?, before);

    // Past its own fence, or after its end, it is too late.
    let other = actors.unknown(true).await?;
    let of = delivering(&actors, other.job).await?;
    actors.intend(of).await?.written().context("the fence")?;
    assert!(!fence(&actors, fencing(of, other)).await?, "past its own fence");
    let ended = delivering(&actors, actors.unknown(true).await?.job).await?;
    actors.finish(ended, super::actors::NOT_DELIVERED).await?.written().context("ended")?;
    assert!(!fence(&actors, fencing(ended, earlier)).await?, "ended");
    Ok(())
}

#[tokio::test]
async fn rpl_09_what_is_open_is_told_by_job_and_words_close_it() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let earlier = actors.unknown(true).await?;
    let of = delivering(&actors, earlier.job).await?;
    assert_eq!(store::open_earlier_attempts(&actors.worker, of.job).await?, [], "its creator gave words");
    actors.take_words(of.job).await?;
    let open = store::open_earlier_attempts(&actors.worker, of.job).await?;
    assert_eq!(open, [(earlier.job, Some(earlier.attempt))]);
    actors.confirm_removal(earlier).await?;
    assert_eq!(store::open_earlier_attempts(&actors.worker, of.job).await?, []);
    Ok(())
}
