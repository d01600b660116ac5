//! How a write at a boundary is run: in a task of its own, and settled by the row if its answer is lost.
//!
//! Dropping an sqlx future may still commit, so a caller that gives up must not take the answer with it. The task goes
//! on, settles, and is waited for when the pool closes.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use uuid::Uuid;

use super::error::StoreError;
use super::found::{self, Found};
use super::pools::Pool;
use super::write::Write;

/// How long the re-read after a lost answer may take, its connection included.
pub const REREAD_WITHIN: Duration = Duration::from_secs(5);

/// When the row itself may say that the write took effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskTheRow {
    /// Only after a lost answer.
    AfterALostAnswer,
    /// Also when the statement matched nothing: an earlier call of this very attempt may have committed late.
    Always,
}

/// What the row proves: given state and ownership, the value of the write if it took effect.
pub(super) type Landed<T> =
    Box<dyn for<'c> FnOnce(&'c mut PgConnection, &'c Found) -> BoxFuture<'c, Result<Option<T>, StoreError>> + Send>;

/// A boundary write.
pub(super) struct Boundary<T> {
    /// The transition's name, for errors.
    pub act: &'static str,
    pub job: Uuid,
    /// The tenant on whose behalf it is; a job of another one is absent.
    pub tenant: Option<Uuid>,
    pub ask: AskTheRow,
    pub landed: Landed<T>,
}

/// A check of the row that needs nothing but what was found.
pub(super) fn landed_if<T: Send + 'static>(check: impl FnOnce(&Found) -> Option<T> + Send + 'static) -> Landed<T> {
    Box::new(move |_, found| {
        let value = check(found);
        Box::pin(std::future::ready(Ok(value)))
    })
}

impl<T: Send + 'static> Boundary<T> {
    /// Runs the statement in a tracked task. It answers the written value, or `None` if it matched nothing.
    pub async fn run<S, F>(self, pool: &Pool, statement: S) -> Result<Write<T>, StoreError>
    where
        S: FnOnce(PoolConnection<Postgres>) -> F + Send + 'static,
        F: Future<Output = Result<Option<T>, sqlx::Error>> + Send + 'static,
    {
        let act = self.act;
        let task = pool.writes().spawn({
            let pool = pool.clone();
            async move { self.settle(&pool, statement).await }
        });
        match task.await {
            Ok(answer) => answer,
            // The task panicked or the runtime ends: what it wrote, only the row can tell.
            Err(lost) => Err(StoreError::MaybeCommitted { act, source: lost.into() }),
        }
    }

    async fn settle<S, F>(self, pool: &Pool, statement: S) -> Result<Write<T>, StoreError>
    where
        S: FnOnce(PoolConnection<Postgres>) -> F,
        F: Future<Output = Result<Option<T>, sqlx::Error>>,
    {
        let connection = pool.acquire(self.act).await?;
        match statement(connection).await {
            Ok(Some(value)) => Ok(Write::Written(value)),
            Ok(None) => {
                let mut connection = pool.acquire(self.act).await?;
                let ask = self.ask;
                self.reread(&mut connection, ask == AskTheRow::Always).await
            }
            Err(error) => match StoreError::sort(self.act, error) {
                StoreError::MaybeCommitted { act, source } => {
                    let reread = async {
                        let mut connection = pool.fresh().await.map_err(|error| StoreError::never_sent(act, error))?;
                        self.reread(&mut connection, true).await
                    };
                    match tokio::time::timeout(REREAD_WITHIN, reread).await {
                        Ok(Ok(answer)) => Ok(answer),
                        Ok(Err(_)) | Err(_) => Err(StoreError::MaybeCommitted { act, source }),
                    }
                }
                answer => Err(answer),
            },
        }
    }

    async fn reread(self, connection: &mut PgConnection, ask_the_row: bool) -> Result<Write<T>, StoreError> {
        let Some(found) = found::read(connection, self.job, self.tenant).await? else { return Ok(Write::Absent) };
        if ask_the_row && let Some(value) = (self.landed)(connection, &found).await? {
            return Ok(Write::Written(value));
        }
        Ok(Write::Refused(found))
    }
}
