//! Creation under an idempotency key: a request that is sent twice makes one job and is answered the same.
//!
//! One short transaction holds the key's row, the job and the recorded answer, so that they appear together or not at
//! all: a creation that is refused leaves its key free, and a process that dies leaves nothing half done. A second
//! request waits at the key's row for the first, for a bounded time; then it says that the first is in flight.
//!
//! Keys belong to a tenant. What makes two requests the same is a digest of what their client asked for, who asked
//! included; what the host mints for each of them (the job's id, a delivery key that nobody named) is not part of it.
//!
//! Not promised: that a refusal is given again. A request that was refused may succeed when it is sent later.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::create::{self, Creation, NewJob};
use super::error::{StoreError, sqlstate};
use super::pools::Pool;
use super::write::Write;

const ACT: &str = "create_once";

/// What the key's row calls this kind of request.
const OPERATION: &str = "create";

/// A creation that its client may send again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedCreation {
    /// The client's key, once a job that it wants.
    pub idempotency_key: String,
    pub job: NewJob,
    /// True if the client named the delivery key. One that was minted for this call differs from call to call.
    pub names_delivery_key: bool,
    /// Longest wait for another request that holds the same idempotency key or the same delivery key.
    pub lock_timeout: Duration,
}

/// The job that a request made, whichever of its submissions did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub job: Uuid,
    pub delivery_key: String,
}

/// The answer to a keyed creation.
#[must_use = "only the first two answers mean that there is a job"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreatedOnce {
    /// This submission made it.
    Created(Made),
    /// An earlier submission of the same request made it.
    Again(Made),
    /// The key was used for a request of other content. Nothing was written.
    OtherContent {
        /// Who used it.
        used_by: String,
    },
    /// Another request with this key, or with this delivery key, has not ended. Nothing was written; ask again.
    InFlight,
    /// The tenant has a delivery of this delivery key already. Nothing was written.
    KeyTaken,
    /// The tenant has no such destination. Nothing was written.
    NoSuchDestination,
}

/// Creates a job unless this request has made it already.
///
/// A lost answer is settled by the key: the answer that stands there is this request's, whichever submission wrote it.
pub async fn create_once(pool: &Pool, request: KeyedCreation) -> Result<CreatedOnce, StoreError> {
    let asked = Asked::of(&request);
    let made = Made { job: request.job.id, delivery_key: request.job.delivery_key.clone() };
    let boundary = Boundary {
        act: ACT,
        job: request.job.id,
        tenant: Some(request.job.tenant),
        ask: AskTheRow::AfterALostAnswer,
        // The id was minted for this submission, so only its own transaction can have brought the row, and with it the
        // key and the answer.
        landed: landed_if(move |_| Some(CreatedOnce::Created(made))),
    };
    let again = asked.clone();
    let answer = boundary
        .run(pool, async move |mut connection| {
            let mut transaction = connection.begin().await?;
            let answer = decide(&mut transaction, &asked, &request).await?;
            match answer {
                CreatedOnce::Created(_) => transaction.commit().await?,
                _ => transaction.rollback().await?,
            }
            Ok(Some(answer))
        })
        .await;
    match answer {
        Ok(Write::Written(answer)) => Ok(answer),
        // The answer was lost and this submission made no job that can be seen: an earlier one may have, else it may still
        // be on its way.
        Ok(Write::Refused(_) | Write::Absent) => {
            let mut connection = pool.acquire(ACT).await?;
            let kept = kept(&mut connection, &again).await.map_err(|error| StoreError::sort(ACT, error))?;
            kept.ok_or_else(|| StoreError::MaybeCommitted { act: ACT, source: "the key is not there (yet)".into() })
        }
        Err(error) if error.code() == Some(sqlstate::LOCK_NOT_AVAILABLE) => Ok(CreatedOnce::InFlight),
        Err(error) => match create::refusal(error)? {
            Creation::KeyTaken => Ok(CreatedOnce::KeyTaken),
            Creation::NoSuchDestination => Ok(CreatedOnce::NoSuchDestination),
            Creation::Created => Err(StoreError::MaybeCommitted { act: ACT, source: "an error told of a job".into() }),
        },
    }
}

/// A request as its key's row knows it.
#[derive(Clone)]
struct Asked {
    tenant: Uuid,
    key: String,
    fingerprint: [u8; 32],
}

impl Asked {
    fn of(request: &KeyedCreation) -> Self {
        let job = &request.job;
        Self { tenant: job.tenant, key: request.idempotency_key.clone(), fingerprint: fingerprint(request) }
    }
}

