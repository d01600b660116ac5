//! `waybill plugin`: what the authors of a partner's bundle do on their own machine. No database, no configuration, no
//! network but loopback.
//!
//! A command is a file.

mod test;

use super::Ended;
use super::output::Output;

#[derive(Debug, clap::Subcommand)]
pub(super) enum PluginCommand {
    /// Test a bundle alone: against simulated servers in this process, without a database.
    #[command(after_help = test::HELP)]
    Test(test::Test),
}

impl PluginCommand {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        match self {
            Self::Test(command) => command.run(output).await,
        }
    }
}
