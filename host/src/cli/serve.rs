//! `waybill serve`: this host, until a signal.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Ended;
use super::output::Output;
use crate::app::{self, Host};
use crate::config::Config;

/// Runs worker, dispatcher, recovery, reconciler and sweeper, and follows the partners directory, until SIGTERM or SIGINT. Work
/// that is being prepared is then handed back, and deliveries under way are waited for within `[worker] shutdown_seconds`; a
/// second signal ends the process at once. It does not wait for bundles that must be compiled first.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  waybill serve --config waybill.toml\n  waybill serve --embedded     (a private PostgreSQL in the data directory)\n\n\
Exit code 0: it ended after a signal; 1: it could not start, or its private PostgreSQL died; 130: a second signal."
)]
pub(super) struct Serve {}

impl Serve {
    pub async fn run(self, config: Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let Self {} = self;
        let mut config = config;
        let shutdown = CancellationToken::new();
        // From the beginning: a start may be told to end before it is done.
        let signals = tokio::spawn(signals(Signals::install()?, shutdown.clone()));
        let private = if embedded { Some(app::start_embedded(&config).await?) } else { None };
        if let Some(private) = &private {
            config.database.url = Some(private.url());
        }
        let host = tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            host = Host::start(&config, shutdown.clone()) => Some(host?),
        };
        let Some(host) = host else {
            if let Some(private) = private {
                private.stop().await?;
            }
            output.say("stopped before it was ready; nothing is under way")?;
            return Ok(Ended::Done);
        };
        output.say(&host.summary())?;
        let ended = match private {
            None => host.run().await,
            Some(mut private) => {
                let ended = tokio::select! {
                    ended = host.run() => Ok(ended),
                    died = private.died() => Err(died),
                };
                match ended {
                    Ok(ended) => {
                        private.stop().await?;
                        ended
                    }
                    Err(died) => return Err(died.into()),
                }
            }
        };
        signals.abort();
        if ended {
            output.say("stopped; nothing is under way")?;
        } else {
            output.say("stopped at the bound with work under way; recovery settles what it did")?;
        }
        Ok(Ended::Done)
    }
}

/// What asks a process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

/// The first signal asks for a graceful stop, the second ends the process.
async fn signals(signals: Signals, shutdown: CancellationToken) {
    let Signals { mut terminate, mut interrupt } = signals;
    for first in [true, false] {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if first {
            tracing::info!("stopping; a second signal ends at once");
            shutdown.cancel();
        }
    }
    // 128 + SIGINT, as a shell reports it.
    std::process::exit(130);
}
