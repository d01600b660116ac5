//! Whether two name patterns can stand for the same name.
//!
//! The manifest's patterns must be apart, or a file that we put could be taken for the partner's acknowledgment, or a
//! temporary for a delivery. Placeholders count as opaque values that equal only themselves; `*` is any run of
//! characters but `/`. Names are compared case folded, because some servers ignore case.

use crate::job::names::{NamePattern, fold_name};

/// How a pattern over the final name reads a `*` in the final name's own pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Final {
    /// The one final name of this delivery, whatever it is.
    ThisOne,
    /// Any final name, of this delivery or another.
    Any,
}

// Private-use characters: `check_name` and sane manifests have none of them.
const KEY: char = '\u{e000}';
const ATTEMPT: char = '\u{e001}';
const OPAQUE: char = '\u{e002}';

/// True if some name matches both patterns for one delivery key and one attempt.
pub(super) fn overlap(left: &NamePattern, right: &NamePattern, final_pattern: &NamePattern, reads: Final) -> bool {
    let left: Vec<char> = expand(left, final_pattern, reads).chars().collect();
    let right: Vec<char> = expand(right, final_pattern, reads).chars().collect();
    meet(&left, &right)
}

fn expand(pattern: &NamePattern, final_pattern: &NamePattern, reads: Final) -> String {
    let mut final_text = final_pattern.to_string();
    if reads == Final::ThisOne {
        final_text = final_text.replace('*', OPAQUE.encode_utf8(&mut [0; 4]));
    }
    let folder = final_text.rfind('/').map_or(0, |at| at + 1);
    let dot = final_text.rfind('.').filter(|at| *at > folder && !within_braces(&final_text, *at));
    let (stem, extension) = match dot {
        Some(at) => (final_text.get(..at).unwrap_or(""), final_text.get(at + 1..).unwrap_or("")),
        None => (final_text.as_str(), ""),
    };
    let text = pattern
        .to_string()
        .replace("{final.stem}", stem)
        .replace("{final.extension}", extension)
        .replace("{final.name}", final_text.get(folder..).unwrap_or(""))
        .replace("{final}", &final_text)
        .replace("{key}", KEY.encode_utf8(&mut [0; 4]))
        .replace("{attempt}", ATTEMPT.encode_utf8(&mut [0; 4]));
    fold_name(&text)
}

fn within_braces(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    before.rfind('{') > before.rfind('}')
}

/// Two patterns of characters and `*` meet if some text matches both: a walk over pairs of positions.
fn meet(left: &[char], right: &[char]) -> bool {
    let width = right.len() + 1;
    let mut seen = vec![false; (left.len() + 1) * width];
    let mut open = vec![(0, 0)];
    while let Some((at, beside)) = open.pop() {
        match seen.get_mut(at * width + beside) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        match (left.get(at), right.get(beside)) {
            (None, None) => return true,
            (Some('*'), other) => {
                open.push((at + 1, beside));
                if other.is_some_and(|other| *other != '/') {
                    open.push((at, beside + 1));
                }
            }
            (other, Some('*')) => {
                open.push((at, beside + 1));
                if other.is_some_and(|other| *other != '/') {
                    open.push((at + 1, beside));
                }
            }
            (Some(one), Some(two)) if one == two => open.push((at + 1, beside + 1)),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(left: &str, right: &str, final_pattern: &str, reads: Final) -> bool {
        let parse = |text: &str| NamePattern::parse(text).unwrap();
        overlap(&parse(left), &parse(right), &parse(final_pattern), reads)
    }

    #[test]
    fn patterns_that_can_stand_for_one_name_are_found() {
        assert!(overlaps("{final}.done", "*.done", "{key}.csv", Final::Any));
        assert!(overlaps("ack-{key}.txt", "ack-*.txt", "{key}.csv", Final::Any));
        assert!(overlaps("{final.stem}.CSV", "{key}.csv", "{key}.csv", Final::Any), "servers may ignore case");
        assert!(overlaps("a*c", "ab*", "{key}", Final::Any));
        assert!(overlaps("done/{final.name}", "done/{key}.csv", "in/{key}.csv", Final::Any));
    }

    #[test]
    fn patterns_that_cannot_are_told_apart() {
        assert!(!overlaps("{final}.done", "{key}.csv", "{key}.csv", Final::Any));
        assert!(!overlaps("ack/{key}.txt", "*.txt", "{key}.csv", Final::Any), "a star does not cross folders");
        assert!(!overlaps(".{attempt}.part", "*-{key}.csv", "*-{key}.csv", Final::Any));
        assert!(!overlaps("{final}.a", "{final.stem}.a", "*.csv", Final::ThisOne));
        assert!(!overlaps("done/{final.name}", "{final}", "in/{key}.csv", Final::Any));
    }
}
