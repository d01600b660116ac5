//! What a builder does that only operation would show: batches that are short, attempts that differ, parameters that are missing.

use serde_json::Value;

use super::stage::{Bench, fault, part, wrong};

const MANIFEST: &str = "[names]\nfinal = 'contacts-{key}.csv'\n";
const CASE: &str =
    "key = 'K-1'\n[settings]\nname = 'contacts-{key}.csv'\nquery = 'two'\n[rows]\ntwo = 'rows/two.jsonl'\n";

/// The misbehaving builder under settings; `more` stands on top of the case.
fn misbehaving(contract: &str, more: &str, settings: &str) -> anyhow::Result<Bench> {
    let case = CASE.replace("[settings]\n", &format!("[settings]\n{settings}\n"));
    let bench = Bench::made(&format!("{MANIFEST}{contract}"), &format!("{more}{case}"), "sftp-destination")?;
    bench.component("builder", "misbehaving-builder")?;
    std::fs::create_dir(bench.bundle().join("tests/golden"))?;
    Ok(bench)
}

fn plain(bench: &Bench, arguments: &[&str]) -> anyhow::Result<(Option<i32>, Value, String)> {
    let (code, report) = bench.report(&[&["--fault", "plain"], arguments].concat())?;
    let said = wrong(&report).join("\n");
    Ok((code, report, said))
}

#[test]
fn plg_06_a_builder_that_takes_a_short_batch_for_the_end_is_found() -> anyhow::Result<()> {
    for hold in ["", "hold = 'yes'"] {
        let settings = format!("behaviour = 'stop-at-a-short-batch'\n{hold}");
        let (code, _, said) = plain(&misbehaving("", "", &settings)?, &[])?;
        assert_eq!(code, Some(4), "{hold}: {said}");
        assert!(said.contains("1 rows, 18 bytes, and rows of two were left unread: a batch may be shorter"), "{said}");

        // Where it is meant the case says so, and the file is held against the golden one.
        let meant = misbehaving("", "reads_all = false\ngolden = 'golden/two.csv'\n", &settings)?;
        meant.write("tests/golden/two.csv", "Value::Integer(1)\nValue::Integer(2)\n")?;
        let (code, _, said) = plain(&meant, &[])?;
        assert_eq!((code, said.contains("differs from two.csv at byte 18 (line 2)")), (Some(4), true), "{said}");
        meant.write("tests/golden/two.csv", "Value::Integer(1)\n")?;
        assert_eq!(plain(&meant, &[])?.2, "");
    }
    Ok(())
}

/// Of a query of one row nobody asks for the end, and nothing is lost by it.
#[test]
fn plg_06_a_builder_that_reads_the_only_row_of_a_query_passes() -> anyhow::Result<()> {
    let bench = misbehaving("", "", "behaviour = 'stop-at-a-short-batch'")?;
    bench.write("tests/rows/two.jsonl", "[{\"name\":\"n\",\"of\":\"integer\"}]\n[1]\n")?;
    let (code, _, said) = plain(&bench, &[])?;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    Ok(())
}

#[test]
fn plg_06_a_file_that_differs_between_attempts_is_found() -> anyhow::Result<()> {
    let settings = "behaviour = 'name-the-attempt'";
    let (code, _, said) = plain(&misbehaving("", "", settings)?, &[])?;
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("repeatable: two attempts built other files of the same rows: they differ at byte"),
        "{said}"
    );

    // Where it is meant, the golden file is that of the first attempt, whose id is always the same.
    let meant = misbehaving("", "repeatable = false\ngolden = 'golden/two.csv'\n", settings)?;
    assert_eq!(plain(&meant, &["--bless"])?.2, "");
    assert_eq!(plain(&meant, &[])?.2, "");
    Ok(())
}

/// A partner answers the file that it has, which is not the one of the first build.
#[test]
fn plg_06_a_partner_that_names_the_checksum_names_that_of_the_attempts_file() -> anyhow::Result<()> {
    let contract = "[contract.acknowledgment]\nname = 'ack/{key}.txt'\naccept = 'accepted (?P<sha256>\\S+)'\nperiod_seconds = 60\n[limits]\nread_back_mib = 0\n";
    for (when, at_once) in [("published", "Completed(acknowledged_attempt)"), ("later", "Unknown(not_promised_whole)")]
    {
        let bench = misbehaving(contract, "repeatable = false\n", "behaviour = 'name-the-attempt'")?;
        let answer =
            format!("[[acknowledgment]]\nwhen = '{when}'\nname = 'ack/{{key}}.txt'\ntext = 'accepted {{sha256}}'\n");
        let case = String::from_utf8(bench.read("tests/one.toml")?)?;
        bench.write("tests/one.toml", &format!("{case}{answer}"))?;
        let (code, report, said) = plain(&bench, &[])?;
        assert_eq!((code, said.as_str()), (Some(0), ""), "{when}");
        let delivery = fault(&report, "plain");
        assert_eq!(part(delivery, "concluded"), at_once, "{delivery}");
        assert_eq!(part(part(delivery, "later"), "concluded"), "Completed(acknowledged_attempt)", "{delivery}");
    }
    Ok(())
}

/// What the operator is told to write needs it, and the case's scope does not have it.
#[test]
fn plg_06_a_parameter_that_the_builder_does_not_give_is_found() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let example = |sql: &str| format!("[[destination]]\nname = 'made'\n[destination.queries.two]\nsql = \"{sql}\"\n");
    bench.write(
        "destinations.example.toml",
        &example("SELECT n FROM t WHERE tenant = :tenant AND country = :country"),
    )?;
    let (code, _, said) = plain(&bench, &[])?;
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("the query \\\"two\\\" needs the parameter :country"), "{said}");

    bench.write("tests/one.toml", &format!("{CASE}[scope]\ncountry = 'DE'\nregion = 'north'\n"))?;
    assert_eq!(plain(&bench, &[])?.2, "", "what no query has is ignored");

    bench.write("destinations.example.toml", &example("SELECT 1").replace("queries.two", "queries.others"))?;
    let (code, _, said) = plain(&bench, &[])?;
    let told = "there is no query named \\\"two\\\"; destinations.example.toml has others";
    assert_eq!((code, said.contains(told)), (Some(4), true), "{said}");
    bench.write("tests/one.toml", &CASE.replace("two = 'rows", "tow = 'rows"))?;
    let (code, _, said) = plain(&bench, &[])?;
    let told = "there is no query named \\\"two\\\"; the case has tow under [rows]";
    assert_eq!((code, said.contains(told)), (Some(4), true), "{said}");

    bench.write("destinations.example.toml", "[[destination]\n")?;
    let output = bench.test(&[])?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!(
        (output.status.code(), said.contains("destinations.example.toml cannot be read")),
        (Some(1), true),
        "{said}"
    );
    Ok(())
}
