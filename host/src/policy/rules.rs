//! What an operator rules for one destination: `[destination.rules]` in destinations.toml.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The rules of one destination. What is absent does not limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DestinationRules {
    /// When deliveries may start, in UTC; any of them. None: always.
    #[serde(rename = "window")]
    pub windows: Vec<Window>,
    /// How many deliveries may start in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The keys that a job's scope may have. None: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<BTreeSet<String>>,
}

/// A daily window; one that ends before it begins crosses midnight and belongs to the day on which it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub from: TimeOfDay,
    /// The first minute after the window.
    pub to: TimeOfDay,
    /// The days on which it begins. None: every day.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub days: BTreeSet<Weekday>,
}

/// At most `jobs` starts in any `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RateText")]
pub struct Rate {
    pub jobs: u32,
    pub seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// `HH:MM` in UTC, to the minute; `24:00` is the end of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay {
    minute: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    #[error("{text:?} is no time of day; write it as HH:MM in UTC, from 00:00 to 24:00")]
    NotATime { text: String },
    #[error("a rate needs at least one job and one second; to stop deliveries, disable the destination")]
    EmptyRate,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateText {
    jobs: u32,
    seconds: u32,
}

const DAY: u32 = 24 * 60;
const WEEK: u32 = 7 * DAY;

impl TryFrom<RateText> for Rate {
    type Error = RulesError;
    fn try_from(RateText { jobs, seconds }: RateText) -> Result<Self, RulesError> {
        if jobs == 0 || seconds == 0 { Err(RulesError::EmptyRate) } else { Ok(Self { jobs, seconds }) }
    }
}

impl TimeOfDay {
    /// The minute of the day, 0 to 1440.
    pub const fn minute(self) -> u16 {
        self.minute
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = RulesError;
    fn try_from(text: String) -> Result<Self, RulesError> {
        let two_digits = |part: &str| {
            (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse::<u16>().ok())
                .flatten()
        };
        let minute = text
            .split_once(':')
            .and_then(|(hours, minutes)| two_digits(hours).zip(two_digits(minutes)))
            .filter(|(_, minutes)| *minutes < 60)
            .map(|(hours, minutes)| hours * 60 + minutes)
            .filter(|minute| u32::from(*minute) <= DAY);
        minute.map(|minute| Self { minute }).ok_or(RulesError::NotATime { text })
    }
}

impl From<TimeOfDay> for String {
    fn from(time: TimeOfDay) -> Self {
        format!("{:02}:{:02}", time.minute / 60, time.minute % 60)
    }
}

impl Weekday {
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    const fn minutes_before(self) -> u32 {
        self as u32 * DAY
    }
}

impl DestinationRules {
    /// How long until a window is open; zero if one is, or if there are none. `second` is that of the day.
    pub fn opens_in(&self, day: Weekday, second: u32) -> Duration {
        let now = (day.minutes_before() + second / 60) % WEEK;
        let wait = self.windows.iter().flat_map(|window| window.waits(now)).min();
        match wait {
            None | Some(0) => Duration::ZERO,
            // To the second: the part of this minute that is already over is not waited for again.
            Some(minutes) => Duration::from_secs(u64::from(minutes) * 60 - u64::from(second % 60)),
        }
    }
}

impl Window {
    /// For each day of the window, the minutes until it is open; all in minutes of the week.
    fn waits(&self, now: u32) -> impl Iterator<Item = u32> {
        let (from, to) = (u32::from(self.from.minute), u32::from(self.to.minute));
        // From and to alike: the whole day.
        let long = if to > from { to - from } else { to + DAY - from };
        Weekday::ALL.into_iter().filter(|day| self.days.is_empty() || self.days.contains(day)).map(move |day| {
            let start = (day.minutes_before() + from) % WEEK;
            let since = (now + WEEK - start) % WEEK;
            if since < long { 0 } else { WEEK - since }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> DestinationRules {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn rules_are_read_as_an_operator_writes_them() {
        let rules = rules(
            "rate = { jobs = 10, seconds = 60 }\nscope = ['segment']\n\
             [[window]]\nfrom = '22:00'\nto = '04:30'\ndays = ['friday']\n",
        );
        assert_eq!(rules.windows[0].to.minute(), 270);
        let again: DestinationRules = serde_json::from_value(serde_json::to_value(&rules).unwrap()).unwrap();
        assert_eq!(again, rules);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_a_sentence() {
        for (text, says) in [
            ("[[window]]\nfrom = '25:00'\nto = '04:00'", "HH:MM"),
            ("[[window]]\nfrom = '7:00'\nto = '04:00'", "HH:MM"),
            ("[[window]]\nfrom = '07:60'\nto = '24:00'", "HH:MM"),
            ("rate = { jobs = 0, seconds = 60 }", "disable the destination"),
            ("raet = { jobs = 1, seconds = 60 }", "raet"),
        ] {
            let error = toml::from_str::<DestinationRules>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn clm_06_a_window_says_when_it_opens_to_the_second() {
        let night = rules("[[window]]\nfrom = '22:00'\nto = '04:30'\ndays = ['friday']");
        let at = |day, hours: u32, minutes: u32, seconds: u32| {
            night.opens_in(day, hours * 3600 + minutes * 60 + seconds).as_secs()
        };
        assert_eq!(at(Weekday::Friday, 21, 59, 30), 30);
        assert_eq!(at(Weekday::Friday, 22, 0, 0), 0);
        assert_eq!(at(Weekday::Saturday, 4, 29, 59), 0, "it crosses midnight");
        assert_eq!(at(Weekday::Saturday, 4, 30, 0), (6 * 24 + 17) * 3600 + 1800);
        assert_eq!(at(Weekday::Sunday, 0, 0, 0), (5 * 24 + 22) * 3600);
        assert_eq!(DestinationRules::default().opens_in(Weekday::Monday, 0), Duration::ZERO);
    }

    #[test]
    fn clm_06_the_wait_ends_inside_a_window_for_every_minute_of_the_week() {
        let rules = rules(
            "[[window]]\nfrom = '22:00'\nto = '04:30'\ndays = ['sunday']\n[[window]]\nfrom = '12:00'\nto = '12:01'",
        );
        for now in 0..WEEK {
            let at = |minute: u32| {
                let minute = minute % WEEK;
                rules.opens_in(Weekday::ALL[(minute / DAY) as usize], minute % DAY * 60).as_secs()
            };
            let minutes = u32::try_from(at(now) / 60).unwrap();
            assert_eq!(at(now + minutes), 0, "{now}");
            assert!(minutes == 0 || at(now + minutes - 1) > 0, "{now}: it opens earlier");
        }
    }
}
