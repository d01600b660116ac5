//! Options that look like typing mistakes. Both plugins of a bundle read one table, and only they know which names they ask
//! for, so that a name which none of them reads is no fault: what is nearly the name of a setting of the plugins of this
//! repository, and is none, is warned of.

use std::collections::BTreeMap;

use crate::plugin::edits;

/// The settings of all plugins of this repository, as people read of them.
const DOCUMENT: &str = include_str!("../../../../docs/settings.md");

/// A sentence for each option that is nearly a known one.
pub(super) fn misspelt(options: &BTreeMap<String, String>) -> Vec<String> {
    let known = known();
    let unknown = options.keys().filter(|option| !known.contains(&option.as_str()));
    unknown
        .filter_map(|option| {
            let meant = known.iter().find(|name| is_near(option, name))?;
            Some(format!(
                "the option `{option}` is none that a plugin of Waybill's own reads; did you mean `{meant}`? What no plugin reads is ignored."
            ))
        })
        .collect()
}

/// Short names are near to too many words, and longer ones may have two mistakes.
fn is_near(option: &str, name: &str) -> bool {
    let most = match option.chars().count() {
        0..5 => return false,
        5..8 => 1,
        _ => 2,
    };
    edits(option, name) <= most
}

/// What stands in backquotes in the first column of the tables, and the one that the text tells.
fn known() -> Vec<&'static str> {
    let cells = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    names.filter(plain).chain(["name"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_known_option_is_warned_of_and_an_authors_own_is_not() {
        let told = |option: &str| misspelt(&BTreeMap::from([(option.to_owned(), "x".to_owned())]));
        for (option, meant) in [
            ("delimeter", "delimiter"),
            ("headers", "header"),
            ("done_flie", "done_file"),
            ("line_endings", "line_ending"),
        ] {
            let told = told(option);
            assert!(matches!(&told[..], [one] if one.contains(&format!("did you mean `{meant}`?"))), "{told:?}");
        }
        for option in ["delimiter", "done_file", "name", "root", "before_text", "country", "rows", "nmae", "threshold"]
        {
            assert_eq!(told(option), Vec::<String>::new(), "{option}");
        }
    }

    #[test]
    fn the_settings_of_every_plugin_are_known() {
        let known = known();
        for name in
            ["delimiter", "trailer", "numbers", "namespace", "recipients", "done_text", "before_content", "name"]
        {
            assert!(known.contains(&name), "{name}");
        }
        assert!(!known.iter().any(|name| name.contains(['{', '/'])), "{known:?}");
    }
}
