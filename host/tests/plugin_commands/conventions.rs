//! The shipped bundles that show one partner's convention each: they pass, and what that convention is about ends as its bundle
//! says.

use serde_json::Value;

use super::matrix::{passes, under, whole};
use super::stage::{Bench, list, part, wrong};

/// What was concluded at once and by a later look, by case and fault.
struct Rehearsed(Value);

impl Rehearsed {
    /// Each case under these faults.
    fn passing(name: &str, faults: &str) -> anyhow::Result<Self> {
        under(name, "csv-builder", faults).map(Self)
    }

    fn delivery(&self, case: &str, fault: &str) -> &Value {
        let case = list(&self.0, "cases").iter().find(|one| part(one, "name") == case).unwrap_or(&Value::Null);
        list(case, "faults").iter().find(|one| part(one, "fault") == fault).unwrap_or(&Value::Null)
    }

    /// Asserts what was concluded, and that the fault came to pass.
    fn concludes(&self, case: &str, fault: &str, at_once: &str, later: Option<&str>) {
        let delivery = self.delivery(case, fault);
        assert_eq!(
            (part(delivery, "concluded"), part(delivery, "occurred")),
            (&at_once.into(), &true.into()),
            "{delivery}"
        );
        let looked = part(part(delivery, "later"), "concluded").as_str();
        if later.is_some() {
            assert_eq!(looked, later, "{delivery}");
        }
    }
}

#[test]
fn del_10_plg_06_lighthouse_wants_a_checksum_before_the_data_and_a_manifest_last() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing(
        "lighthouse",
        "plain,auxiliary-taken,refused-put-create,cut-after-put-close,cut-after-link",
    )?;
    for (fault, at_once) in [
        // The checksum is first of the two: without it nothing is published.
        ("auxiliary-taken", "NotDelivered(never_sent)"),
        ("refused-put-create", "NotDelivered(never_sent)"),
        ("cut-after-put-close", "NotDelivered(never_sent)"),
        ("cut-after-link", "Unknown(trigger_not_confirmed)"),
    ] {
        rehearsed.concludes("contacts", fault, at_once, None);
    }
    let did = part(rehearsed.delivery("contacts", "plain"), "plugin_did").to_string();
    let at = |what: &str| did.find(what).unwrap_or(usize::MAX);
    assert!(at("deliver: send") < at("put checksums/"), "{did}");
    assert!(at("put checksums/") < at("deliver: publish") && at("deliver: publish") < at("put manifests/"), "{did}");
    Ok(())
}

/// Its cases say what must be concluded of each answer.
#[test]
fn del_10_plg_06_kestrel_answers_accepted_refused_late_and_about_another_key() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing("kestrel", "plain,cut-after-link")?;
    for (case, at_once, later) in [
        ("accepted", "Completed(acknowledged_attempt)", "Completed(acknowledged_attempt)"),
        ("refused", "Unknown(partner_refused)", "Unknown(partner_refused)"),
        ("late", "Unknown(not_promised_whole)", "Completed(acknowledged_key)"),
        ("another-key", "Unknown(not_promised_whole)", "Unknown(not_promised_whole)"),
    ] {
        rehearsed.concludes(case, "plain", at_once, Some(later));
    }
    Ok(())
}

/// The answer lies in the folder that our own files lie in, and one that says nothing yet counts for nothing.
#[test]
fn del_10_plg_06_ashdown_answers_beside_our_file_and_its_content_decides() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing("ashdown", "plain,cut-after-link")?;
    for (case, at_once, later) in [
        ("accepted", "Completed(acknowledged_attempt)", "Completed(acknowledged_attempt)"),
        ("refused", "Unknown(not_promised_whole)", "Unknown(partner_refused)"),
        ("empty", "Unknown(not_promised_whole)", "Unknown(not_promised_whole)"),
    ] {
        rehearsed.concludes(case, "plain", at_once, Some(later));
    }
    rehearsed.concludes("accepted", "cut-after-link", "Unknown(interrupted)", Some("Completed(acknowledged_attempt)"));
    Ok(())
}

