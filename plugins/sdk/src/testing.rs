//! For the native tests of plugins.

use crate::{Failure, Job, Moment, Setting};

/// A job with these settings, the delivery key `k-1`, and nothing else of interest.
pub fn job(settings: &[(&str, &str)]) -> Job {
    let settings = settings.iter().map(|(name, value)| Setting { name: (*name).into(), value: (*value).into() });
    Job {
        id: "i".into(),
        tenant: "t-1".into(),
        attempt: "a-1".into(),
        destination: "d".into(),
        delivery_key: "k-1".into(),
        created_at: "2026-03-02T08:15:00Z".into(),
        created: Moment { year: 2026, month: 3, day: 2, hour: 8, minute: 15, second: 0 },
        version: 1,
        replacement: None,
        scope: vec![],
        settings: settings.collect(),
        extra: vec![],
    }
}

/// The words in which a setting is refused; anything else ends the test.
///
/// # Panics
///
/// If it is not refused as [`Failure::Invalid`].
#[expect(clippy::panic, reason = "for tests")]
pub fn refusal<T: std::fmt::Debug>(read: Result<T, Failure>) -> String {
    match read {
        Err(Failure::Invalid(text)) => text,
        other => panic!("it was not refused: {other:?}"),
    }
}
