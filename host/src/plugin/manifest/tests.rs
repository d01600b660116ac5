use super::*;

const LEAST: &str = "partner = 'acme'\nrevision = 1\n[names]\nfinal = 'contacts-{key}.csv'\n";

fn fault(text: &str) -> DocumentError {
    Manifest::parse(text).unwrap_err()
}

fn with(more: &str) -> String {
    format!("{LEAST}{more}")
}

#[test]
fn the_least_manifest_promises_nothing_and_has_the_documented_defaults() {
    let manifest = Manifest::parse(LEAST).unwrap();
    assert_eq!(manifest.contract, Contract::default());
    assert_eq!(manifest.names.temporary.to_string(), ".{attempt}.part");
    assert_eq!(
        (manifest.builder.file.as_str(), manifest.destination.file.as_str()),
        ("builder.wasm", "destination.wasm")
    );
    assert_eq!(manifest.limits, Limits::default());
    for (name, least, most) in RANGES {
        assert!((least..=most).contains(&Limits::default().of(name)), "{name}");
    }
}

#[test]
fn plg_02_a_pin_needs_no_file_and_a_file_no_pin() {
    let digest = "ab".repeat(32);
    let manifest =
        Manifest::parse(&with(&format!("[builder]\nsha256 = '{digest}'\n[destination]\nsha256 = '{digest}'\n")))
            .unwrap();
    for (component, file) in [(&manifest.builder, "builder.wasm"), (&manifest.destination, "destination.wasm")] {
        assert_eq!(
            (component.file.as_str(), component.sha256.map(|sha256| sha256.to_string())),
            (file, Some(digest.clone()))
        );
    }
    let manifest = Manifest::parse(&with("[builder]\nfile = 'other.wasm'\n[destination]\n")).unwrap();
    assert_eq!(
        (manifest.builder.file.as_str(), manifest.destination.file.as_str()),
        ("other.wasm", "destination.wasm")
    );
    assert!(fault(&with("[builder]\nsha265 = 'ab'\n")).what.contains("did you mean `sha256`"));
}

#[test]
fn plg_02_answers_that_lie_in_a_folder_of_the_final_name_are_noted_and_not_refused() {
    let notes = |final_name: &str, answer: &str| {
        let answered = format!("[contract.acknowledgment]\naccept_name = '{answer}'\nperiod_seconds = 60\n");
        Manifest::parse(&with(&answered).replace("contacts-{key}.csv", final_name)).unwrap().notes()
    };
    let noted = notes("in/{key}.csv", "answers/{final}.ok");
    let told = "the answers \"answers/{final}.ok\" (`accept_name`) lie in answers/in, because final names lie in in; for files in answers write \"answers/{final.name}.ok\"";
    assert_eq!(noted, [told]);
    assert!(notes("in/{key}.csv", "ok-{final}")[0].contains("lie in ok-in"));
    for (final_name, answer) in [
        ("{key}.csv", "answers/{final}.ok"),
        ("in/{key}.csv", "answers/{final.name}.ok"),
        ("in/{key}.csv", "{final}.ok"),
    ] {
        assert_eq!(notes(final_name, answer), [""; 0], "{final_name}, {answer}");
    }
}

#[test]
fn a_misspelt_promise_is_told_with_line_and_fix() {
    let error = fault(&with("[contract]\npublishes_hole = true\n"));
    assert_eq!(
        error.to_string(),
        "partner.toml line 6: the key `publishes_hole` is not known here; did you mean `publishes_whole`?"
    );
}

