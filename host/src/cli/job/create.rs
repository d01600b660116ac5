//! `waybill job create`: one export, one file, to be delivered once.

use anyhow::{Context as _, bail};
use time::OffsetDateTime;
use uuid::Uuid;

use super::arguments::{pair, timestamp};
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::store::{self, Creation, NewJob};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Create {
    /// The tenant whose export it is.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// The destination's id, from the operator's destinations.toml.
    #[arg(long)]
    destination: Uuid,
    /// What to export, as the partner's builder understands it; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    scope: Vec<(String, String)>,
    /// The delivery key, by which the partner knows the delivery. Minted if absent; it never changes.
    #[arg(long)]
    key: Option<String>,
    /// Not before this time (RFC 3339, for example 2026-12-01T06:00:00Z).
    #[arg(long, value_parser = timestamp)]
    not_before: Option<OffsetDateTime>,
    /// Higher is woken earlier.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i16,
    /// Who creates it.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO")]
    created_by: String,
}

impl Create {
    pub async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let scope: serde_json::Map<String, serde_json::Value> =
            self.scope.into_iter().map(|(name, value)| (name, value.into())).collect();
        let id = Uuid::now_v7();
        let delivery_key = self.key.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        let job = NewJob {
            id,
            tenant: self.tenant,
            destination: self.destination,
            scope: scope.into(),
            not_before: self.not_before,
            priority: self.priority,
            delivery_key: delivery_key.clone(),
            created_by: self.created_by,
        };
        match store::create(pool, job)
            .await
            .context("the job was not confirmed; look with `waybill job list` before creating it again")?
        {
            Creation::Created => {
                output.answer(&serde_json::json!({ "job": id, "delivery_key": delivery_key }), || {
                    format!("created job {id}\ndelivery key  {delivery_key}\nfollow it with: waybill job explain {id} --tenant {}", self.tenant)
                })?;
                Ok(Ended::Done)
            }
            Creation::KeyTaken => {
                bail!(
                    "the tenant has a delivery with the key {delivery_key:?} already; nothing was created. Use another key, or look at the job that has it"
                )
            }
            Creation::NoSuchDestination => bail!(
                "the tenant {} has no destination {}; see the partner's destinations.toml, and that a host with its bundle has started once",
                self.tenant,
                self.destination
            ),
        }
    }
}
