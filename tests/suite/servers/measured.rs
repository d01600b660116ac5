//! One server measured: what `waybill partner check` shows of it, and how deliveries by a worker end, by the server's own
//! files.

use std::collections::BTreeSet;
use std::path::Path;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::job::evidence::{Evidence, PublishForm};
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::remote::{
    self, About, Check, ScratchNames, ServerFacts, Session, SessionLimits, Shown, Standing, choose_form, findings,
};
use waybill_tests::house::PlannedQuery;
use waybill_tests::{Database, House, Plan, Reach, SftpServer};

use crate::remotes::Place;

/// The files of a server, seen from its own side.
pub enum Files<'a> {
    OnDisk(&'a Path),
    InProcess(&'a SftpServer),
    At(&'a dyn Place),
    /// It keeps none, whatever it says.
    None,
}

impl Files<'_> {
    fn names(&self) -> anyhow::Result<BTreeSet<String>> {
        match self {
            Self::OnDisk(directory) => std::fs::read_dir(directory)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect(),
            Self::InProcess(server) => Ok(server.names_in("/").into_iter().collect()),
            Self::At(place) => Ok(place.names()?.into_iter().collect()),
            Self::None => Ok(BTreeSet::new()),
        }
    }

    fn read(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::OnDisk(directory) => Ok(std::fs::read(directory.join(name))?),
            Self::InProcess(server) => {
                server.read(name).ok_or_else(|| anyhow::anyhow!("the server has no file {name}"))
            }
            Self::At(place) => place.read(name)?.ok_or_else(|| anyhow::anyhow!("there is no file {name}")),
            Self::None => anyhow::bail!("the server keeps no file"),
        }
    }

    /// What somebody else puts there. False: nobody can.
    fn put(&self, name: &str, bytes: &[u8]) -> anyhow::Result<bool> {
        match self {
            Self::OnDisk(directory) => std::fs::write(directory.join(name), bytes)?,
            Self::InProcess(server) => server.put(name, bytes)?,
            Self::At(place) => place.write(name, bytes)?,
            Self::None => return Ok(false),
        }
        Ok(true)
    }
}

/// The rows of a server, or of a store, in the two tables of `docs/servers.md` for its kind.
pub struct Measured {
    /// What it did, word for word the same wherever it is measured.
    pub behaviour: Vec<String>,
    /// What it announced: its name and its identification string, which names a version.
    pub announced: Vec<String>,
}

const SOMEBODY_ELSES: &[u8] = b"somebody else's file";

/// Three megabytes: more than one window of an SSH channel, in writes that are answered while others are on their way.
async fn plan(contract: &str) -> anyhow::Result<(Plan, Database)> {
    let data = Database::fresh().await?;
    let sql = "select n as id, repeat(md5(n::text), 32) as name from generate_series(1, 3000) as n where :tenant::uuid is not null";
    let query = Some(PlannedQuery { url: data.url(), sql });
    let manifest = format!("[names]\nfinal = 'contacts-{{key}}.csv'\n[contract]\n{contract}\n");
    Ok((Plan { manifest, query, ..Plan::default() }, data))
}

/// Where nothing but an exclusive create is safe: the partner acts on the trigger alone.
async fn by_exclusive_create() -> anyhow::Result<(Plan, Database)> {
    let contract = "exclusive_create = true\n[[contract.auxiliary]]\nname = '{final}.done'\ntrigger = true";
    let (plan, data) = plan(contract).await?;
    let destination =
        "settings = { name = 'contacts-{key}.csv', query = 'rows', done_file = '{final}.done' }\n".to_owned();
    Ok((Plan { destination, ..plan }, data))
}

/// What `waybill partner check` shows of a destination.
struct Tried {
    facts: ServerFacts,
    check: Check,
    form: Option<PublishForm>,
}

