//! What operators are advised: only what works, with the true reason first, and in words of a bounded length.

use serde_json::{Value, json};
use uuid::Uuid;
use waybill::job::evidence::{Acknowledged, Answer, AuxiliaryPut, Evidence, Receipt};
use waybill::job::status::{FailureReason, Role};
use waybill::policy::{DestinationFacts, DestinationRules, Facts, Load, State};
use waybill::store::{self, DeliveryOutcome, Finish, Release};

use crate::stage::{Attempt, Ended, Stage};

impl Stage {
    fn advised(&self, job: Uuid) -> anyhow::Result<Ended> {
        let told = self.waybill(&["explain", &job.to_string()])?;
        told.says(0, &[]);
        Ok(told)
    }

    /// A job of an attempt that was handed back with these words, after which its destination is paused.
    async fn handed_back(&self, why: &str) -> anyhow::Result<Uuid> {
        let of = self.claim(self.queued().await?).await?;
        store::pause_destination(&self.worker, self.destination, of.job).await?;
        let release = Release {
            job: of.job,
            attempt: of.attempt,
            worker: "worker-1".to_owned(),
            why: why.to_owned(),
            backoff: std::time::Duration::from_secs(30),
            max_attempts: 5,
        };
        anyhow::ensure!(store::release(&self.worker, release).await?.is_written(), "the release was refused");
        Ok(of.job)
    }

    /// A published file whose trigger was refused, and what a later look read of the partner.
    async fn without_trigger(&self, says: Option<&str>) -> anyhow::Result<Attempt> {
        let of = self.delivering().await?;
        self.intend(of).await?;
        let refused = Answer::Refused { code: Some(4), text: "the name is taken".to_owned() };
        let put = AuxiliaryPut { name: format!("contacts-{}.csv.done", of.job), trigger: true, answer: refused };
        let code = Some("trigger_not_confirmed".to_owned());
        let receipt =
            Evidence::Receipt(Receipt { auxiliary: vec![put], conclusion: code.clone(), ..Receipt::default() });
        assert!(store::append_evidence(&self.worker, of.job, of.attempt, "worker-1", &receipt).await?.is_written());
        let finish = Finish {
            job: of.job,
            attempt: of.attempt,
            outcome: DeliveryOutcome::OutcomeUnknown,
            proof: json!({ "code": code, "because": "A trigger file that was agreed with the partner is not confirmed." }),
            look_after: std::time::Duration::from_secs(10),
            acknowledgment_within: None,
        };
        assert!(store::finish_delivery(&self.worker, finish).await?.is_written());
        if let Some(says) = says {
            let says = Acknowledged {
                name: "answers/4711.ack".to_owned(),
                says: says.to_owned(),
                key: None,
                attempt: None,
                sha256: None,
            };
            let seen = Receipt { acknowledgments: vec![says], conclusion: code, ..Receipt::default() };
            assert!(
                store::append_evidence(&self.worker, of.job, of.attempt, "run-9", &Evidence::Observation(seen))
                    .await?
                    .is_written()
            );
        }
        Ok(of)
    }
}

/// Checks that none of these were said.
fn silent(told: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(!told.said.contains(part), "{part:?} is in: {}", told.said);
    }
}

/// Checks that these were said in this order.
fn in_order(told: &Ended, parts: &[&str]) {
    let mut rest = told.said.as_str();
    for part in parts {
        let (_, after) = rest.split_once(part).unwrap_or_default();
        assert!(rest.contains(part), "{part:?} is not there in: {}", told.said);
        rest = after;
    }
}

/// What policy itself says of the scope of [`Stage::queued`] where only `country` is allowed.
fn rejection(tenant: Uuid) -> anyhow::Result<Value> {
    let rules = DestinationRules { scope: Some(["country".to_owned()].into()), ..DestinationRules::default() };
    let facts = Facts {
        tenant,
        scope: &json!({ "region": "emea" }),
        starts_in: std::time::Duration::ZERO,
        destination: Some(DestinationFacts {
            tenant,
            name: "acme",
            served: true,
            enabled: true,
            state: State::Ready,
            rules: &rules,
            load: Load::default(),
        }),
        clock: waybill::policy::Clock { day: waybill::policy::Weekday::Monday, second: 0 },
        jitter: 0,
    };
    match waybill::policy::evaluate(&facts) {
        waybill::policy::Decision::Reject(rejection) => Ok(serde_json::to_value(rejection)?),
        other => anyhow::bail!("{other:?}"),
    }
}

