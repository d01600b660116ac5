//! The settings of the plugins stand in their sources and in `docs/settings.md`, the conclusions in theirs and in
//! `docs/conclusions.md`: word for word, so that neither is forgotten.

use std::path::Path;

use waybill::job::verdict::{NotDeliveredProof, Proof, WhyUnknown};

const SOURCES: [&str; 8] = [
    "csv-builder/src/options.rs",
    "fixed-width-builder/src/options.rs",
    "json-lines-builder/src/options.rs",
    "xml-builder/src/options.rs",
    "openpgp-builder/src/lib.rs",
    "sftp-destination/src/lib.rs",
    "sftp-destination/src/names.rs",
    "sftp-destination/src/done.rs",
];

/// The rows of the tables in a module's own comment.
fn rows(source: &str) -> Vec<&str> {
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    comment.map(str::trim).filter(|line| line.starts_with('|')).collect()
}

/// Rows that the document lacks.
fn missing<'a>(document: &str, source: &'a str) -> Vec<&'a str> {
    let written: Vec<&str> = document.lines().collect();
    rows(source).into_iter().filter(|row| !written.contains(row)).collect()
}

#[test]
fn every_setting_of_a_plugin_is_in_the_guide_as_its_source_has_it() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = std::fs::read_to_string(root.join("docs/settings.md"))?;
    for source in SOURCES {
        let text = std::fs::read_to_string(root.join("plugins").join(source))?;
        assert!(rows(&text).len() > 2, "{source} has no table");
        assert_eq!(missing(&document, &text), Vec::<&str>::new(), "docs/settings.md lacks rows of plugins/{source}");
    }
    Ok(())
}

#[test]
fn every_conclusion_is_in_its_page() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = std::fs::read_to_string(root.join("docs/conclusions.md"))?;
    let proofs = Proof::ALL.iter().map(|one| (one.as_str(), one.sentence()));
    let not_delivered = NotDeliveredProof::ALL.iter().map(|one| (one.as_str(), one.sentence()));
    let unknown = WhyUnknown::ALL.iter().map(|one| (one.as_str(), one.sentence()));
    let rows: Vec<String> =
        proofs.chain(not_delivered).chain(unknown).map(|(code, why)| format!("| `{code}` | {why} |")).collect();
    let written: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(written, rows);
    Ok(())
}

#[test]
fn a_changed_setting_is_missed() {
    let source =
        "//! The settings.\n//!\n//! | setting | default |\n//! | `a` | 1 |\n\nfn code() {}\n//! | `not` | this |\n";
    assert_eq!(missing("| setting | default |\n| `a` | 2 |\n", source), ["| `a` | 1 |"]);
}