async fn tried(house: &House, files: &Files<'_>) -> anyhow::Result<Tried> {
    let destination = house.bundle.destinations.first().ok_or_else(|| anyhow::anyhow!("no destination"))?;
    let session = Session::connect(&destination.endpoint, &SessionLimits::default()).await?;
    let facts = session.server().clone();
    let manifest = &house.bundle.manifest;
    let scratch = ScratchNames::mint(&manifest.names.temporary, "check.csv")?;
    let check = remote::check(&session, &scratch, &BTreeSet::new(), &CancellationToken::new()).await?;
    session.close().await;
    assert_eq!(files.names()?, BTreeSet::new(), "{}: the check left something behind", facts.banner);
    let proof = &check.proof;
    let form = choose_form(proof, &manifest.contract, false);
    let about =
        About { banner: &facts.banner, proof, seen: Some(&check.seen), contract: &manifest.contract, one_folder: true };
    let against: Vec<String> = findings(&about)
        .into_iter()
        .filter(|finding| finding.about == "publish" && finding.stands == Standing::Contradicts)
        .map(|finding| finding.sentence)
        .collect();
    if form.is_none() {
        let sentence = against.first().map(String::as_str).unwrap_or_default();
        assert!(sentence.contains("nothing here publishes without a risk"), "{}: {against:?}", facts.banner);
    }
    Ok(Tried { facts, check, form })
}

/// Tries the server as `waybill partner check` does, then has a worker deliver to it.
pub async fn measure(server: &str, reach: &Reach, files: &Files<'_>) -> anyhow::Result<Measured> {
    let (plan, _data) = plan("one_name_space = true\nmay_remove_temporaries = true").await?;
    let house = House::before(reach, plan).await?;
    let Tried { facts, check, form } = tried(&house, files).await?;
    let proof = &check.proof;
    let ended = delivered(&house, files, form).await?;
    let exclusively = if form.is_some() {
        "not needed".to_owned()
    } else {
        let (plan, _data) = by_exclusive_create().await?;
        let form = proof.create_refuses.shown && proof.size_after_close.shown;
        delivered(&House::before(reach, plan).await?, files, form.then_some(PublishForm::ExclusiveCreate)).await?
    };

    let offers: Vec<&str> = ["hardlink@openssh.com", "posix-rename@openssh.com", "fsync@openssh.com"]
        .into_iter()
        .filter(|extension| facts.extensions.contains_key(*extension))
        .map(|extension| extension.trim_end_matches("@openssh.com"))
        .collect();
    let behaviour = [
        server.to_owned(),
        if offers.is_empty() { "none".to_owned() } else { offers.join(", ") },
        format!("{}; {}", made(&proof.link_creates), refusal(&proof.link_refuses, false)),
        format!("{}; {}", made(&proof.rename_moves), refusal(&proof.rename_refuses, proof.rename_replaces.shown)),
        replacing(&proof.posix_rename_replaces),
        refusal(&proof.create_refuses, false),
        read_back(&check),
        form.map_or("none", in_words).to_owned(),
        ended,
        exclusively,
    ];
    Ok(Measured { behaviour: behaviour.into(), announced: vec![server.to_owned(), facts.banner] })
}

/// The same of an object store, which has one form or none.
pub async fn measure_store(store: &str, place: &dyn Place) -> anyhow::Result<Measured> {
    let (plan, _data) = plan("").await?;
    let (house, files) = (House::at(&place.lines(), plan).await?, Files::At(place));
    let Tried { facts, check, form } = tried(&house, &files).await?;
    let ended = delivered(&house, &files, form).await?;
    let proof = &check.proof;
    let behaviour = [
        store.to_owned(),
        format!("{}; {}", made(&proof.size_after_close), refusal(&proof.create_refuses, false)),
        read_back(&check),
        form.map_or("none", in_words).to_owned(),
        ended,
    ];
    Ok(Measured { behaviour: behaviour.into(), announced: vec![store.to_owned(), facts.banner] })
}