#[tokio::test]
async fn cli_01_a_rejected_job_is_advised_only_what_works() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?;
    let rejected = store::reject(&stage.worker, job, 1, rejection(stage.tenant)?).await?;
    anyhow::ensure!(rejected.is_written(), "the rejection was refused");
    let told = stage.advised(job)?;
    let create = format!("waybill job create --tenant {} --destination {}", stage.tenant, stage.destination);
    told.says(
        0,
        &[
            "policy rejected it: The destination acme does not allow the scope key \"region\"",
            "\"country\"",
            &format!("its delivery key, key-{job}, is used up"),
            "[destination.rules]",
            &format!("{create} --scope NAME=VALUE --key ANOTHER_KEY --as YOU"),
        ],
    );
    silent(&told, &["edit the job", "waybill job edit", "waybill job replace"]);
    stage.waybill(&["show", &job.to_string()])?.says(0, &["rejected      The destination acme does not allow"]);

    // What the advice is about.
    let (id, destination) = (job.to_string(), stage.destination.to_string());
    stage.waybill(&["edit", &id, "--version", "1", "--scope", "country=DE"])?.says(4, &["NotChanged"]);
    stage.waybill(&["replace", &id, "--reason", "the rule is mended"])?.says(4, &["NotReplaceable"]);
    let create = |key: &str| stage.waybill(&["create", "--destination", &destination, "--key", key]);
    create(&format!("key-{job}"))?.says(4, &["KeyTaken"]);
    create("ANOTHER_KEY")?.says(0, &[]);
    Ok(())
}

#[tokio::test]
async fn cli_01_a_taken_key_is_named_with_the_job_that_has_it() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.delivering().await?.job;
    stage.queued().await?;
    let (key, destination) = (format!("key-{job}"), stage.destination.to_string());
    let create =
        |more: &[&str]| stage.waybill(&[&["create", "--destination", &destination, "--key", &key], more].concat());
    let look = format!("waybill job show {job} --tenant {}", stage.tenant);
    for more in [&[][..], &["--idempotency-key", "order-4711"]] {
        create(more)?.says(4, &["KeyTaken", &key, "Delivering", &look]);
        let json = create(&[more, &["--json"]].concat())?.json()?;
        assert_eq!((&json["job"], &json["status"]), (&json!(job), &json!("Delivering")), "{json}");
    }
    let listed = stage.waybill(&["list", "--key", &key, "--json"])?.json()?;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["job"], json!(job));
    stage.waybill(&["list", "--key", "nobodys"])?.says(0, &["no such jobs"]);
    stage.waybill(&["list", "--help"])?.says(0, &["waybill job list --tenant 6f1… --key "]);
    Ok(())
}

#[tokio::test]
async fn vrd_04_the_trigger_that_is_not_confirmed_is_named_with_what_a_person_can_do() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.without_trigger(Some("accepted")).await?;
    let told = stage.advised(of.job)?;
    let trigger = format!("contacts-{}.csv.done", of.job);
    let parts: [&str; 8] = [
        "Where it stands: ",
        &format!("The trigger file {trigger} was refused by the server with status 4 (the name is taken)."),
        "The partner accepted it (answers/4711.ack",
        "What may be said to the partner: ",
        &format!("We could not confirm its trigger file {trigger}."),
        "What you can do next",
        "The partner accepted it (answers/4711.ack",
        "--outcome completed",
    ];
    in_order(&told, &parts);
    silent(&told, &["Ask the partner whether the file is there"]);
    let next = stage.waybill(&["explain", &of.job.to_string(), "--json"])?.json()?;
    let first = next["next"][0]["command"].as_str().unwrap_or_default();
    assert!(first.contains("--outcome completed"), "{next}");

    let of = stage.without_trigger(None).await?;
    let told = stage.advised(of.job)?;
    let trigger = format!("contacts-{}.csv.done", of.job);
    let parts: [&str; 6] = [
        &format!("The trigger file {trigger} was refused by the server"),
        "What may be said to the partner: ",
        &format!("We could not confirm its trigger file {trigger}: please look whether you have that, too."),
        "Ask the partner whether the file is there",
        "by your own means",
        "waybill job reconcile",
    ];
    in_order(&told, &parts);
    Ok(())
}

#[tokio::test]
async fn cli_01_a_pause_names_no_cause_that_is_not_known() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let waiting = stage.queued().await?;
    let job = stage.handed_back("the database of the query \"rows\" could not be reached at db.test:5432").await?;
    let told = stage.advised(job)?;
    let stands = "the partner or a query's database was not reached, 1 time in a row; tried again in ";
    in_order(
        &told,
        &[
            "Where it stands: it waits",
            stands,
            "own last try",
            "the database of the query \"rows\" could not be reached",
        ],
    );
    silent(&told, &["could not be reached 1 time", "the destination could not be reached"]);
    let told = stage.advised(waiting)?;
    told.says(0, &[stands]);
    silent(&told, &["own last try"]);
    stage.program("destination", &["list"])?.says(0, &[stands]);
    Ok(())
}

