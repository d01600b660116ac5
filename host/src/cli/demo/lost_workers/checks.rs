//! What is said of the second act at its end, and how each of it was found out: from the partner's files as OpenSSH's client
//! fetches them, from the log of the partner's server, from the customers' rows as PostgreSQL computes them, and from the
//! host's record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::cast::{Scene, temporary};
use super::scenes::{GRACE, TICKET};
use super::{AT_PARTNER, Act, alder};
use crate::cli::demo::seen::publishes;
use crate::cli::demo::table::Recounted;
use crate::cli::demo::verify::{Claims, Row, own, walk};
use crate::cli::demo::watch;
use crate::cli::explain;
use crate::job::model::Job;
use crate::job::status::{EventKind, FailureReason, Status};
use crate::store::AttemptEvent;

/// The second act, checked.
pub(in crate::cli::demo) struct Proven {
    pub rows: Vec<Row>,
    pub recounted: Vec<Recounted>,
    /// About the partner as a whole.
    pub partner: Claims,
    /// Files at the partner.
    pub files: usize,
    /// Those of them that have an attempt's temporary name.
    pub left: usize,
    /// Jobs that lost a worker.
    pub lost: usize,
    /// Jobs that a person had to decide about.
    pub persons: usize,
}

/// One job, as everybody tells it.
struct Seen<'a> {
    scene: Scene,
    job: Job,
    events: Vec<AttemptEvent>,
    log: &'a str,
    /// What was fetched under its final name.
    file: Option<Vec<u8>>,
}

pub(super) async fn prove(act: &Act<'_>, jobs: &BTreeMap<Scene, Uuid>, fetched: &Path) -> anyhow::Result<Proven> {
    act.server.mirror(&[AT_PARTNER], fetched).await?;
    let log = act.server.operations()?;
    let root = fetched.join(AT_PARTNER);
    let mut found = Vec::new();
    walk(&root, &root, &mut found)?;
    let mut proven = Proven {
        rows: Vec::new(),
        recounted: Vec::new(),
        partner: Claims::default(),
        files: found.len(),
        left: 0,
        lost: 0,
        persons: 0,
    };
    let mut temporaries = BTreeSet::new();
    for scene in Scene::ALL {
        let id = *jobs.get(&scene).with_context(|| format!("no job is one of which {scene}"))?;
        let file = std::fs::read(root.join(scene.final_name())).ok();
        let seen = Seen { scene, job: act.job(id).await?, events: act.events(id).await?, log: &log, file };
        temporaries.extend(seen.events.iter().map(|event| temporary(event.attempt)));
        proven.persons += usize::from(seen.needed_a_person());
        proven.lost += usize::from(seen.lost_a_worker());
        proven.rows.push(row(act, &seen).await?);
        let record = explain::Record::read(&act.operator.reader, seen.job.clone()).await?;
        let (job, case, state) = (scene.key(), scene.to_string(), watch::state(&seen.job));
        proven.recounted.push(Recounted { job, case, state, told: record.told() });
    }
    let finals: BTreeSet<String> =
        Scene::ALL.into_iter().filter(|scene| scene.arrives()).map(Scene::final_name).collect();
    let (named, left): (BTreeSet<String>, BTreeSet<String>) = found.into_iter().partition(|name| !name.contains("/."));
    proven.partner.claim(named == finals, || format!("at kestrel lies {named:?}, and not {finals:?}"));
    proven.partner.claim(left.is_subset(&temporaries), || {
        format!("at kestrel lies {left:?}, which is no temporary name of an attempt")
    });
    proven.left = left.len();
    for scene in Scene::CREATED {
        let (name, most) = (scene.final_name(), publishes(&log, &at(&scene.final_name())));
        proven.partner.claim(most <= 1, || format!("kestrel's log shows {most} publishes of {name}"));
    }
    Ok(proven)
}

async fn row(act: &Act<'_>, seen: &Seen<'_>) -> anyhow::Result<Row> {
    let Seen { scene, job, .. } = seen;
    let mut row = Row::begin(scene.key(), scene.to_string(), job);
    let wanted = usize::from(scene.arrives() || *scene == Scene::Called);
    let published = seen.publishes_of_its_attempts();
    row.claims.claim(published == wanted, || {
        format!("kestrel's log shows {published} publishes by attempts of {}, and not {wanted}", row.job)
    });
    if scene.arrives() {
        arrived(act, seen, &mut row).await?;
    }
    let (holds, told) = seen.went_as_told();
    row.claims.claim(holds, || {
        let kinds: Vec<&str> = seen.events.iter().map(|event| event.kind.as_str()).collect();
        let (key, state) = (&row.job, &row.state);
        format!("the job {key} was to be one of which {scene}; it is {state}, with the events {kinds:?}")
    });
    row.evidence = match (&row.sha256, row.claims.wrong.is_empty()) {
        (_, false) => String::from("WRONG: see the end"),
        (None, true) => told.to_owned(),
        (Some(sha256), true) => format!("{}…  {told}", sha256.get(..12).unwrap_or_default()),
    };
    Ok(row)
}