#[test]
fn del_10_plg_06_tidewater_deletes_our_file_and_the_host_concludes_nothing_from_that() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing("tidewater", "plain,collects-at-once,cut-after-rename")?;
    for (case, at_once, later) in [
        ("refused", "Completed(checksum)", "Completed(checksum)"),
        ("taken-later", "Completed(checksum)", "Completed(checksum)"),
        ("taken-at-once", "Completed(collected)", "Completed(collected)"),
    ] {
        rehearsed.concludes(case, "plain", at_once, Some(later));
    }
    // Gone before its link was seen: that it was taken is not proven.
    let unseen = "Unknown(unanswered_and_absent)";
    rehearsed.concludes("refused", "collects-at-once", unseen, Some(unseen));
    Ok(())
}

#[test]
fn del_10_plg_06_orchard_renames_our_file_as_its_verdict() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing("orchard", "plain,cut-after-rename")?;
    for (case, at_once, later) in [
        ("accepted", "Completed(acknowledged_key)", "Completed(acknowledged_key)"),
        ("late", "Unknown(not_promised_whole)", "Completed(acknowledged_key)"),
        ("refused", "Unknown(partner_refused)", "Unknown(partner_refused)"),
    ] {
        rehearsed.concludes(case, "plain", at_once, Some(later));
    }
    Ok(())
}

#[test]
fn plg_06_ferry_takes_a_file_at_once_and_an_unanswered_rename_stays_unknown() -> anyhow::Result<()> {
    let rehearsed = Rehearsed(whole("ferry", "taken")?);
    rehearsed.concludes("taken", "plain", "Completed(collected)", None);
    rehearsed.concludes("taken", "cut-after-rename", "Unknown(unanswered_and_absent)", None);
    Ok(())
}

#[test]
fn del_10_plg_06_letterbox_shows_nothing_and_only_its_answer_completes() -> anyhow::Result<()> {
    let rehearsed = Rehearsed::passing("letterbox", "plain,cut-after-rename")?;
    for (case, at_once, later) in [
        ("accepted", "Completed(acknowledged_attempt)", "Completed(acknowledged_attempt)"),
        ("late", "Unknown(not_visible)", "Completed(acknowledged_attempt)"),
        ("silent", "Unknown(not_visible)", "Unknown(not_visible)"),
    ] {
        rehearsed.concludes(case, "plain", at_once, Some(later));
    }
    // Sent and not answered: the partner's answer settles that too, and without one a person asks.
    rehearsed.concludes("late", "cut-after-rename", "Unknown(not_visible)", Some("Completed(acknowledged_attempt)"));
    rehearsed.concludes("silent", "cut-after-rename", "Unknown(not_visible)", Some("Unknown(not_visible)"));
    Ok(())
}

#[test]
fn del_10_plg_06_granite_has_no_rename_and_waits_for_its_trigger() -> anyhow::Result<()> {
    let rehearsed = Rehearsed(whole("granite", "contacts")?);
    rehearsed.concludes("contacts", "plain", "Completed(checksum)", None);
    rehearsed.concludes("contacts", "refused-put-create", "Unknown(trigger_not_confirmed)", None);
    Ok(())
}

#[test]
fn plg_06_almanac_replaces_its_one_file_every_week_and_nobody_elses() -> anyhow::Result<()> {
    let rehearsed = Rehearsed(whole("almanac", "next-week")?);
    // What the first week concludes is what its case expects.
    passes("almanac", "csv-builder", &["--only", "first-week", "--fault", "plain"])?;
    rehearsed.concludes("next-week", "plain", "Completed(checksum)", None);
    rehearsed.concludes("next-week", "name-taken", "Failed(FinalNameOccupied)", None);
    let put_over = part(rehearsed.delivery("next-week", "plain"), "plugin_did").to_string();
    assert!(put_over.contains("publish-over"), "{put_over}");
    Ok(())
}

#[test]
fn plg_06_a_case_that_expects_another_conclusion_fails_with_the_reason() -> anyhow::Result<()> {
    let bench = Bench::shipped("kestrel", "csv-builder")?;
    let case = String::from_utf8(bench.read("tests/refused.toml")?)?;
    bench.write(
        "tests/refused.toml",
        &case.replace("at_once = \"Unknown(partner_refused)\"", "at_once = \"Completed\""),
    )?;
    let (code, report) = bench.report(&["--only", "refused", "--fault", "plain"])?;
    assert_eq!(code, Some(4));
    let said = wrong(&report).join("\n");
    let told = "the case expects Completed at once, and the host concluded Unknown(partner_refused): The partner says";
    assert!(said.contains(told), "{said}");
    Ok(())
}