#[tokio::test]
async fn rpl_01_a_file_that_could_not_be_built_is_not_built_by_the_same_scope() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.claim(stage.queued().await?).await?;
    let cause = "the query \"rows\" has a parameter :country that nothing binds";
    assert!(
        store::finish_failed(&stage.worker, of.job, of.attempt, FailureReason::BuildFailed, cause).await?.is_written()
    );
    let told = stage.advised(of.job)?;
    let parts = [
        "has the same scope",
        "waybill job replace",
        "With another scope",
        "another key",
        "waybill job create --tenant",
        "--scope NAME=VALUE",
    ];
    in_order(&told, &parts);
    Ok(())
}

#[tokio::test]
async fn cre_04_a_job_for_later_is_said_to_wait_for_its_time_first() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let destination = stage.destination.to_string();
    let made = stage
        .waybill(&["create", "--destination", &destination, "--not-before", "2130-01-02T03:04:05Z", "--json"])?
        .json()?;
    let job: Uuid = made["job"].as_str().unwrap_or_default().parse()?;
    let told = stage.advised(job)?;
    in_order(&told, &["Where it stands: it does not start before 2130-01-02 03:04:05Z", "--no-not-before"]);
    stage.waybill(&["show", &job.to_string()])?.says(0, &["not before    2130-01-02 03:04:05Z"]);
    stage.program("partner", &["disable", &destination, "--reason", "they move"])?.says(0, &[]);
    in_order(&stage.advised(job)?, &["it does not start before 2130-01-02 03:04:05Z", "is disabled"]);

    // A time that has passed holds nothing up.
    let past = stage
        .waybill(&["create", "--destination", &destination, "--not-before", "2020-01-02T03:04:05Z", "--json"])?
        .json()?;
    silent(&stage.advised(past["job"].as_str().unwrap_or_default().parse()?)?, &["not start before"]);
    Ok(())
}

#[tokio::test]
async fn cli_01_a_long_reason_breaks_no_table_and_stays_readable() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let why = format!("the server refused {}the end of it", "this and that, ".repeat(30));
    sqlx::query("UPDATE destinations SET attention_since = clock_timestamp(), attention_why = $2 WHERE id = $1")
        .bind(stage.destination)
        .bind(&why)
        .execute(&stage.database.pool(Role::Worker.login()).await?)
        .await?;
    let listed = stage.program("destination", &["list"])?;
    listed.says(0, &["needs attention", "the server refused this and that", "…", "the end of it"]);
    for line in listed.said.lines().filter(|line| line.contains("needs attention") && line.starts_with(' ')) {
        assert!(line.chars().count() < 220, "{line}");
    }
    let row = listed.said.lines().find(|line| line.contains("partner") && line.contains("needs attention"));
    assert!(row.is_some_and(|row| row.chars().count() < 220), "{}", listed.said);
    let json: Value = stage.program("destination", &["list", "--json"])?.json()?;
    assert!(json[0]["why"].as_str().is_some_and(|said| said.ends_with(&why)), "{json}");
    Ok(())
}

#[tokio::test]
async fn cli_01_others_words_bring_no_second_mark() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.ended(DeliveryOutcome::OutcomeUnknown).await?;
    let alert = "the answers could not be read: is the share still alive?".to_owned();
    let seen =
        Receipt { differences: vec![alert], conclusion: Some("It is Completed.".to_owned()), ..Receipt::default() };
    assert!(
        store::append_evidence(&stage.worker, of.job, of.attempt, "run-9", &Evidence::Observation(seen))
            .await?
            .is_written()
    );
    let id = of.job.to_string();
    let words = ["--cannot-upload", "it is off", "--reason", "was it lost?", "--overwrite-agreement", "mail of 3 May."];
    stage.waybill(&[&["replace", &id], &words[..]].concat())?.says(0, &["as agreed in mail of 3 May."]);
    let settle =
        ["--outcome", "not-delivered", "--reason", "they looked, nothing there.", "--evidence", "ticket 4711."];
    let settled = stage.waybill(&[&["reconcile", &id], &settle[..]].concat())?;
    let mut said = settled.said + &stage.advised(of.job)?.said;
    for job in stage.waybill(&["list", "--json"])?.json()?.as_array().into_iter().flatten() {
        said += &stage.advised(job["job"].as_str().unwrap_or_default().parse()?)?.said;
    }
    for slip in ["..", "?;", "?.", ".;", ";;"] {
        assert!(!said.contains(slip), "{slip:?} is in: {said}");
    }
    assert!(said.contains("alive? Concluded then: It is Completed."), "{said}");
    Ok(())
}
