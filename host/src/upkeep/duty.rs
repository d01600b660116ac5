//! The loop around a periodic duty.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Wakes a duty before its timer does. Signals that come while it runs make it run once more.
#[derive(Debug, Clone, Default)]
pub struct Signal(Arc<Notify>);

impl Signal {
    pub fn raise(&self) {
        self.0.notify_one();
    }
}

/// Runs a duty at once, then whenever the timer or the signal says so, until it is told to stop; a run under way is
/// finished first. A run that fails is logged with its causes, and the next one comes at its time.
pub async fn keep<T, E: Error>(
    duty: &'static str,
    every: Duration,
    signal: &Signal,
    stop: &CancellationToken,
    run_once: impl AsyncFn() -> Result<T, E>,
) {
    while !stop.is_cancelled() {
        if let Err(error) = run_once().await {
            let causes: Vec<String> =
                std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
            tracing::warn!(duty, %error, ?causes, "a run failed; it is tried again");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = signal.0.notified() => {}
            () = tokio::time::sleep(every) => {}
        }
    }
}

/// Waits for duties, and after they were told to stop no longer than the grace. True if they ended by themselves.
pub async fn within<T>(stop: &CancellationToken, grace: Duration, duties: impl Future<Output = T>) -> bool {
    let bound = async {
        stop.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        biased;
        _ = duties => true,
        () = bound => {
            tracing::warn!("a run of a duty was still under way at the end of the grace, and was left there");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const LONGER_THAN_ANY_TEST: Duration = Duration::from_hours(1);

    async fn runs_until_the_fourth(every: Duration, signal: &Signal, raise: bool) -> u32 {
        let (stop, runs) = (CancellationToken::new(), AtomicU32::new(0));
        keep("test", every, signal, &stop, async || {
            if runs.fetch_add(1, Ordering::Relaxed) == 3 {
                stop.cancel();
            } else if raise {
                signal.raise();
            }
            Err::<(), _>(std::io::Error::other("every run fails"))
        })
        .await;
        runs.into_inner()
    }

    #[tokio::test]
    async fn a_signal_during_a_run_makes_it_run_once_more() {
        assert_eq!(runs_until_the_fourth(LONGER_THAN_ANY_TEST, &Signal::default(), true).await, 4);
    }

    #[tokio::test]
    async fn the_timer_runs_it_without_a_signal_and_after_a_failure() {
        assert_eq!(runs_until_the_fourth(Duration::from_millis(1), &Signal::default(), false).await, 4);
    }

    #[tokio::test]
    async fn plg_01_a_run_that_hangs_is_left_at_the_end_of_the_grace() {
        let stop = CancellationToken::new();
        let signal = Signal::default();
        let hung = keep("test", LONGER_THAN_ANY_TEST, &signal, &stop, async || {
            stop.cancel();
            std::future::pending::<Result<(), std::io::Error>>().await
        });
        assert!(!within(&stop, Duration::from_millis(1), hung).await);
        assert!(within(&stop, LONGER_THAN_ANY_TEST, async {}).await);
    }

    #[tokio::test]
    async fn told_to_stop_it_does_not_begin() {
        let stop = CancellationToken::new();
        stop.cancel();
        keep("test", LONGER_THAN_ANY_TEST, &Signal::default(), &stop, async || -> Result<(), std::io::Error> {
            panic!("it ran");
        })
        .await;
    }
}