/// One delivery to a free name and one to a taken name; how the first ended. The form is the one that was shown.
async fn delivered(house: &House, files: &Files<'_>, form: Option<PublishForm>) -> anyhow::Result<String> {
    let there_before = files.names()?;
    let free = house.create().await?;
    // Without a form the destination waits for a person after the first, and a second job would never end.
    let taken = if form.is_some() { Some(house.create().await?) } else { None };
    let occupied = match taken {
        Some(taken) => files.put(&House::final_name(taken), SOMEBODY_ELSES)?.then_some(taken),
        None => None,
    };
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = if form.is_some() {
        house.until_ended(free).await?
    } else {
        house.until_attention().await?;
        house.until(free, Status::Queued).await?
    };
    if let Some(taken) = occupied {
        let other = house.until_ended(taken).await?;
        assert_eq!((other.status, other.failure_reason), (Status::Failed, Some(FailureReason::FinalNameOccupied)));
        assert_eq!(files.read(&House::final_name(taken))?, SOMEBODY_ELSES, "an existing file was touched");
    }
    let taken = taken.map(House::final_name);
    let new: BTreeSet<String> =
        files.names()?.difference(&there_before).filter(|name| Some(*name) != taken.as_ref()).cloned().collect();
    let Some(form) = form else {
        assert_eq!(job.delivery_authorized_at, None, "it was authorized");
        assert_eq!(new, BTreeSet::new(), "something was left at the server");
        let why = house.until_attention().await?;
        assert!(why.contains("nothing here publishes without a risk"), "the refusal has no sentence: {why:?}");
        return Ok("refused; nothing was sent".to_owned());
    };
    let detail = finished(house, free).await?;
    assert_eq!(job.status, Status::Completed, "{detail} {:?}", house.events(free).await?);
    let name = House::final_name(free);
    let mut expected = BTreeSet::from([name.clone()]);
    if form == PublishForm::ExclusiveCreate {
        expected.insert(format!("{name}.done"));
    }
    assert_eq!(new, expected, "the final name, and nothing beside it");
    let file = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    let there = files.read(&name)?;
    assert_eq!(there.len() as u64, file.bytes);
    assert_eq!(<[u8; 32]>::from(Sha256::digest(&there)), file.sha256.0, "the server has other bytes");
    let published: Vec<PublishForm> = house
        .events(free)
        .await?
        .into_iter()
        .filter(|event| event.kind == EventKind::DeliveryEvidence)
        .filter_map(|event| serde_json::from_value(event.detail?).ok())
        .filter_map(|one| match one {
            Evidence::Publish { form, .. } => Some(form),
            _ => None,
        })
        .collect();
    assert_eq!(published, [form], "published otherwise than it was shown");
    Ok(format!("{} by {}", job.status, detail["proof"]["code"].as_str().unwrap_or("nothing").replace('_', " ")))
}

/// What the worker's last write says.
async fn finished(house: &House, job: Uuid) -> anyhow::Result<serde_json::Value> {
    let events = house.events(job).await?;
    let last = events.into_iter().rev().find(|event| event.kind == EventKind::Finished);
    Ok(last.and_then(|event| event.detail).unwrap_or_default())
}

fn read_back(check: &Check) -> String {
    if check.seen.reads_back.shown { "whole" } else { "no" }.to_owned()
}

fn in_words(form: PublishForm) -> &'static str {
    match form {
        PublishForm::Link => "link",
        PublishForm::Rename => "rename",
        PublishForm::ExclusiveCreate => "exclusive create",
        PublishForm::PosixRename => "posix-rename",
        PublishForm::RenameOver => "rename over",
        PublishForm::CreateWhole => "create whole",
    }
}

/// What became of a request for a free name.
fn made(shown: &Shown) -> String {
    match shown.code {
        _ if shown.shown => "made".to_owned(),
        Some(code) => format!("refused ({code})"),
        None if shown.seen.starts_with("answered yes") => "yes, and nothing made".to_owned(),
        None => "not offered".to_owned(),
    }
}

/// What became of a request for an existing name.
fn refusal(shown: &Shown, replaced: bool) -> String {
    match shown.code {
        _ if replaced => "replaces".to_owned(),
        Some(code) if shown.shown => format!("refuses ({code})"),
        Some(code) => format!("refuses ({code}), and harms"),
        None if shown.seen.starts_with("answered yes") => "not refused".to_owned(),
        None => "–".to_owned(),
    }
}

/// What became of a request to replace.
fn replacing(shown: &Shown) -> String {
    match shown.code {
        _ if shown.shown => "replaces".to_owned(),
        Some(code) => format!("refused ({code})"),
        None if shown.seen.starts_with("answered yes") => "yes, and nothing replaced".to_owned(),
        None => "not offered".to_owned(),
    }
}
