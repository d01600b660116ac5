//! The command line: what operators and platform engineers type.
//!
//! Every command says what it did or what to do next, speaks JSON on request, and ends with a code that scripts can use:
//! 0 done, 1 failed, 2 wrong arguments, 3 not found, 4 refused as things stand, 5 could not be told: try again.

mod database;
pub mod demo;
mod destination;
mod explain;
mod job;
mod migrate;
mod output;
mod partner;
mod plugin;
mod serve;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
use crate::telemetry::{self, LogFormat};
use output::Output;

/// A WebAssembly-pluggable delivery host: queues export jobs, builds each file, puts it under the agreed name at the
/// partner, and tells the truth about it.
#[derive(Debug, Parser)]
#[command(name = "waybill", version, propagate_version = true, max_term_width = 120)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Common {
    /// Configuration file (TOML). Environment variables override it.
    #[arg(long, global = true, env = "WAYBILL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON for scripts.
    #[arg(long, global = true)]
    json: bool,
    /// What to log, in the syntax of `RUST_LOG`: `info` unless told; errors alone of `demo` and `plugin`, where `--log guest=info`
    /// shows what plugins say.
    #[arg(long, global = true, env = "WAYBILL_LOG", value_name = "FILTER")]
    log: Option<String>,
    /// Log lines as JSON, for collectors.
    #[arg(long, global = true)]
    log_json: bool,
    /// Use the private PostgreSQL in the data directory instead of the configured one.
    #[arg(long, global = true)]
    embedded: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create the database's roles and schema. May run twice.
    Migrate(migrate::Migrate),
    /// Run this host: worker, dispatcher, recovery, reconciler and sweeper, and the bundles of its partners directory.
    ///
    /// Until SIGTERM or SIGINT: then work that is being prepared is handed back, and deliveries under way are waited for within
    /// `[worker] shutdown_seconds`; a second signal ends the process at once. It does not wait for bundles that must be compiled
    /// first: each is served once that is done.
    Serve(serve::Serve),
    /// How destinations stand, and saying that one is mended.
    #[command(subcommand)]
    Destination(destination::DestinationCommand),
    /// The bundles in the partners directory, what their servers were shown to do, and the operator's switch.
    #[command(subcommand)]
    Partner(partner::PartnerCommand),
    /// After a restore or failover: what waits for a person, and saying what was lost.
    #[command(subcommand)]
    Database(database::DatabaseCommand),
    /// Create jobs, look at them, edit and cancel them, and decide about their outcomes.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// For the authors of bundles: begin one, build it, test it alone, see what it is, without a database.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Show it all working: a private PostgreSQL, private OpenSSH servers, three partners, 26 jobs, killed workers.
    Demo(demo::Demo),
}

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    NotFound,
    Refused,
    TryAgain,
}

impl Ended {
    const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::TryAgain => 5,
        }
    }
}

/// How long what is still blocked at the end may take.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let Cli { common, command } = Cli::parse();
    // The demo and a rehearsal draw their own pictures; a log line in between would tear them, also one about a slow statement.
    let draws = matches!(command, Command::Demo(_) | Command::Plugin(_));
    let filter = common.log.as_deref().unwrap_or(if draws { "error,sqlx=error" } else { "info" });
    telemetry::start(if common.log_json { LogFormat::Json } else { LogFormat::Text }, filter);
    let output = Output::new(common.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(output, &anyhow::Error::new(error).context("the runtime could not be started")),
    };
    let ended = runtime.block_on(run(&common, &output, command));
    // A call to a share that hangs keeps its thread, and must not keep the process.
    runtime.shutdown_timeout(LEAVE_WITHIN);
    match ended {
        Ok(ended) => ExitCode::from(ended.code()),
        Err(error) => failed(output, &error),
    }
}

async fn run(common: &Common, output: &Output, command: Command) -> anyhow::Result<Ended> {
    let config = || Config::load(common.config.as_deref());
    match command {
        Command::Migrate(command) => command.run(&config()?, common.embedded, output).await,
        Command::Serve(command) => command.run(config()?, common.embedded, output).await,
        Command::Destination(command) => command.run(&config()?, common.embedded, output).await,
        Command::Partner(command) => command.run(&config()?, common.embedded, output).await,
        Command::Database(command) => command.run(&config()?, common.embedded, output).await,
        Command::Job(command) => command.run(&config()?, common.embedded, output).await,
        Command::Plugin(command) => command.run(output).await,
        Command::Demo(command) => command.run(output).await,
    }
}

fn failed(output: Output, error: &anyhow::Error) -> ExitCode {
    output.error(error);
    ExitCode::from(1)
}
