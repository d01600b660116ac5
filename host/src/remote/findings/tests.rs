use super::super::prove::Shown;
use super::*;

const OPENSSH: &str = "SSH-2.0-OpenSSH_9.2";
const OTHER: &str = "SSH-2.0-Other";

fn shown(shown: bool) -> Shown {
    let seen = if shown { "answered yes; it was seen" } else { "answered no; nothing happened" };
    Shown { shown, seen: seen.to_owned(), code: (!shown).then_some(4) }
}

fn proof(kept_names: &[&str]) -> Proof {
    let kept = |name: &str| shown(kept_names.contains(&name));
    Proof {
        fingerprint: String::new(),
        size_after_close: kept("size"),
        create_refuses: kept("create refuses"),
        creates_whole: kept_names.contains(&"creates whole"),
        link_creates: kept("link"),
        link_refuses: kept("link"),
        rename_moves: kept("rename"),
        rename_refuses: kept("rename refuses"),
        rename_replaces: kept("rename replaces"),
        posix_rename_replaces: kept("posix"),
        left_behind: Vec::new(),
    }
}

fn seen(shows: bool, reads: bool) -> Seen {
    Seen {
        lists: shown(true),
        lists_answers: None,
        shows: shown(shows),
        tells_size: shows,
        tells_time: shows,
        reads_back: shown(reads),
        free_bytes: None,
    }
}

/// The words that are contradicted, in order.
fn against(banner: &str, proof: &Proof, seen: &Seen, contract: &str) -> Vec<String> {
    let contract: Contract = toml::from_str(contract).unwrap();
    let about = About { banner, proof, seen: Some(seen), contract: &contract, one_folder: true };
    let found = findings(&about);
    for finding in &found {
        assert_eq!(
            finding.stands == Standing::Contradicts,
            finding.next.is_some() && !proof.left_behind.iter().any(|_| finding.about == "temporaries"),
            "{finding:?}"
        );
    }
    found.into_iter().filter(|one| one.stands == Standing::Contradicts).map(|one| one.about).collect()
}

const LINKS: &[&str] = &["size", "create refuses", "link", "rename", "rename refuses", "posix"];
const RENAMES: &[&str] = &["size", "create refuses", "rename", "rename refuses"];
const STORE: &[&str] = &["size", "create refuses", "creates whole"];
const REPLACES: &[&str] = &["size", "create refuses", "rename", "rename replaces"];

#[test]
fn del_05_what_contradicts_a_contract_is_named_by_its_word() {
    let whole = seen(true, true);
    type Case<'a> = (&'a str, &'a [&'a str], &'a Seen, &'a str, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (OPENSSH, LINKS, &whole, "", &[]),
        (
            OPENSSH,
            LINKS,
            &whole,
            "publishes_whole = true\nrename_one_step = true\none_name_space = true\nmay_remove_temporaries = true",
            &[],
        ),
        (OTHER, RENAMES, &whole, "publishes_whole = true\nrename_one_step = true", &[]),
        (OPENSSH, RENAMES, &whole, "rename_one_step = true", &["rename_one_step"]),
        // It replaces on rename, and offers no link.
        (OTHER, REPLACES, &whole, "", &["publish"]),
        (OTHER, REPLACES, &whole, "publishes_whole = true\nexclusive_create = true", &["publishes_whole"]),
        (OTHER, &["size", "rename"], &whole, "exclusive_create = true", &["publish", "exclusive_create"]),
        (OTHER, &["link", "rename", "rename refuses"], &whole, "", &["publish"]),
        // An object store needs no trigger, and replaces nothing.
        (OTHER, STORE, &whole, "publishes_whole = true\nmay_remove_temporaries = true", &[]),
        (OTHER, STORE, &whole, "overwrites_last = 'mail'", &["overwrites_last"]),
        (OTHER, &["size", "creates whole"], &whole, "publishes_whole = true", &["publish"]),
        // An agreed overwrite.
        (OPENSSH, LINKS, &whole, "overwrites_last = 'mail'", &[]),
        (OTHER, RENAMES, &whole, "overwrites_last = 'mail'", &["overwrites_last"]),
        // What it shows.
        (OTHER, LINKS, &seen(false, true), "", &["looking"]),
        (
            OTHER,
            LINKS,
            &seen(false, true),
            "listing_hidden = true\nname_and_size_identify = true\ntime_proves_overwrite = true",
            &["name_and_size_identify", "time_proves_overwrite"],
        ),
        (OTHER, LINKS, &seen(true, false), "", &["reading back"]),
        (OTHER, LINKS, &seen(true, false), "publishes_whole = true", &[]),
    ];
    for (banner, kept, seen, contract, words) in cases {
        assert_eq!(against(banner, &proof(kept), seen, contract), *words, "{kept:?} {contract}");
    }
}

