//! `waybill migrate`: roles and schema.

use anyhow::Context as _;
use serde::Serialize;

use super::Ended;
use super::output::Output;
use crate::app;
use crate::config::Config;
use crate::store;

/// Creates the roles that are missing and applies the migrations that are missing. May run twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waybill migrate --admin-url postgres://postgres@localhost/waybill\n\n\
The administrator's login must be a superuser, or own the database and have CREATEROLE. Each role logs in by its own name: \
give it a password (ALTER ROLE waybill_worker PASSWORD '…') and pass that as WAYBILL_PASSWORD_WORKER, or use peer or \
certificate authentication.")]
pub(super) struct Migrate {
    /// URL of the database with an administrator's login.
    #[arg(long, env = "WAYBILL_ADMIN_URL", value_name = "URL", hide_env_values = true)]
    admin_url: Option<String>,
}

#[derive(Serialize)]
struct Did {
    roles_created: Vec<&'static str>,
    applied: Vec<String>,
    already_applied: usize,
}

impl Migrate {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let private = if embedded { Some(app::start_embedded(config).await?) } else { None };
        let url = match (&private, self.admin_url) {
            (Some(private), _) => private.admin_url(),
            (None, Some(url)) => url,
            (None, None) => anyhow::bail!(
                "no administrator's login is named; pass --admin-url or set WAYBILL_ADMIN_URL, or use --embedded"
            ),
        };
        let did = store::migrate(&url).await.context("the database was not migrated")?;
        let did = Did {
            roles_created: did.roles_created.iter().map(|role| role.login()).collect(),
            applied: did.applied.iter().map(|one| format!("{:04} {}", one.version, one.description)).collect(),
            already_applied: did.already_applied,
        };
        output.answer(&did, || {
            let mut text = String::new();
            for role in &did.roles_created {
                text.push_str(&format!("created role {role}\n"));
            }
            for migration in &did.applied {
                text.push_str(&format!("applied {migration}\n"));
            }
            if did.applied.is_empty() && did.roles_created.is_empty() {
                text.push_str("nothing to do: ");
            }
            text.push_str(&format!("{} migrations are in place", did.applied.len() + did.already_applied));
            text
        })?;
        if let Some(private) = private {
            private.stop().await?;
        }
        Ok(Ended::Done)
    }
}
