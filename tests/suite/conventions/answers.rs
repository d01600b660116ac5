//! Acknowledgments: accepted, refused, late, about another delivery, forged by ourselves, there before, too many.

use waybill::job::evidence::Evidence;
use waybill::job::status::Status;
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Fault};
use waybill_tests::{Plan, SftpServer};

use super::{Partner, completed, unknown};
use crate::settled::agreed;

/// Nothing but the partner's answer can complete a delivery.
fn answering(name: &str) -> Plan {
    agreed(&format!(
        "one_name_space = true\n[contract.acknowledgment]\nname = '{name}'\nperiod_seconds = 3600\n\
         accept = '(?m)^ok (?P<key>\\S+)(?: (?P<sha256>[0-9a-f]{{64}}))?$'\nrefuse = '(?m)^no (?P<key>\\S+)$'\n\
         duplicate = '(?m)^again (?P<key>\\S+)$'"
    ))
}

fn put(server: &SftpServer, name: &str, text: &str) {
    server.put(name, text).unwrap();
}

#[tokio::test]
async fn del_10_an_answer_at_once_counts_by_what_it_says_and_names() -> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/{key}.txt"), &["answers"]).await?;
    let foreign = "ab".repeat(32);
    for (key, text, outcome) in [
        ("silent", String::new(), unknown("not_promised_whole")),
        ("accepted", "ok accepted\n".to_owned(), completed("acknowledged_key")),
        ("refused", "no refused\n".to_owned(), unknown("partner_refused")),
        ("duplicate", "again duplicate\n".to_owned(), unknown("partner_had_it_before")),
        ("both", "ok both\nno both\n".to_owned(), unknown("partner_refused")),
        ("other-key", "ok accepted\n".to_owned(), unknown("not_promised_whole")),
        ("other-content", format!("ok other-content {foreign}\n"), unknown("accepted_other_content")),
        ("nonsense", "thank you\n".to_owned(), unknown("not_promised_whole")),
        ("too-long", format!("ok too-long\n{}", "x".repeat(64 * 1024)), unknown("not_promised_whole")),
    ] {
        partner.when_published(move |server, key| {
            if !text.is_empty() {
                put(server, &format!("answers/{key}.txt"), &text);
            }
        });
        let job = partner.deliver(key).await?;
        assert_eq!(partner.outcome(&job).await?, outcome, "{key}");
        assert!(partner.server.read(&format!("contacts-{key}.csv")).is_some(), "{key} is published in any case");
    }
    Ok(())
}

/// They say it by a name: of an empty file, of one full of words, or of our own file, which they rename.
#[tokio::test]
async fn del_10_a_name_is_an_answer_whatever_is_in_the_file_and_whoever_may_read_it() -> anyhow::Result<()> {
    let plan = agreed(
        "one_name_space = true\n[contract.acknowledgment]\naccept_name = '{final.stem}.ok'\n\
         refuse_name = 'refused/{final.name}.err'\nperiod_seconds = 3600",
    );
    let partner = Partner::agreed(plan, &["refused"]).await?;
    let nobody_may_read = |partner: &Partner| {
        partner.server.hook(|event| {
            let answer = [".ok", ".err"].iter().any(|answer| event.path.ends_with(answer));
            (event.action == Action::Open && answer).then(|| Fault::refuse(3, "Permission denied"))
        });
    };
    let words = "refused, says the text\n".repeat(10_000);
    for (key, name, text, outcome) in [
        ("empty", "contacts-empty.ok", String::new(), completed("acknowledged_key")),
        ("long", "contacts-long.ok", words.clone(), completed("acknowledged_key")),
        ("no", "refused/contacts-no.csv.err", String::new(), unknown("partner_refused")),
        ("other", "contacts-another.ok", String::new(), unknown("not_promised_whole")),
    ] {
        partner.when_published(move |server, _| put(server, name, &text));
        nobody_may_read(&partner);
        let job = partner.deliver(key).await?;
        assert_eq!(partner.outcome(&job).await?, outcome, "{key}");
        partner.server.clear_hooks();
    }
    let job = partner.deliver("both").await?;
    assert_eq!(partner.outcome(&job).await?, unknown("not_promised_whole"));
    nobody_may_read(&partner);
    for name in ["contacts-both.ok", "refused/contacts-both.csv.err"] {
        put(&partner.server, name, "");
    }
    assert_eq!(partner.looked(&job).await?, [Looked::Open]);
    let said = partner.seen(&job).await?.acknowledgments;
    let said: Vec<_> = said.iter().map(|said| (said.name.as_str(), said.says.as_str())).collect();
    let no = ("refused/contacts-both.csv.err", "refused");
    assert_eq!(said, [no, ("contacts-both.ok", "accepted")], "no weighs more");
    Ok(())
}

