//! PLG-04: what a plugin may do is what it was handed. Before cutoff 2 that is a look, and nothing else.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::facts::{FileFacts, Found};
use waybill::plugin::{Built, Bundle, CallError, Destination, OpenQuery, Reported};
use waybill::remote::{
    Fence, FenceRefused, Journal, Licence, Names, Reader, Sending, Session, SessionLimits, Writer, WriterParts,
};
use waybill::source::{Column, Rows, SourceError, Value};
use waybill_tests::sftp_server::{Action, Behaviour, Fault, SftpServer, When};
use waybill_tests::ssh;

use super::fixture::{Partners, SHORT_LIMITS, Table, destination, destination_of, expected, job};

const FINAL: &str = "contacts-k-1.csv";
const ROWS: u64 = 3;

/// A misbehaving destination against a server in the process.
struct Rehearsal {
    partners: Partners,
    bundle: Arc<Bundle>,
    server: SftpServer,
}

/// Records that the fence was asked; a write before that would be the host's fault.
#[derive(Default)]
struct Record {
    intended: AtomicBool,
    answered: AtomicBool,
}

impl Fence for Record {
    fn intend(&self, _: PublishForm) -> BoxFuture<'_, Result<(), FenceRefused>> {
        self.intended.store(true, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }
}

impl Journal for Record {
    fn published(&self, _: PublishForm, _: &Answer) -> BoxFuture<'_, ()> {
        self.answered.store(true, Ordering::SeqCst);
        Box::pin(async {})
    }
}

impl Rehearsal {
    async fn start(limits: &str) -> anyhow::Result<Self> {
        let server = SftpServer::start(Behaviour::default()).await?;
        let partners = Partners::new()?;
        partners.bundle("bad", "misbehaving-builder", "misbehaving-destination", limits)?;
        let toml =
            destination_of("bad", server.port(), server.host_key()).replace("user = 'waybill'", "user = 'partner'");
        assert_eq!(ssh::USER, "partner");
        partners.write("bad", "destinations.toml", toml)?;
        partners.write("bad", "password", ssh::PASSWORD)?;
        std::fs::set_permissions(partners.path().join("bad/password"), std::fs::Permissions::from_mode(0o600))?;
        let bundle = partners.load_only().await?;
        Ok(Self { partners, bundle, server })
    }

    fn destination(&self, settings: &[(&str, &str)]) -> Destination {
        destination(&self.bundle, settings, Table(ROWS))
    }

    async fn session(&self) -> anyhow::Result<Session> {
        Ok(Session::connect(&self.bundle.destinations[0].endpoint, &SessionLimits::default()).await?)
    }

    fn names(&self, destination: &Destination) -> anyhow::Result<Arc<Names>> {
        let manifest = &self.bundle.manifest;
        let attempt = job(destination).attempt.to_string();
        let names = Names::mint(&manifest.contract, Some(&manifest.names.temporary), FINAL, "k-1", &attempt)?;
        Ok(Arc::new(names))
    }

    fn reader(&self, session: &Session, destination: &Destination) -> anyhow::Result<Reader> {
        Ok(Reader::new(session.clone(), self.names(destination)?, CancellationToken::new()))
    }