async fn arrived(act: &Act<'_>, seen: &Seen<'_>, row: &mut Row) -> anyhow::Result<()> {
    let (scene, key) = (seen.scene, &row.job);
    let Some(bytes) = &seen.file else {
        row.claims.claim(false, || format!("the partner has no file of the job {key}"));
        return Ok(());
    };
    let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes));
    let expected = seen.job.expected.as_ref();
    row.claims.claim(expected.is_some_and(|file| file.sha256.to_string() == sha256), || {
        format!(
            "the file that was fetched for {key} (SHA-256 {sha256}) is not the one that was authorized: {expected:?}"
        )
    });
    let script =
        if scene == Scene::Building { include_str!("../consents.sql") } else { include_str!("../northwind.sql") };
    let own = own(act.crm, script, alder().id, scene.country()).await?;
    row.claims.claim(own.sha256 == sha256 && own.bytes == bytes.len(), || {
        format!(
            "PostgreSQL makes {} bytes with SHA-256 {} for {key}, and the partner has {} with {sha256}",
            own.bytes,
            own.sha256,
            bytes.len()
        )
    });
    (row.file, row.bytes, row.rows, row.sha256) =
        (Some(scene.final_name()), Some(bytes.len()), Some(own.rows), Some(sha256));
    Ok(())
}

impl Seen<'_> {
    /// Requests in the server's log that gave the final name to a file of one of this job's attempts.
    fn publishes_of_its_attempts(&self) -> usize {
        let attempts: BTreeSet<String> = self.events.iter().map(|event| event.attempt.to_string()).collect();
        let of_ours = self.log.lines().filter(|line| attempts.iter().any(|attempt| line.contains(attempt)));
        of_ours.map(|line| publishes(line, &at(&self.scene.final_name()))).sum()
    }

    fn needed_a_person(&self) -> bool {
        let by_hand = |event: &AttemptEvent| {
            event.kind == EventKind::Corrected
                || event.kind == EventKind::Reconciled
                    && !event.observed_by.as_ref().is_some_and(|by| by.starts_with("reconciler "))
        };
        self.job.replaces.is_some() || self.events.iter().any(by_hand)
    }

    fn lost_a_worker(&self) -> bool {
        self.events
            .iter()
            .any(|event| matches!(event.kind, EventKind::RequeuedByRecovery | EventKind::ResolvedByRecovery))
    }

    /// Whether it went as its scene says, and what is worth saying of it.
    fn went_as_told(&self) -> (bool, &'static str) {
        let (job, events) = (&self.job, &self.events);
        let count = |kind: EventKind| events.iter().filter(|event| event.kind == kind).count();
        let has = |kind: EventKind| count(kind) == 1;
        let none = |kind: EventKind| count(kind) == 0;
        let text = |kind: EventKind, key: &str| {
            let event = events.iter().find(|event| event.kind == kind)?;
            event.detail.as_ref()?.get(key)?.as_str()
        };
        let completed = job.status == Status::Completed;
        let not_delivered = job.failure_reason == Some(FailureReason::NotDelivered);
        // Taken over as unknown, and settled later by evidence alone.
        let settled = text(EventKind::ResolvedByRecovery, "outcome") == Some("OutcomeUnknown")
            && has(EventKind::Reconciled)
            && none(EventKind::Finished)
            && job.attempt_count == 1
            && !self.needed_a_person();
        match self.scene {
            Scene::Building => {
                let workers: BTreeSet<&str> = events.iter().filter_map(|event| event.worker.as_deref()).collect();
                let holds = completed
                    && job.attempt_count == 2
                    && has(EventKind::RequeuedByRecovery)
                    && has(EventKind::DeliveryAuthorized)
                    && workers.len() == 2;
                (holds, "requeued by recovery; attempt 2, by another worker")
            }
            Scene::Uploading => {
                let holds = not_delivered && settled && none(EventKind::PublishIntended) && job.expected.is_some();
                (holds, "unknown at first; no publish fence, so it never published")
            }
            Scene::Replacement => {
                let holds = completed && job.replaces.is_some() && job.created_by == GRACE && has(EventKind::Finished);
                (holds, "a person's decision, with a reason")
            }
            Scene::Published => {
                let holds = completed && settled && has(EventKind::PublishIntended);
                (holds, "unknown at first; the file was found")
            }
            Scene::Paused => {
                let holds = not_delivered && settled && none(EventKind::PublishIntended) && self.late_evidence();
                (holds, "taken over; its late worker published nothing, and recorded what it did")
            }
            Scene::Called => {
                let by = events.iter().find(|event| event.kind == EventKind::Corrected);
                let by = by.and_then(|event| event.observed_by.as_deref());
                let evidence = text(EventKind::Corrected, "evidence_ref");
                let holds = not_delivered
                    && has(EventKind::Finished)
                    && (by, evidence) == (Some(GRACE), Some(TICKET))
                    && self.file.is_none();
                (holds, "was Completed; corrected by a named person")
            }
        }
    }

    /// The worker that lost the job has recorded what it did, after it was taken over.
    fn late_evidence(&self) -> bool {
        let worker = self.events.iter().find_map(|event| event.worker.as_ref());
        let after = self.events.iter().skip_while(|event| event.kind != EventKind::ResolvedByRecovery);
        after.into_iter().any(|event| {
            event.kind == EventKind::DeliveryEvidence && worker.is_some() && event.observed_by.as_ref() == worker
        })
    }
}

/// From where an SFTP session starts.
fn at(name: &str) -> String {
    format!("{AT_PARTNER}/{name}")
}