#[tokio::test]
async fn del_10_a_late_answer_settles_what_is_unknown_and_an_answer_about_another_delivery_does_not()
-> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/{key}.txt"), &["answers"]).await?;
    let (one, other) = (partner.deliver("one").await?, partner.deliver("other").await?);
    let digest = one.expected.as_ref().map(|file| file.sha256.to_string()).unwrap_or_default();
    // The other's answer, in its own file and in this one's.
    for name in ["answers/other.txt", "answers/one.txt"] {
        put(&partner.server, name, "ok other\n");
    }
    assert_eq!(partner.looked(&one).await?, [Looked::Open]);
    assert_eq!(partner.outcome(&one).await?, unknown("not_promised_whole"));
    assert_eq!(partner.looked(&other).await?, [Looked::Reconciled(Status::Completed)]);
    put(&partner.server, "answers/one.txt", &format!("ok one {digest}\n"));
    assert_eq!(partner.looked(&one).await?, [Looked::Reconciled(Status::Completed)]);
    assert_eq!(partner.outcome(&one).await?, completed("acknowledged_attempt"));
    // Said twice, in another word: what is recorded stays, and the contradiction is named.
    put(&partner.server, "answers/one.txt", "again one\n");
    assert_eq!(partner.looked(&one).await?, [Looked::Contradicted]);
    assert_eq!(partner.outcome(&one).await?, completed("acknowledged_attempt"));
    assert!(partner.seen(&one).await?.differences.iter().any(|one| one.contains("had this delivery before")));
    Ok(())
}

#[tokio::test]
async fn rec_02_a_bundle_that_goes_away_while_looks_are_due_ends_none_of_them() -> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/{key}.txt"), &["answers"]).await?;
    let mut jobs = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        jobs.push(partner.deliver(key).await?);
    }
    for job in &jobs {
        partner.house.look_is_due(job.id).await?;
    }
    // As where an operator takes the directory away to put a newer one there.
    let served = partner.house.registry.bundles();
    let registry = partner.house.registry.clone();
    partner.server.hook(move |event| {
        if event.action == Action::Stat {
            registry.replace(Vec::new());
        }
        None
    });
    let looked = partner.house.reconciler().await?.run_once().await?;
    assert!(looked.len() < jobs.len(), "{looked:?}");
    partner.server.clear_hooks();
    partner.house.registry.replace(served);
    for job in &jobs {
        assert!(!partner.house.look_of(job.id).await?.0, "{} is not looked at any more", job.delivery_key);
        put(&partner.server, &format!("answers/{}.txt", job.delivery_key), &format!("ok {}\n", job.delivery_key));
        partner.house.look_is_due(job.id).await?;
    }
    let looked = partner.house.reconciler().await?.run_once().await?;
    assert_eq!(looked, vec![Looked::Reconciled(Status::Completed); jobs.len()]);
    Ok(())
}

#[tokio::test]
async fn del_10_past_the_agreed_period_nobody_looks_for_an_answer() -> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/{key}.txt"), &["answers"]).await?;
    partner.when_published(|server, key| put(server, &format!("answers/{key}.txt"), &format!("ok {key}\n")));
    let job = partner.deliver("spring").await?;
    assert_eq!(partner.looked(&job).await?, [Looked::Quiet]);
    sqlx::query("UPDATE looks SET until = clock_timestamp() - interval '1 second' WHERE job_id = $1")
        .bind(job.id)
        .execute(&mut partner.house.unguarded().await?)
        .await?;
    assert_eq!(partner.looked(&job).await?, [Looked::Quiet], "the last look, at the end of the period");
    assert!(partner.house.look_of(job.id).await?.0);
    let evidence = partner.evidence(&job).await?;
    put(&partner.server, "answers/spring.txt", "no spring\n");
    assert_eq!(partner.looked(&job).await?, []);
    assert_eq!(
        (partner.evidence(&job).await?, partner.outcome(&job).await?),
        (evidence, completed("acknowledged_key"))
    );
    Ok(())
}