    /// Builds, lists and delivers; hands back what the call said it saw, and what the host's own hand did.
    async fn deliver(
        &self,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<(Result<Found, CallError>, Sending, Arc<Record>)> {
        let (reported, sending, record) = self.report(settings).await?;
        let found = reported.map(|reported| reported.listing.map_or(Found::Absent, |listing| listing.found));
        Ok((found, sending, record))
    }

    /// The same with all that was reported.
    async fn report(
        &self,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<(Result<Reported, CallError>, Sending, Arc<Record>)> {
        let built = self.partners.build(&self.bundle, &self.destination(&[])).await?;
        self.report_on(&self.destination(settings), built).await
    }

    async fn report_on(
        &self,
        destination: &Destination,
        built: Built,
    ) -> anyhow::Result<(Result<Reported, CallError>, Sending, Arc<Record>)> {
        let job = job(destination);
        let session = self.session().await?;
        let reader = self.reader(&session, destination)?;
        let stop = CancellationToken::new();
        let before = self.bundle.baseline(destination, &job, FINAL, reader.clone(), &built.handed, &stop).await?;
        let record = Arc::new(Record::default());
        let writer = Writer::new(WriterParts {
            session,
            names: self.names(destination)?,
            file: built.file.clone(),
            licence: Licence { form: PublishForm::Link, overwrite_agreed: false, baseline_showed_file: false },
            listing_hidden: false,
            lost: tokio_util::sync::CancellationToken::new(),
            fence: Arc::<Record>::clone(&record),
            journal: Arc::<Record>::clone(&record),
        });
        let expected = FileFacts { name: FINAL.to_owned(), bytes: built.file.bytes(), sha256: built.file.sha256() };
        let reported =
            self.bundle.deliver(destination, &job, &expected, &before, reader, writer.clone(), &built.handed).await;
        let sending = writer.outcome(Duration::from_secs(10)).await;
        Ok((reported, sending, record))
    }

    fn assert_nothing_was_written(&self) {
        let wrote: Vec<_> = self.server.log().into_iter().filter(|one| one.operation.creates().is_some()).collect();
        assert!(wrote.is_empty(), "{wrote:?}");
        assert!(self.server.names_in(".").is_empty());
    }
}

#[tokio::test]
async fn plg_04_naming_listing_and_observing_write_nothing_and_reach_only_declared_names() -> anyhow::Result<()> {
    let rehearsal = Rehearsal::start("").await?;
    rehearsal.server.put("somebody-elses.csv", "not ours")?;
    let session = rehearsal.session().await?;
    let stop = CancellationToken::new();
    let expected = FileFacts { name: FINAL.to_owned(), bytes: 1, sha256: waybill::job::facts::Sha256([1; 32]) };
    for behaviour in ["well", "read-outside", "lie-receipt", "lie-acknowledgment", "flood-report"] {
        let destination = rehearsal.destination(&[("behaviour", behaviour)]);
        let job = job(&destination);
        let bundle = &rehearsal.bundle;
        assert_eq!(bundle.final_name(&destination, &job, &stop).await?, FINAL);
        let reader = rehearsal.reader(&session, &destination)?;
        if behaviour == "flood-report" {
            let error = bundle.observe(&destination, &job, &expected, None, reader).await.unwrap_err();
            assert!(matches!(error, CallError::Limit { .. }), "20 MiB of remarks: {error:?}");
        } else {
            let handed = Arc::default();
            let listing = bundle.baseline(&destination, &job, FINAL, reader.clone(), &handed, &stop).await?;
            assert_eq!(listing.found, Found::Absent, "{behaviour}");
            let reported = bundle.observe(&destination, &job, &expected, Some(&listing), reader).await?;
            let reached: Vec<_> = reported.extra.iter().filter(|(name, _)| name == "reached").collect();
            assert!(reached.is_empty(), "{behaviour} reached {reached:?}");
        }
    }
    assert_eq!(rehearsal.server.names_in("."), ["somebody-elses.csv"]);
    assert!(rehearsal.server.log().iter().all(|one| one.operation.creates().is_none()));
    Ok(())
}

#[tokio::test]
async fn plg_04_a_final_name_that_escapes_or_differs_from_the_manifest_is_refused() -> anyhow::Result<()> {
    let rehearsal = Rehearsal::start("").await?;
    let stop = CancellationToken::new();
    let long = "x".repeat(5000);
    for (behaviour, name) in [
        ("name-escapes", "../x"),
        ("name-escapes", "/etc/passwd"),
        ("name-escapes", "contacts-k-2.csv"),
        ("name-escapes", ""),
        ("name-escapes", "contacts-k-1.csv\n"),
        ("name-escapes", long.as_str()),
        ("name-unstable", ""),
    ] {
        let destination = rehearsal.destination(&[("behaviour", behaviour), ("name", name)]);
        let ended = rehearsal.bundle.final_name(&destination, &job(&destination), &stop).await;
        let error = ended.unwrap_err();
        assert!(matches!(&error, CallError::Broke { what } if what.len() < 2000), "{behaviour} {name:?}: {error:?}");
    }
    rehearsal.assert_nothing_was_written();
    Ok(())
}

#[tokio::test]
async fn plg_04_delivery_writes_only_what_was_declared_and_in_order() -> anyhow::Result<()> {
    for (behaviour, whole) in [
        ("well", true),
        ("publish-without-send", false),
        ("publish-twice", true),
        ("send-twice", false),
        ("publish-over", false),
        ("put-before-send", false),
        ("put-undeclared", true),
        ("put-final-name", false),
        ("never-send", false),
    ] {
        let rehearsal = Rehearsal::start("").await?;
        let (found, sending, record) = rehearsal.deliver(&[("behaviour", behaviour)]).await?;
        let there = rehearsal.server.read(FINAL);
        assert_eq!(there, whole.then(|| expected(ROWS)), "{behaviour}: {found:?}");
        assert_eq!(rehearsal.server.times_written(FINAL), usize::from(whole), "{behaviour}");
        assert_eq!(sending.publish.is_some(), whole, "{behaviour}: {sending:?}");
        assert_eq!(
            record.intended.load(Ordering::SeqCst),
            whole,
            "{behaviour}: the fence comes before the publish only"
        );
        assert_eq!(record.answered.load(Ordering::SeqCst), whole, "{behaviour}");
        assert!(rehearsal.server.read("undeclared.txt").is_none());
        match behaviour {
            "well" => assert!(matches!(found?, Found::Present(_))),
            "never-send" => assert_eq!(found?, Found::Absent),
            _ => assert!(matches!(found, Err(CallError::Failed { .. })), "{behaviour}: {found:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn plg_08_what_a_partner_answers_is_kept_without_what_the_builder_was_handed() -> anyhow::Result<()> {
    const ANSWER: &str = "they say: the third row, contact 2, is wrong";
    const KEPT: &str = "they say: the third row, (a value), is wrong";
    let rehearsal = Rehearsal::start("").await?;
    let (failed, ..) = rehearsal.report(&[("behaviour", "fail"), ("message", ANSWER)]).await?;
    assert!(matches!(&failed, Err(CallError::Failed { text, .. }) if text == KEPT), "{failed:?}");
    let (trapped, ..) = rehearsal.report(&[("behaviour", "panic"), ("message", ANSWER)]).await?;
    assert!(matches!(&trapped, Err(CallError::Trapped { message }) if message.contains(KEPT)), "{trapped:?}");
    let (reported, ..) = rehearsal.report(&[("behaviour", "dump"), ("message", ANSWER)]).await?;
    let remarks = format!("{:?}", reported?.extra);
    assert!(remarks.contains(KEPT) && !remarks.contains("contact 2"), "{remarks}");
    Ok(())
}

#[tokio::test]
async fn plg_08_every_text_of_a_report_is_kept_without_what_the_builder_was_handed() -> anyhow::Result<()> {
    const SAID: &str = "contact 2";
    const KEPT: &str = "(a value)";
    let rehearsal = Rehearsal::start("").await?;
    let quoting = [("behaviour", "quote"), ("message", SAID)];
    let (reported, ..) = rehearsal.report(&quoting).await?;
    let told = serde_json::to_value(reported?)?;
    let listing =
        json!({ "at": KEPT, "found": "present", "name": KEPT, "kind": KEPT, "bytes": null, "modified": null });
    let acknowledgment = json!({
        "name": KEPT, "delivery_key": KEPT, "attempt": KEPT, "says": KEPT, "extra": [[KEPT, KEPT]],
    });
    let whole = json!({
        "listing": listing, "acknowledgment": acknowledgment, "auxiliary": [KEPT], "extra": [[KEPT, KEPT]],
    });
    assert_eq!(told, whole);

    let destination = rehearsal.destination(&quoting);
    let built = rehearsal.partners.build(&rehearsal.bundle, &rehearsal.destination(&[])).await?;
    let reader = rehearsal.reader(&rehearsal.session().await?, &destination)?;
    let stop = CancellationToken::new();
    let listing =
        rehearsal.bundle.baseline(&destination, &job(&destination), FINAL, reader, &built.handed, &stop).await?;
    assert_eq!((listing.at.as_str(), listing.found), (FINAL, Found::NotVisible { why: KEPT.to_owned() }));
    Ok(())
}

/// A row that holds what the host itself says.
struct OneRow(&'static str);

impl OpenQuery for OneRow {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = vec![Column { name: "name".to_owned(), of: "text".to_owned() }];
        let rows = Listed { columns, row: Some(vec![Value::Text(self.0.to_owned())]) };
        Box::pin(async move { Ok(Box::new(rows) as Box<dyn Rows>) })
    }
}

struct Listed {
    columns: Vec<Column>,
    row: Option<Vec<Value>>,
}

impl Rows for Listed {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, _: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let rows = self.row.take().into_iter().collect();
        Box::pin(async move { Ok(rows) })
    }
}

#[tokio::test]
async fn plg_08_a_name_of_the_hosts_own_stays_exact_although_a_row_holds_a_part_of_it() -> anyhow::Result<()> {
    for (row, message) in [(FINAL, FINAL), ("contacts", FINAL), ("accepted", "accepted")] {
        let rehearsal = Rehearsal::start("").await?;
        let destination = rehearsal.destination(&[("behaviour", "quote"), ("message", message)]);
        let one = super::fixture::destination(&rehearsal.bundle, &[], OneRow(row));
        let built = rehearsal.partners.build(&rehearsal.bundle, &one).await?;
        let reported = rehearsal.report_on(&destination, built).await?.0?;
        assert_eq!(reported.listing.map(|listing| listing.at).as_deref(), Some(message), "{row}");
        assert_eq!(reported.acknowledgment.map(|told| told.says).as_deref(), Some(message), "{row}");
    }
    Ok(())
}

#[tokio::test]
async fn del_10_a_plugin_is_told_the_names_of_the_files_beside_its_own() -> anyhow::Result<()> {
    let rehearsal = Rehearsal::start(
        "[[contract.auxiliary]]\nname = '{final}.done'\n[[contract.auxiliary]]\nname = 'sums/{key}.sum'\n",
    )
    .await?;
    rehearsal.server.make_directory("sums")?;
    let told = ["contacts-k-1.csv.done", "sums/k-1.sum"];
    let (_, sending, _) = rehearsal.deliver(&[("behaviour", "script"), ("script", "send,publish,put-told")]).await?;
    let put: Vec<&str> = sending.put.iter().map(|put| put.name.as_str()).collect();
    assert_eq!(put, told, "in the manifest's order");

    let destination = rehearsal.destination(&[("behaviour", "tell-auxiliary")]);
    let expected = FileFacts { name: FINAL.to_owned(), bytes: 1, sha256: waybill::job::facts::Sha256([1; 32]) };
    let session = rehearsal.session().await?;
    let reader = rehearsal.reader(&session, &destination)?;
    let reported = rehearsal.bundle.observe(&destination, &job(&destination), &expected, None, reader).await?;
    let reported: Vec<&str> = reported.extra.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(reported, told);
    Ok(())
}

#[tokio::test]
async fn plg_03_a_delivery_that_ends_badly_leaves_the_hosts_own_record() -> anyhow::Result<()> {
    for (behaviour, published, trapped) in [
        ("panic", false, true),
        ("panic-after-send", false, true),
        ("panic-after-publish", true, true),
        ("loop", false, false),
        ("loop-after-send", false, false),
        ("loop-after-publish", true, false),
    ] {
        let rehearsal = Rehearsal::start("[limits]\ndeliver_seconds = 2\n").await?;
        let (found, sending, record) = rehearsal.deliver(&[("behaviour", behaviour)]).await?;
        let error = found.unwrap_err();
        let classified = if trapped {
            matches!(error, CallError::Trapped { .. })
        } else {
            matches!(error, CallError::TimedOut { seconds: 2, limit: "deliver_seconds" })
        };
        assert!(classified, "{behaviour}: {error:?}");
        assert_eq!(sending.publish.is_some(), published, "{behaviour}");
        assert_eq!(record.intended.load(Ordering::SeqCst), published, "{behaviour}");
        assert_eq!(rehearsal.server.read(FINAL).is_some(), published, "{behaviour}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_03_a_server_that_does_not_answer_is_bounded_and_a_stop_request_ends_the_wait() -> anyhow::Result<()> {
    let rehearsal = Rehearsal::start(SHORT_LIMITS).await?;
    let destination = rehearsal.destination(&[]);
    let job = job(&destination);
    let session = rehearsal.session().await?;
    rehearsal.server.always(When::Before, Action::Stat, Fault::Hang);
    let reader = rehearsal.reader(&session, &destination)?;
    let (stop, handed) = (CancellationToken::new(), Arc::default());
    let ended = rehearsal.bundle.baseline(&destination, &job, FINAL, reader.clone(), &handed, &stop).await;
    assert_eq!(ended, Err(CallError::TimedOut { seconds: 1, limit: "call_seconds" }));
    stop.cancel();
    let ended = rehearsal.bundle.baseline(&destination, &job, FINAL, reader, &handed, &stop).await;
    assert_eq!(ended, Err(CallError::Stopped));
    rehearsal.assert_nothing_was_written();
    Ok(())
}
