//! Policy: may this queued job be claimed now, later, or never on its present terms?
//!
//! One pure function over facts that the caller read together with the row: [`evaluate`]. It reads and decides, and does
//! nothing, so that a duplicate wake-up may repeat it any number of times. It holds for the version of the terms that
//! it saw: the claim and the rejection check that version again, and what lives outside the row (an address that broke a
//! moment later) is found out by the attempt.
//!
//! It rejects only what no waiting can mend on these terms. A missing plugin, a disabled destination or a partner that
//! does not answer is always `Later`.

mod delay;
mod evaluate;
mod rules;

pub use delay::{growing_delay, with_jitter};
pub use evaluate::{Clock, Decision, DestinationFacts, Facts, Load, Pause, Rejection, State, evaluate, is_probe};
pub use rules::{DestinationRules, Rate, RulesError, TimeOfDay, Weekday, Window};
