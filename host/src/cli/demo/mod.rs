//! `waybill demo`: everything at work, with nothing played.
//!
//! A private PostgreSQL holds the host's schema and a customer database; private OpenSSH servers are the partners; the
//! plugins are the ones of `plugins/`, in the bundles of `plugins/bundles`; jobs are created and canceled through the store,
//! as the other commands do it, and run by the same worker and dispatcher that `waybill serve` runs. In a second act that
//! is `waybill serve` itself, in processes that are killed and paused (`lost_workers`). What is said at the end was asked of
//! those servers through their own clients (`verify`). It promises nothing about speed.

mod contacts;
mod dice;
mod directory;
mod jobs;
mod line;
mod lost_workers;
mod partners;
mod places;
mod psql;
mod scenes;
mod seen;
mod stage;
mod table;
mod verify;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use super::Ended;
use super::output::Output;
use directory::Directory;
use stage::Stage;

/// Starts a private PostgreSQL and private OpenSSH servers, loads 50,000 contacts of two tenants, runs 20 jobs for two
/// partners with different conventions, kills and pauses workers of a third one's 6 jobs, and checks everything that it says
/// about them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  waybill demo\n  waybill demo --keep     (leave it running, and look around)\n\n\
Exit code 0: every statement was checked and holds; 1: one does not, or the demo could not run.\n\n\
It needs PostgreSQL's server and client, OpenSSH's server and client, and the plugins (`make plugins`). It listens on \
loopback only, and takes everything down at its end.")]
pub struct Demo {
    /// Leave everything running at the end, until Ctrl-C, and say how to look around.
    #[arg(long)]
    keep: bool,
    /// Where the built plugins are.
    #[arg(long, value_name = "DIR", default_value = "target/plugins")]
    plugins: PathBuf,
    /// Keep everything of this run in this directory and leave it there [default: a private temporary directory].
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// All jobs have ended by then, or something is wrong.
const WITHIN: Duration = Duration::from_secs(120);

impl Demo {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        let began = tokio::time::Instant::now();
        for plugin in ["csv-builder", "sftp-destination"] {
            let file = partners::plugin_file(&self.plugins, plugin);
            if !file.is_file() {
                bail!(
                    "the plugin {} is not there; build it with `make plugins`, or name its directory with --plugins",
                    file.display()
                );
            }
        }
        let directory = Directory::prepare(self.directory.as_deref())?;
        let interrupted = interruption()?;
        let mut stage = unless(&interrupted, Stage::set(&directory, *output)).await?;
        let performed = unless(&interrupted, stage.perform(&directory, &self.plugins, WITHIN)).await;
        let told = match performed {
            Ok(mut told) => {
                told.seconds = began.elapsed().as_secs_f32();
                told.print(*output)
            }
            Err(error) => Err(error),
        };
        if self.keep && told.is_ok() {
            output.say(&stage.look_around(&directory)?)?;
            interrupted.cancelled().await;
        }
        stage.end().await?;
        told.map(|()| Ended::Done)
    }
}

/// Set by the first Ctrl-C, SIGTERM or SIGHUP.
fn interruption() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut hang_up = signal(SignalKind::hangup()).context("signals cannot be received")?;
    let interrupted = CancellationToken::new();
    let token = interrupted.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        token.cancel();
    });
    Ok(interrupted)
}

async fn unless<T>(
    interrupted: &CancellationToken,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        () = interrupted.cancelled() => bail!("interrupted; everything that was started is stopped again"),
        done = work => done,
    }
}
