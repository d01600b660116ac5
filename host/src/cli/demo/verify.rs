//! What is said at the end, and how each of it was found out.
//!
//! Three witnesses that do not know each other: the partner's server, asked through OpenSSH's own client and by its own log;
//! PostgreSQL, which computes from the customers' rows what each file must be; and the host's record. A statement is made
//! where they agree. What does not hold is said in a sentence, and the demo then fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::jobs::{self, Case, Planned};
use super::partners::{Servers, Site};
use super::psql::Psql;
use super::scenes::Operator;
use super::seen::{Seen, went_as_told};
use super::watch;
use crate::job::model::Job;
use crate::job::status::Status;
use crate::store;

/// Of files that somebody else has put at a partner.
pub(super) const FOREIGN: &[u8] = b"Not from Waybill: somebody else's file under the same name.\n";

/// One job's line in the table.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub job: String,
    pub id: String,
    pub case: String,
    pub state: String,
    pub attempts: i32,
    pub file: Option<String>,
    pub bytes: Option<usize>,
    pub rows: Option<u64>,
    /// Of what OpenSSH's client fetched.
    pub sha256: Option<String>,
    pub evidence: String,
    #[serde(skip)]
    pub claims: Claims,
}

impl Row {
    /// A job as it stands, with nothing found at the partner yet.
    pub fn begin(key: String, case: String, job: &Job) -> Self {
        Self {
            job: key,
            id: job.id.to_string(),
            case,
            state: watch::state(job),
            attempts: job.attempt_count,
            file: None,
            bytes: None,
            rows: None,
            sha256: None,
            evidence: String::new(),
            claims: Claims::default(),
        }
    }
}

/// Statements about one thing, and those that do not hold.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub made: usize,
    pub wrong: Vec<String>,
}

impl Claims {
    pub fn claim(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.made += 1;
        if !holds {
            self.wrong.push(otherwise());
        }
    }
}

/// Where to ask.
pub(super) struct Witnesses<'a> {
    pub servers: &'a Servers,
    pub crm: &'a Psql,
    pub operator: &'a Operator,
    /// Where `fetch` puts what lies at the partners.
    pub fetched: PathBuf,
}

/// Files that PostgreSQL computes at the same time.
const AT_ONCE: usize = 2;