#[tokio::test]
async fn del_10_an_answer_that_was_there_before_says_nothing_then_or_later() -> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/{key}.txt"), &["answers"]).await?;
    partner.before_the_first_look(|server, key| put(server, &format!("answers/{key}.txt"), &format!("ok {key}\n")));
    let job = partner.deliver("spring").await?;
    assert_eq!(partner.outcome(&job).await?, unknown("not_promised_whole"));
    let [Evidence::Baseline { acknowledgments: Some(there), .. }, ..] = &partner.evidence(&job).await?[..] else {
        panic!("no baseline comes first")
    };
    assert_eq!(there, &["answers/spring.txt"]);
    // Written again under the same name, it cannot be told from the one of before.
    put(&partner.server, "answers/spring.txt", "ok spring\n");
    assert_eq!(partner.looked(&job).await?, [Looked::Open]);
    assert_eq!(partner.outcome(&job).await?, unknown("not_promised_whole"));
    Ok(())
}

#[tokio::test]
async fn del_10_among_many_new_answers_ours_counts_and_neither_a_folder_nor_one_that_went_away_hides_it()
-> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/*.txt"), &["answers"]).await?;
    partner.when_published(|server, key| {
        server.make_directory("answers/archive.txt").unwrap();
        for number in 100..200 {
            put(server, &format!("answers/{number}.txt"), "ok somebody\n");
        }
        put(server, "answers/tail.txt", &format!("ok {key}\n"));
    });
    // Taken between the listing and the reading.
    partner.server.hook(|event| {
        let taken = event.action == Action::Open && event.path.ends_with("/150.txt");
        taken.then(|| Fault::refuse(2, "No such file"))
    });
    let job = partner.deliver("spring").await?;
    assert_eq!(partner.outcome(&job).await?, completed("acknowledged_key"));
    Ok(())
}

#[tokio::test]
async fn del_10_in_a_folder_of_many_answers_an_old_one_never_becomes_new() -> anyhow::Result<()> {
    let partner = Partner::agreed(answering("answers/*.txt"), &["answers"]).await?;
    partner.before_the_first_look(|server, key| {
        for number in 100..200 {
            put(server, &format!("answers/{number}.txt"), "ok somebody\n");
        }
        put(server, "answers/old.txt", &format!("ok {key}\n"));
    });
    let job = partner.deliver("spring").await?;
    for number in 100..200 {
        assert!(partner.server.collect(&format!("answers/{number}.txt")));
    }
    assert_eq!(partner.looked(&job).await?, [Looked::Open], "the old answer was taken for a new one");
    put(&partner.server, "answers/today.txt", "ok summer\nok spring\n");
    assert_eq!(partner.looked(&job).await?, [Looked::Reconciled(Status::Completed)]);
    // Where there are too many to know what is new, none counts.
    partner.before_the_first_look(|server, _| {
        for number in 1000..2001 {
            put(server, &format!("answers/{number}.txt"), "ok somebody\n");
        }
    });
    let job = partner.deliver("summer").await?;
    for number in 1000..2001 {
        partner.server.collect(&format!("answers/{number}.txt"));
    }
    put(&partner.server, "answers/tomorrow.txt", "ok summer\n");
    assert_eq!(partner.looked(&job).await?, [Looked::Open]);
    Ok(())
}

#[tokio::test]
async fn del_10_an_answer_beside_the_file_is_found_in_its_folder_and_may_be_the_renamed_file_itself()
-> anyhow::Result<()> {
    let contract = "one_name_space = true\n[contract.acknowledgment]\nname = '{final}.ok'\naccept = '^id,name,email\\r\\n'\nperiod_seconds = 3600";
    let plan = agreed(contract);
    let plan = Plan {
        manifest: plan.manifest.replace("final = 'contacts", "final = 'in/contacts"),
        destination: "settings = { name = 'in/contacts-{key}.csv', query = 'rows' }\n".to_owned(),
        ..plan
    };
    let partner = Partner::agreed(plan, &["in"]).await?;
    let rename = |server: &SftpServer, key: &str, verdict: &str| {
        let name = format!("in/contacts-{key}.csv");
        let file = server.read(&name).unwrap();
        server.collect(&name);
        server.put(&format!("{name}.{verdict}"), file).unwrap();
    };
    partner.when_published(move |server, key| rename(server, key, "ok"));
    let taken = partner.deliver("taken").await?;
    assert_eq!(partner.outcome(&taken).await?, completed("acknowledged_key"));
    // A name that the contract has no word for: the file is gone, and that is all that is known.
    partner.when_published(move |server, key| rename(server, key, "err"));
    let refused = partner.deliver("refused").await?;
    assert_eq!(partner.outcome(&refused).await?, unknown("acknowledged_but_absent"));
    assert_eq!(partner.looked(&refused).await?, [Looked::Open]);
    Ok(())
}
