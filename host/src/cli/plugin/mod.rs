//! `waybill plugin`: what the authors of a partner's bundle do on their own machine. No database and no configuration. The
//! network is needed twice: `build` fetches compilers and crates, and `test --record` delivers to the server that it is told.
//! Every other test stays on loopback.
//!
//! A command is a file. Beside them: `template` is the files of a new bundle, `described` a bundle in words, `sources` and `options`
//! what `inspect` and `test` warn of, `cached` what is kept for the next time.

mod build;
mod cached;
pub(super) mod described;
mod inspect;
mod new;
mod options;
mod sources;
mod template;
mod test;

use super::Ended;
use super::output::Output;

#[derive(Debug, clap::Subcommand)]
pub(super) enum PluginCommand {
    /// Begin a bundle: plugins, contract and a first test, in the language that you write.
    #[command(after_help = new::HELP)]
    New(new::New),
    /// Build a bundle's plugins from their sources.
    #[command(after_help = build::HELP)]
    Build(build::Build),
    /// Test a bundle alone: against simulated servers in this process, without a database.
    #[command(after_help = test::HELP)]
    Test(test::Test),
    /// Show what a bundle is: contract, names, limits, components, and what a host would refuse or warn of.
    #[command(after_help = inspect::HELP)]
    Inspect(inspect::Inspect),
}

impl PluginCommand {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        match self {
            Self::New(command) => command.run(*output),
            Self::Build(command) => command.run(output).await,
            Self::Test(command) => command.run(output).await,
            Self::Inspect(command) => command.run(output).await,
        }
    }
}
