//! The verdict: what the host concludes from facts already compared.
//!
//! Pure functions decide: [`before_sending`] whether an attempt may send at all, [`conclude`] what became of it, [`conclude_own`] the
//! same by the worker at its own end, [`after_removal`] the same once our own removal of the temporary file counts, [`without_fence`] for an attempt that never
//! passed the publish fence, [`contradiction`] what speaks against an outcome already recorded. They take facts that are small enums, so that their whole input space is enumerated by tests and printed as a table
//! that people review (`golden/`). [`compare`] turns documents and rows into these facts, [`acknowledgment`] reads
//! a partner's words, [`stricter`] weighs two versions of a contract, [`differences`] names where a plugin's report is not what the host saw.
//!
//! The rule it keeps: `Completed` needs evidence of a kind named in [`Proof`], `NotDelivered` needs a proof named in
//! [`NotDeliveredProof`], and everything else is `Unknown` with its reason. What a plugin reports is no fact here.
//!
//! It does not promise that a look is recent, that an acknowledgment was read by the host, or that the database
//! still says what it said: callers repeat those conditions in the statement that records the conclusion.

pub mod acknowledgment;
mod before_sending;
pub mod compare;
mod conclude;
mod conclusion;
mod contradiction;
pub mod differences;
mod facts;
#[cfg(test)]
pub(crate) mod space;
pub mod stricter;
mod temporary_fence;
#[cfg(test)]
mod tests;

pub use before_sending::{Before, BeforeFacts, Intent, Likeness, Standing, before_sending};
pub use conclude::{Lost, conclude, conclude_own, without_fence};
pub use conclusion::{Conclusion, NotDeliveredProof, Proof, WhyUnknown};
pub use contradiction::contradiction;
pub use facts::{
    Acceptance, Baseline, Compared, Facts, FinalName, Form, Others, Promises, Publish, Since, Temporary, Trigger,
};
pub use temporary_fence::{Leave, Removal, after_removal, worth_removing};