impl Witnesses<'_> {
    /// Fetches everything that lies at the partners, with OpenSSH's own client.
    pub async fn fetch(&self, jobs: &[Planned]) -> anyhow::Result<()> {
        let site = |site: Site| async move {
            let there = jobs.iter().filter(|job| job.place.site == site).map(|job| job.place.directory.as_str());
            let directories: Vec<&str> = there.collect::<BTreeSet<_>>().into_iter().collect();
            self.servers.at(site).mirror(&directories, &self.mirror(site)).await
        };
        tokio::try_join!(site(Site::Northwind), site(Site::Meridian), site(Site::West))?;
        Ok(())
    }

    /// Every job, in the order of the plan.
    pub async fn ask(&self, jobs: &[Planned]) -> anyhow::Result<Vec<Row>> {
        futures::stream::iter(jobs).map(|job| self.row(job)).buffered(AT_ONCE).try_collect().await
    }

    async fn row(&self, planned: &Planned) -> anyhow::Result<Row> {
        let job = self.operator.job(planned).await?;
        let seen = Seen {
            final_name: planned.final_name(&jobs::day(job.created_at)),
            events: store::events_of(&self.operator.reader, job.id).await?,
            cancellations: store::cancellations_of(&self.operator.reader, job.tenant, job.id).await?,
            log: self.servers.at(planned.place.site).operations()?,
        };
        let mut row = Row::begin(planned.key.clone(), planned.case.to_string(), &job);
        if planned.case.arrives() {
            self.arrived(planned, &job, &seen, &mut row).await?;
        } else {
            self.stayed(planned, &job, &seen, &mut row)?;
        }
        went_as_told(planned, &job, &seen, &mut row);
        Ok(row)
    }

    /// A file that is to be there.
    async fn arrived(&self, planned: &Planned, job: &Job, seen: &Seen, row: &mut Row) -> anyhow::Result<()> {
        let claims = &mut row.claims;
        claims.claim(job.status == Status::Completed, || {
            format!("the job {} is {} and not Completed", planned.key, job.status)
        });
        let Some(bytes) = self.fetched(planned, &seen.final_name)? else {
            claims.claim(false, || format!("the partner has no file {} of the job {}", seen.final_name, planned.key));
            return Ok(());
        };
        let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
        let recorded = job.expected.as_ref();
        claims.claim(recorded.is_some_and(|file| file.name == seen.final_name && file.sha256.to_string() == sha256 && usize::try_from(file.bytes) == Ok(bytes.len())), || {
            format!("the file that was fetched for {} ({} bytes, SHA-256 {sha256}) is not the one that was authorized: {recorded:?}", planned.key, bytes.len())
        });
        let own = self.own(planned).await?;
        claims.claim(own.sha256 == sha256 && own.bytes == bytes.len(), || {
            format!("PostgreSQL makes {} rows, {} bytes and SHA-256 {} of the contacts for {}, and the partner has {} bytes with {sha256}", own.rows, own.bytes, own.sha256, planned.key, bytes.len())
        });
        let beside = planned.beside(&seen.final_name);
        let wanted = match planned.place.partner {
            "northwind" => String::new(),
            _ => format!("{sha256}  {}\n", seen.final_name.rsplit('/').next().unwrap_or_default()),
        };
        let found = self.fetched(planned, &beside)?;
        claims.claim(found.as_deref() == Some(wanted.as_bytes()), || {
            format!("{beside} beside the file of {} is not as agreed", planned.key)
        });
        let publishes = seen.publishes(planned);
        claims
            .claim(publishes == 1, || format!("the partner's log shows {publishes} publishes of {}", seen.final_name));
        let label = if planned.place.partner == "northwind" { "done-file" } else { "checksum file" };
        row.evidence = format!("{}…  {} rows, {label}", sha256.get(..12).unwrap_or_default(), own.rows);
        (row.file, row.bytes, row.rows, row.sha256) =
            (Some(seen.final_name.clone()), Some(bytes.len()), Some(own.rows), Some(sha256));
        Ok(())
    }

    /// A file that is not to be there.
    fn stayed(&self, planned: &Planned, job: &Job, seen: &Seen, row: &mut Row) -> anyhow::Result<()> {
        let claims = &mut row.claims;
        let publishes = seen.publishes(planned);
        claims
            .claim(publishes == 0, || format!("the partner's log shows {publishes} publishes of {}", seen.final_name));
        claims.claim(job.publish_intended_at.is_none(), || format!("the job {} passed the publish fence", planned.key));
        let found = self.fetched(planned, &seen.final_name)?;
        if planned.case == Case::NameOccupied {
            claims.claim(found.as_deref() == Some(FOREIGN), || {
                format!("the file that somebody else had put under {} was touched", seen.final_name)
            });
            row.file = Some(seen.final_name.clone());
            row.bytes = found.as_ref().map(Vec::len);
            row.sha256 = found.map(|bytes| data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)));
        } else {
            claims.claim(found.is_none(), || {
                format!("the partner has a file {} of the job {}", seen.final_name, planned.key)
            });
        }
        Ok(())
    }

    /// A file's bytes, as OpenSSH's own client fetched them; `None` if it was not there.
    fn fetched(&self, planned: &Planned, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.mirror(planned.place.site).join(planned.at_partner(name));
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    fn mirror(&self, site: Site) -> PathBuf {
        self.fetched.join(site.name())
    }

    /// What the file must be, computed in SQL from the customers' rows.
    async fn own(&self, planned: &Planned) -> anyhow::Result<Own> {
        let script = match planned.place.partner {
            "northwind" => include_str!("northwind.sql"),
            _ => include_str!("meridian.sql"),
        };
        own(self.crm, script, planned.place.tenant, planned.country).await
    }

    /// Everything that lies at the partners, against everything that is to lie there. Answers how many files there are.
    pub fn nothing_else(&self, jobs: &[Planned], rows: &[Row], claims: &mut Claims) -> anyhow::Result<usize> {
        let mut files = 0;
        for site in jobs.iter().map(|job| job.place.site).collect::<BTreeSet<_>>() {
            let mut wanted: Vec<String> = Vec::new();
            for (job, row) in jobs.iter().zip(rows).filter(|(job, _)| job.place.site == site) {
                let Some(file) = &row.file else { continue };
                wanted.push(job.at_partner(file));
                if job.case.arrives() {
                    wanted.push(job.at_partner(&job.beside(file)));
                }
            }
            wanted.sort_unstable();
            let mirror = self.mirror(site);
            let mut found = Vec::new();
            walk(&mirror, &mirror, &mut found)?;
            found.sort_unstable();
            claims.claim(found == wanted, || format!("at {} lies {found:?}, and not {wanted:?}", site.name()));
            files += found.len();
        }
        Ok(files)
    }
}

/// The files below a directory, by their paths from the root.
pub(super) fn walk(root: &Path, directory: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    let cannot = || format!("{} cannot be read", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.is_dir() {
            walk(root, &path, found)?;
        } else {
            found.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}

/// PostgreSQL's own file.
pub(super) struct Own {
    pub rows: u64,
    pub bytes: usize,
    pub sha256: String,
}

/// Has PostgreSQL compute a file.
pub(super) async fn own(crm: &Psql, script: &str, tenant: Uuid, country: &str) -> anyhow::Result<Own> {
    let said = crm.run(script, &[("tenant", &tenant.to_string()), ("country", country)]).await?;
    let mut fields = said.split('\t');
    let mut field = || fields.next().with_context(|| format!("psql said {said:?}"));
    Ok(Own { rows: field()?.parse()?, bytes: field()?.parse()?, sha256: field()?.to_owned() })
}