const ANSWERED: &str =
    "publishes_whole = true\n[acknowledgment]\nname = 'answers/{key}.txt'\naccept = 'ok'\nperiod_seconds = 60";

#[test]
fn del_05_a_contract_that_counts_on_answers_sizes_or_times_is_held_against_what_was_shown_of_each() {
    let whole = seen(true, true);
    let answers = |listed| Seen { lists_answers: Some(shown(listed)), ..seen(true, true) };
    let (silent, timeless) = (Seen { tells_size: false, ..whole.clone() }, Seen { tells_time: false, ..whole });
    let (size, time) = ("name_and_size_identify = true", "time_proves_overwrite = true");
    let cases: [(&Seen, &str, &[&str]); 8] = [
        (&answers(false), ANSWERED, &["acknowledgment"]),
        (&answers(true), ANSWERED, &[]),
        // Nobody looks for answers that are not agreed.
        (&answers(false), "publishes_whole = true", &[]),
        (&silent, size, &["name_and_size_identify"]),
        (&silent, time, &[]),
        (&timeless, time, &["time_proves_overwrite"]),
        (&timeless, size, &[]),
        (&timeless, &format!("{size}\n{time}"), &["time_proves_overwrite"]),
    ];
    for (seen, contract, words) in cases {
        assert_eq!(against(OTHER, &proof(LINKS), seen, contract), *words, "{contract}\n{seen:#?}");
    }
    let contract: Contract = toml::from_str(ANSWERED).unwrap();
    let stands = |seen: &Seen| {
        let proof = proof(LINKS);
        let about = About { banner: OTHER, proof: &proof, seen: Some(seen), contract: &contract, one_folder: true };
        findings(&about).into_iter().find(|one| one.about == "acknowledgment").map(|one| (one.stands, one.sentence))
    };
    let (agrees, listed) = stands(&answers(true)).unwrap();
    assert!(agrees == Standing::Agrees && listed.contains("answers/{key}.txt"), "{listed}");
    let (_, refused) = stands(&answers(false)).unwrap();
    assert!(refused.contains("answered no; nothing happened"), "{refused}");
    assert_eq!(stands(&seen(true, true)), None, "where nobody tried, nothing is said");
}

#[test]
fn del_05_a_server_that_says_yes_to_a_link_and_makes_none_is_named() {
    let mut lying = proof(REPLACES);
    lying.link_creates = Shown { seen: "answered yes; the new name is not there".to_owned(), ..shown(false) };
    let contract = Contract::default();
    let about = About { banner: OTHER, proof: &lying, seen: None, contract: &contract, one_folder: true };
    let found = findings(&about);
    let publish = &found[0];
    assert_eq!(publish.stands, Standing::Contradicts);
    for part in ["a hard link is answered yes and not made", "RENAME replaces an existing file"] {
        assert!(publish.sentence.contains(part), "{publish:?}");
    }
    assert!(found[1].sentence.contains("nothing is ever delivered by one"), "{found:?}");
}

#[test]
fn a_share_that_remembers_is_noted_unless_the_contract_waits() {
    let (proof, seen) = (proof(LINKS), seen(true, true));
    let noted = |banner: &str, contract: &str| {
        let contract: Contract = toml::from_str(contract).unwrap();
        let about = About { banner, proof: &proof, seen: Some(&seen), contract: &contract, one_folder: true };
        findings(&about).iter().any(|one| one.about == "settle_seconds" && one.stands == Standing::Noted)
    };
    assert!(noted("a directory on NFS", ""));
    assert!(!noted("a directory on NFS", "settle_seconds = 60") && !noted("a directory on ext4", ""));
}

#[test]
fn del_05_scratch_files_that_stay_contradict_the_leave_to_remove() {
    let left = Proof { left_behind: vec![".a.part".to_owned()], ..proof(LINKS) };
    assert_eq!(against(OTHER, &left, &seen(true, true), "may_remove_temporaries = true"), ["may_remove_temporaries"]);
    assert!(against(OTHER, &left, &seen(true, true), "").is_empty());
}
