//! `waybill partner`: the bundles in the partners directory, what their servers were shown to do, and the operator's switch.
//!
//! A command is a file. Bundles are read from disk as the host reads them; how destinations stand is the database's.
//! `agreement` holds a server against its contract, for `show`, `check` and `enable` alike.

mod agreement;
mod bundles;
mod check;
mod list;
mod queries;
mod show;
mod switch;

use super::Ended;
use super::output::Output;
use crate::app;
use crate::config::Config;
use crate::job::status::Role;

#[derive(Debug, clap::Subcommand)]
pub(super) enum PartnerCommand {
    /// List the bundles in the partners directory with their destinations, and what is wrong with those that are not right.
    #[command(after_help = "Example:\n  waybill partner list")]
    List(list::List),
    /// Show one bundle whole: contract, names, limits, destinations, and what is known of their servers.
    #[command(after_help = "Example:\n  waybill partner show northwind\n\n\
Exit code 0: shown; 3: there is no such bundle; 4: it is shown with what is wrong with it.")]
    Show(show::Show),
    /// Check a destination's server against its contract.
    ///
    /// Logs in with the operator's secrets, lists the directory, and tries on scratch files under temporary names how the server
    /// publishes; they are removed again. What was seen is recorded, and counts until banner, extensions, endpoint or names change.
    /// Each query is prepared by its database, and none is run. A bundle that hosts refuse as it lies there is not checked. Not looked at:
    /// the settings under [options], and the queries and columns that the plugins read; `waybill plugin test` finds those.
    #[command(after_help = "Example:\n  waybill partner check 0b2… --as ada@example.com\n\n\
Exit code 0: nothing contradicts the contract; 3: there is no such destination; 4: something does, a query or the server cannot be used as it is, \
or its bundle is refused; \
5: the server could not be reached, or a query's database could not be asked, try again.")]
    Check(check::Check),
    /// Let a destination's jobs run, once its server was shown to do what its contract says.
    #[command(
        after_help = "Example:\n  waybill partner enable 0b2… --tenant 6f1… --reason 'checked, and their desk confirmed' --as ada@example.com\n\n\
Exit code 0: enabled; 3: there is no such destination; 4: refused, with what the server was not shown to do; 5: it changed meanwhile, try again."
    )]
    Enable(switch::Enable),
    /// Let a destination's jobs wait. What is under way is finished.
    #[command(
        after_help = "Example:\n  waybill partner disable 0b2… --tenant 6f1… --reason 'they move their server' --as ada@example.com\n\n\
Exit code 0: disabled; 3: there is no such destination."
    )]
    Disable(switch::Disable),
}

impl PartnerCommand {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let role = match &self {
            Self::List(_) | Self::Show(_) => Role::Reader,
            Self::Check(_) => Role::Worker,
            Self::Enable(_) | Self::Disable(_) => Role::Api,
        };
        let pool = app::connect(config, embedded, role).await?;
        let ended = match self {
            Self::List(command) => command.run(&pool, config, *output).await,
            Self::Show(command) => command.run(&pool, config, *output).await,
            Self::Check(command) => command.run(&pool, config, *output).await,
            Self::Enable(command) => command.run(&pool, *output).await,
            Self::Disable(command) => command.run(&pool, *output).await,
        };
        pool.close().await;
        ended
    }
}
