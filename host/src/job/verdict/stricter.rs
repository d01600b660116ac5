//! The stricter of two contracts: the one that an attempt's claim recorded, and the one of now.
//!
//! A promise counts only if both make it. What demands more of a delivery (a trigger, a settling time) counts if either
//! demands it. Acknowledgments are not joined: [`Reader`](super::acknowledgment::Reader) reads by both.

use crate::job::contract::{Auxiliary, Contract};

/// Field by field the stricter of the two; its `acknowledgment` is there only where both have the same, so whoever looks
/// for answers takes the two instead.
pub fn stricter(then: &Contract, now: &Contract) -> Contract {
    if then == now {
        return now.clone();
    }
    let both = |word: fn(&Contract) -> bool| word(then) && word(now);
    let agreed_equally = then.overwrites_last == now.overwrites_last;
    Contract {
        agreement: if then.agreement == now.agreement {
            now.agreement.clone()
        } else {
            format!("{}; {}", then.agreement, now.agreement)
        },
        publishes_whole: both(|contract| contract.publishes_whole),
        rename_one_step: both(|contract| contract.rename_one_step),
        one_name_space: both(|contract| contract.one_name_space),
        may_remove_temporaries: both(|contract| contract.may_remove_temporaries),
        // A partner that collects in one of the two may have taken a file that the other one says is kept.
        keeps: if then.collects == now.collects {
            then.keeps.zip(now.keeps).map(|(then, now)| then.min(now))
        } else {
            None
        },
        collects: both(|contract| contract.collects),
        settle: then.settle.max(now.settle),
        name_and_size_identify: both(|contract| contract.name_and_size_identify),
        time_proves_overwrite: both(|contract| contract.time_proves_overwrite),
        listing_hidden: both(|contract| contract.listing_hidden),
        // A reused name proves less: a file under it may be another key's.
        names_reused: then.names_reused || now.names_reused,
        overwrites_last: now.overwrites_last.clone().filter(|_| agreed_equally),
        exclusive_create: both(|contract| contract.exclusive_create),
        acknowledgment: now.acknowledgment.clone().filter(|_| then.acknowledgment == now.acknowledgment),
        auxiliary: demanded(&then.auxiliary, &now.auxiliary),
    }
}

/// Every auxiliary file that either names; a trigger if either says so, before the publish only if both do.
fn demanded(then: &[Auxiliary], now: &[Auxiliary]) -> Vec<Auxiliary> {
    let mut all: Vec<Auxiliary> = Vec::new();
    for (wanted, elsewhere) in then.iter().map(|one| (one, now)).chain(now.iter().map(|one| (one, then))) {
        if all.iter().any(|known| known.name == wanted.name) {
            continue;
        }
        let other = elsewhere.iter().find(|other| other.name == wanted.name);
        all.push(Auxiliary {
            name: wanted.name.clone(),
            trigger: wanted.trigger || other.is_some_and(|other| other.trigger),
            before_publish: wanted.before_publish && other.is_some_and(|other| other.before_publish),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::names::NamePattern;

    fn generous() -> Contract {
        Contract {
            agreement: "2026-01".to_owned(),
            publishes_whole: true,
            rename_one_step: true,
            one_name_space: true,
            may_remove_temporaries: true,
            keeps: Some(Duration::from_mins(15)),
            collects: false,
            settle: None,
            name_and_size_identify: true,
            time_proves_overwrite: true,
            listing_hidden: true,
            names_reused: false,
            overwrites_last: Some("mail 7".to_owned()),
            exclusive_create: true,
            acknowledgment: None,
            auxiliary: Vec::new(),
        }
    }

    #[test]
    fn a_promise_counts_only_if_both_make_it() {
        let silent = Contract { agreement: "2026-01".to_owned(), ..Contract::default() };
        assert_eq!(stricter(&generous(), &silent), silent);
        assert_eq!(stricter(&silent, &generous()), silent);
        assert_eq!(stricter(&generous(), &generous()), generous());
    }

    #[test]
    fn times_are_the_stricter_ones() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        let then = Contract { keeps: Some(minute), settle: Some(second), ..generous() };
        let now = Contract { keeps: Some(second), settle: Some(minute), ..generous() };
        let strict = stricter(&then, &now);
        assert_eq!((strict.keeps, strict.settle), (Some(second), Some(minute)));
        let collecting = Contract { collects: true, ..now };
        assert_eq!(stricter(&then, &collecting).keeps, None, "a file that may be taken at once is not kept");
    }

    #[test]
    fn a_trigger_of_either_is_demanded() {
        let auxiliary = |trigger, before_publish| Auxiliary {
            name: NamePattern::parse("{final}.done").unwrap(),
            trigger,
            before_publish,
        };
        let then = Contract { auxiliary: vec![auxiliary(true, false)], ..generous() };
        let now = Contract { auxiliary: vec![auxiliary(false, true)], ..generous() };
        assert_eq!(stricter(&then, &now).auxiliary, [auxiliary(true, false)]);
        assert_eq!(stricter(&generous(), &then).auxiliary, [auxiliary(true, false)]);
    }
}
