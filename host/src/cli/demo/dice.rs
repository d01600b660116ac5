//! Chance that repeats itself.

use super::places::{COUNTRIES, Country};

/// A seeded sequence of numbers (splitmix64), the same on every machine and in every version of every library.
pub(super) struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than the bound.
    pub fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).unwrap_or(0)
    }

    pub fn one_from<T>(&mut self, of: &'static [T]) -> &'static T {
        let index = usize::try_from(self.next()).unwrap_or(usize::MAX) % of.len();
        #[expect(clippy::indexing_slicing, reason = "the index is below the length, and no list here is empty")]
        &of[index]
    }

    pub fn one_of(&mut self, of: &'static [&'static str]) -> &'static str {
        self.one_from::<&str>(of)
    }

    /// By the countries' weights.
    pub fn country(&mut self) -> &'static Country {
        let mut left = self.below(COUNTRIES.iter().map(|country| country.weight).sum());
        for country in COUNTRIES {
            if left < country.weight {
                return country;
            }
            left -= country.weight;
        }
        self.one_from(COUNTRIES)
    }
}