async fn decide(
    connection: &mut PgConnection,
    asked: &Asked,
    request: &KeyedCreation,
) -> Result<CreatedOnce, sqlx::Error> {
    sqlx::query!(
        "-- store::create_once, the longest wait for another request
         SELECT set_config('lock_timeout', $1, true)",
        request.lock_timeout.as_millis().max(1).to_string()
    )
    .fetch_one(&mut *connection)
    .await?;
    // Waits for a transaction that has inserted the same key and has not ended.
    let began = sqlx::query!(
        "-- store::create_once
         INSERT INTO idempotency_keys (tenant_id, key, operation, fingerprint, started_by)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT ON CONSTRAINT pk_idempotency_keys DO NOTHING",
        asked.tenant,
        asked.key,
        OPERATION,
        asked.fingerprint.as_slice(),
        request.job.created_by
    )
    .execute(&mut *connection)
    .await?;
    if began.rows_affected() == 0 {
        // A statement of its own, which sees what was committed while the insert waited. Keys are never removed.
        return Ok(kept(connection, asked).await?.unwrap_or(CreatedOnce::InFlight));
    }
    create::insert(&mut *connection, &request.job).await?;
    let made = Made { job: request.job.id, delivery_key: request.job.delivery_key.clone() };
    sqlx::query!(
        "-- store::create_once, the answer
         UPDATE idempotency_keys SET answered_at = clock_timestamp(), answer = $3
         WHERE tenant_id = $1 AND key = $2",
        asked.tenant,
        asked.key,
        json!({ "job": made.job, "delivery_key": made.delivery_key })
    )
    .execute(connection)
    .await?;
    Ok(CreatedOnce::Created(made))
}

/// What the key's row answers to this request; `None` without a row.
async fn kept(connection: &mut PgConnection, asked: &Asked) -> Result<Option<CreatedOnce>, sqlx::Error> {
    let row = sqlx::query!(
        "-- store::create_once, an earlier submission
         SELECT operation, fingerprint, started_by, answer FROM idempotency_keys WHERE tenant_id = $1 AND key = $2",
        asked.tenant,
        asked.key
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.operation != OPERATION || row.fingerprint != asked.fingerprint {
        return Ok(Some(CreatedOnce::OtherContent { used_by: row.started_by }));
    }
    let Some(answer) = row.answer else { return Ok(Some(CreatedOnce::InFlight)) };
    read(&answer)
        .map(|made| Some(CreatedOnce::Again(made)))
        .ok_or_else(|| sqlx::Error::Decode("the recorded answer names no job and no delivery key".into()))
}

fn read(answer: &Value) -> Option<Made> {
    let text = |name| answer.get(name).and_then(Value::as_str);
    Some(Made { job: text("job")?.parse().ok()?, delivery_key: text("delivery_key")?.to_owned() })
}

/// SHA-256 of what the client asked for. The tenant is the key's own.
fn fingerprint(request: &KeyedCreation) -> [u8; 32] {
    let NewJob { id: _, tenant: _, destination, scope, not_before, priority, delivery_key, created_by } = &request.job;
    let content = json!({
        "destination": destination,
        "scope": scope,
        "not_before": not_before.map(|time| time.unix_timestamp_nanos().to_string()),
        "priority": priority,
        "delivery_key": request.names_delivery_key.then_some(delivery_key),
        "created_by": created_by,
    });
    let mut text = String::new();
    write_sorted(&content, &mut text);
    Sha256::digest(text.as_bytes()).into()
}

/// JSON with the members of every object in order, whatever order the library keeps them in.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, member) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_sorted(member, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> KeyedCreation {
        KeyedCreation {
            idempotency_key: "order 7".to_owned(),
            job: NewJob {
                id: Uuid::new_v4(),
                tenant: Uuid::nil(),
                destination: Uuid::nil(),
                scope: json!({ "region": "emea", "list": ["a", "b"] }),
                not_before: None,
                priority: 0,
                delivery_key: Uuid::new_v4().to_string(),
                created_by: "olga".to_owned(),
            },
            names_delivery_key: false,
            lock_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn cre_03_what_the_host_mints_is_no_content_and_what_the_client_says_is() {
        let (first, second) = (request(), request());
        assert_eq!(fingerprint(&first), fingerprint(&second), "other ids and minted keys");
        let changes: [fn(&mut KeyedCreation); 6] = [
            |request| request.job.destination = Uuid::max(),
            |request| request.job.scope = json!({ "region": "emea", "list": ["b", "a"] }),
            |request| request.job.not_before = Some(time::OffsetDateTime::UNIX_EPOCH),
            |request| request.job.priority = 1,
            |request| request.names_delivery_key = true,
            |request| request.job.created_by = "ines".to_owned(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = request();
            change(&mut other);
            assert_ne!(fingerprint(&first), fingerprint(&other), "change {number}");
        }
    }

    #[test]
    fn the_order_of_members_is_no_content() {
        let text = |value: &str| {
            let mut text = String::new();
            write_sorted(&serde_json::from_str(value).unwrap(), &mut text);
            text
        };
        assert_eq!(text(r#"{"b":{"d":1,"c":null},"a":["x"]}"#), text(r#"{"a":["x"],"b":{"c":null,"d":1}}"#));
        assert_ne!(text(r#"["a","b"]"#), text(r#"["a,b"]"#));
    }
}