#[test]
fn each_semantic_fault_is_told_with_its_line_and_fix() {
    let cases: &[(String, usize, &str)] = &[
        (LEAST.replace("acme", "Acme GmbH"), 1, "a-z"),
        (LEAST.replace("revision = 1", "revision = 0"), 2, "raised"),
        (LEAST.replace("-{key}", ""), 4, "put {key}"),
        (LEAST.replace("{key}", "{attempt}"), 4, "function of the job"),
        (with("temporary = 'upload.part'\n"), 5, "{attempt}"),
        (
            with("temporary = 'contacts-{attempt}.csv'\n[contract]\nnames_reused = true\n").replace("{key}", "*"),
            5,
            "could be a final name",
        ),
        (with("[builder]\nfile = '../x.wasm'\n"), 6, "plain file name"),
        (with("[builder]\nfile = 'x.cwasm'\n"), 6, "compiled code"),
        (with("[builder]\nfile = 'x.wasm'\nsha256 = 'abc'\n"), 7, "64 digits"),
        (with("[limits]\nmemory_mib = 0\n"), 6, "from 1 to 4096"),
        (with("[contract]\nexclusive_create = true\n"), 6, "trigger = true"),
        (with("[contract]\noverwrites_last = 'mail'\n"), 6, "names_reused"),
        (with("[[contract.auxiliary]]\nname = '{final}'\n"), 6, "could be a final name"),
        (
            with("[[contract.auxiliary]]\nname = '{final}.a'\n[[contract.auxiliary]]\nname = '{final}.A'\n"),
            8,
            "could be one file",
        ),
        (
            with("[[contract.auxiliary]]\nname = '{final}.done'\ntrigger = true\nbefore_publish = true\n"),
            8,
            "remove before_publish",
        ),
        (
            with(
                "[[contract.auxiliary]]\nname = '{final}.ack'\n[contract.acknowledgment]\nname = '*.ack'\naccept = '(?<key>k)'\nperiod_seconds = 60\n",
            ),
            6,
            "partner's answer",
        ),
        (
            with("[contract.acknowledgment]\nname = '{key}.ack'\naccept = '(ok'\nperiod_seconds = 60\n"),
            7,
            "regular expression",
        ),
        (with("[contract.acknowledgment]\nname = '{key}.ack'\naccept = 'o*'\nperiod_seconds = 60\n"), 7, "empty file"),
        (
            with("[contract.acknowledgment]\nname = '{key}.ack'\naccept = '(?<who>ok)'\nperiod_seconds = 60\n"),
            7,
            "captures",
        ),
        (with("[contract.acknowledgment]\nname = 'today.ack'\naccept = 'ok'\nperiod_seconds = 60\n"), 7, "ties"),
        (with("[contract.acknowledgment]\nname = '{key}.*'\naccept = 'ok'\nperiod_seconds = 60\n"), 7, "no `*` beside"),
        (
            with("[contract.acknowledgment]\nname = '{key}.ack'\nperiod_seconds = 60\n"),
            6,
            "call it `accept_name` or `refuse_name`",
        ),
        (with("[contract.acknowledgment]\naccept = 'ok'\nperiod_seconds = 60\n"), 5, "that `name` stands for"),
        (with("[contract.acknowledgment]\nperiod_seconds = 60\n"), 5, "nothing says how the partner answers"),
        (with("[contract.acknowledgment]\nrefuse_name = '*.err'\nperiod_seconds = 60\n"), 6, "ties such a file"),
        (
            with("[contract.acknowledgment]\naccept_name = '{final}'\nperiod_seconds = 60\n"),
            6,
            "could be a file that the host sends",
        ),
        (
            with(
                "[contract.acknowledgment]\naccept_name = '{final}.ok'\nrefuse_name = '{final}.OK'\nperiod_seconds = 60\n",
            ),
            7,
            "and that of `accept_name` ({final}.ok)",
        ),
        (
            with(
                "[[contract.auxiliary]]\nname = '{final}.err'\n[contract.acknowledgment]\nrefuse_name = '{final}.err'\nperiod_seconds = 60\n",
            ),
            6,
            "partner's answer",
        ),
        (with("[options]\nseparator = 1\n"), 6, "`options.separator` is a text: write it in quotes"),
        (with("[[contract.acknowledgment]]\nname = '{key}.ok'\n"), 5, "write `[contract.acknowledgment]`, with single"),
        (with("[[destination]]\nid = '1'\n"), 5, "destinations.toml"),
    ];
    for (text, line, part) in cases {
        let error = fault(text);
        assert!(error.line == *line && error.what.contains(part), "{error}\nfor\n{text}");
    }
}

#[test]
fn a_full_manifest_is_read() {
    let manifest = Manifest::parse(&with(
        "temporary = 'in/.{attempt}.tmp'\n[contract]\nagreement = 'mail'\npublishes_whole = true\n\
         [contract.acknowledgment]\nname = 'ack/{key}.txt'\naccept = '^OK (?<key>\\S+)'\nrefuse = '^NO'\nperiod_seconds = 86400\n\
         [[contract.auxiliary]]\nname = '{final}.sha256'\nbefore_publish = true\n[[contract.auxiliary]]\nname = '{final}.done'\ntrigger = true\n\
         [limits]\noutput_mib = 2\n[options]\nseparator = ';'\n",
    ))
    .unwrap();
    assert_eq!(manifest.limits.output_bytes(), 2 << 20);
    assert_eq!(manifest.contract.auxiliary.len(), 2);
    assert_eq!(manifest.options["separator"], ";");
}
