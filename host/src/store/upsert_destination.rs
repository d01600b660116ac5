//! A destination is joined from its partner's bundle and the operator's file.
//!
//! Every host that serves it joins it when it loads the bundle. The higher revision of the manifest stands. Under an equal
//! one the operator's part replaces (address, settings, queries, rules), so that an edit takes effect at once; the
//! partner's part (manifest, components, contract) must be what it was, or one revision would mean two things. What
//! deliveries and operators recorded is not touched: `enabled`, attention, and pause.
//!
//! The destinations of a bundle are joined together or not at all: a row under a revision that nobody serves would be a
//! contract that nobody keeps.

use std::collections::BTreeSet;

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::error::{StoreError, sqlstate};
use super::pools::Pool;

/// A destination as a host joined it from its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedDestination {
    pub id: Uuid,
    pub tenant: Uuid,
    /// The operator's name for it.
    pub name: String,
    pub partner: String,
    /// Revision of the manifest, from 1.
    pub revision: i32,
    pub manifest: serde_json::Value,
    pub contract: serde_json::Value,
    /// What policy asks of its jobs.
    pub rules: serde_json::Value,
    pub digests: serde_json::Value,
    /// Host and port; stored in lower case.
    pub endpoint: String,
}

/// Digests that may differ under one revision: the operator's part, and what follows from the manifest and from this
/// program, which reads it.
const FREE: [&str; 3] = ["settings", "contract", "checked"];

/// What came of joining.
#[must_use = "only `Joined` is in force"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joining {
    Joined,
    /// Another host joined it from a newer manifest, which stays in force.
    Older {
        in_force: i32,
    },
    /// This revision is in force with another manifest or other components: these of its digests differ.
    SameRevision {
        differ: Vec<String>,
    },
    /// The id belongs to another tenant or another partner. It never changes hands.
    Foreign,
    /// The tenant has another destination of this name.
    NameTaken,
    /// The database cannot hold one of its values; in its words.
    Unfit {
        why: String,
    },
}

impl Joining {
    /// True if it speaks against the bundle, so that nothing of it was written.
    pub fn refuses(&self) -> bool {
        !matches!(self, Self::Joined | Self::Older { .. })
    }
}

const ACT: &str = "upsert_destinations";

/// Joins destinations into their rows, in the order of their ids: two hosts that join the same ones wait for each other
/// and never around in a circle. It ends at the first that is refused, which is the last of the answer, and then none is
/// written.
pub async fn upsert_destinations(
    pool: &Pool,
    joined: &[JoinedDestination],
) -> Result<Vec<(Uuid, Joining)>, StoreError> {
    let sort = |error| StoreError::sort(ACT, error);
    let mut in_order: Vec<&JoinedDestination> = joined.iter().collect();
    in_order.sort_by_key(|joined| joined.id);
    let mut connection = pool.acquire(ACT).await?;
    let mut transaction = connection.begin().await.map_err(sort)?;
    let mut answers = Vec::new();
    for one in in_order {
        let joining = upsert_destination(&mut transaction, one).await?;
        let refused = joining.refuses();
        answers.push((one.id, joining));
        if refused {
            transaction.rollback().await.map_err(sort)?;
            return Ok(answers);
        }
    }
    transaction.commit().await.map_err(sort)?;
    Ok(answers)
}

async fn upsert_destination(connection: &mut PgConnection, joined: &JoinedDestination) -> Result<Joining, StoreError> {
    let written = sqlx::query!(
        "-- store::upsert_destination
         INSERT INTO destinations AS destination
             (id, tenant_id, name, partner, revision, manifest, contract, rules, digests, endpoint, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp())
         ON CONFLICT (id) DO UPDATE
         SET name = excluded.name,
             revision = excluded.revision,
             manifest = excluded.manifest,
             contract = excluded.contract,
             rules = excluded.rules,
             digests = excluded.digests,
             endpoint = excluded.endpoint,
             updated_at = excluded.updated_at
         WHERE destination.tenant_id = excluded.tenant_id
           AND destination.partner = excluded.partner
           AND (destination.revision < excluded.revision
                OR (destination.revision = excluded.revision
                    AND destination.digests - $11::text[] = excluded.digests - $11::text[]))",
        joined.id,
        joined.tenant,
        joined.name,
        joined.partner,
        joined.revision,
        joined.manifest,
        joined.contract,
        joined.rules,
        joined.digests,
        joined.endpoint.to_lowercase(),
        &FREE.map(str::to_owned)[..]
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error));
    match written {
        Ok(written) if written.rows_affected() == 1 => return Ok(Joining::Joined),
        Ok(_) => {}
        Err(error) => {
            return match (error.code(), error.constraint()) {
                (Some(sqlstate::UNIQUE_VIOLATION), Some("uq_destinations_name")) => Ok(Joining::NameTaken),
                (Some(code), _) if is_of_the_values(code) => Ok(Joining::Unfit { why: in_words(&error, code) }),
                _ => Err(error),
            };
        }
    }
    let row = sqlx::query!(
        r#"-- store::upsert_destination, after a refusal
           SELECT revision, digests, tenant_id = $2 AND partner = $3 AS "same!" FROM destinations WHERE id = $1"#,
        joined.id,
        joined.tenant,
        joined.partner
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(if !row.same {
        Joining::Foreign
    } else if row.revision == joined.revision {
        Joining::SameRevision { differ: differ(&row.digests, &joined.digests) }
    } else {
        Joining::Older { in_force: row.revision }
    })
}

/// Classes 22 (data exception), 23 (a constraint) and 54 (a limit of the program) are about what was to be written. Others
/// tell of the moment: a lock, a shortage, a server that goes down.
fn is_of_the_values(sqlstate: &str) -> bool {
    ["22", "23", "54"].iter().any(|class| sqlstate.starts_with(class))
}

fn in_words(error: &StoreError, code: &str) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    format!("{}, SQLSTATE {code}", cause.lines().next().unwrap_or_default())
}

/// The names under which two sets of digests differ that may not under one revision.
pub fn differ(one: &serde_json::Value, other: &serde_json::Value) -> Vec<String> {
    let names: BTreeSet<&String> =
        [one, other].into_iter().filter_map(|digests| digests.as_object()).flat_map(|digests| digests.keys()).collect();
    let differs = |name: &&String| !FREE.contains(&name.as_str()) && one.get(name.as_str()) != other.get(name.as_str());
    names.into_iter().filter(differs).cloned().collect()
}
