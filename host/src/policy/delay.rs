//! Delays that grow, without a clock and without chance of their own.

use std::time::Duration;

/// Doubles from `first` with each failure after the first one, up to `cap`. No failure, no delay.
pub fn growing_delay(failures: u32, first: Duration, cap: Duration) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    2_u32.checked_pow(doublings).and_then(|factor| first.checked_mul(factor)).map_or(cap, |delay| delay.min(cap))
}

/// Adds up to a quarter, so that what was deferred together does not come back together. `jitter` is drawn by the
/// caller from 0 to 255.
pub fn with_jitter(delay: Duration, jitter: u8) -> Duration {
    delay.saturating_add(delay.saturating_mul(u32::from(jitter)) / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn clm_06_delays_double_up_to_the_cap_and_never_overflow() {
        let delays: Vec<u64> = (0..6).map(|failures| growing_delay(failures, SECOND, 10 * SECOND).as_secs()).collect();
        assert_eq!(delays, [0, 1, 2, 4, 8, 10]);
        assert_eq!(growing_delay(u32::MAX, SECOND, 10 * SECOND), 10 * SECOND);
        assert_eq!(growing_delay(40, Duration::MAX, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn clm_06_jitter_only_adds_and_at_most_a_quarter() {
        for jitter in 0..=u8::MAX {
            let delay = with_jitter(100 * SECOND, jitter);
            assert!(delay >= 100 * SECOND && delay <= 125 * SECOND, "{jitter}: {delay:?}");
        }
        assert_eq!(with_jitter(Duration::MAX, 255), Duration::MAX);
    }
}
