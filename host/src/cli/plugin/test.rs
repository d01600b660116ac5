//! `waybill plugin test`: a bundle tested alone, with a report for people, scripts and build servers.

mod junit;
mod shown;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::cached::Compiled;
use super::options::misspelt;
use super::sources::outdated;
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::cli::words::counted;
use crate::plugin::Manifest;
use crate::rehearsal::{Against, Options, Progress, Recording, RehearsalError, record_session, rehearse};
use junit::Junit;

pub(super) const HELP: &str = "\
Examples:
  waybill plugin test partners/northwind
  waybill plugin test partners/northwind --only contacts --json
  waybill plugin test partners/northwind --fault plain  # one delivery, nothing goes wrong
  waybill plugin test partners/northwind --bless        # write the golden files anew
  waybill plugin test partners/northwind --record their-test-server --against \"Northwind test\"

DIR holds partner.toml, builder.wasm, destination.wasm (the manifest may name others), and tests/NAME.toml, one a case:

  key = \"K-1001\"                           # the delivery key
  created_at = 2026-03-02T08:15:00Z        # when the job was created
  final_name = \"inbox/contacts-K-1001.csv\" # what the plugin must name the file
  golden = \"golden/contacts.csv\"           # the expected bytes, relative to tests/
  repeatable = true                        # false where the file is encrypted
  reads_all = true                         # false where the builder means to leave rows of a query unread
  file = \"files/contacts.csv\"              # only where the bundle is a destination alone: the file to deliver

  [scope]                                  # what the job's creator wrote: as in JSON, so dates in quotes
  country = \"DE\"

  [settings]                               # the operator's settings; they override [options]

  [rows]                                   # each query's rows, as JSON lines
  contacts = \"rows/contacts.jsonl\"

  [[acknowledgment]]                       # what the partner answers, if it does: \"published\" or \"later\"
  when = \"published\"
  name = \"ack/{key}.txt\"
  text = \"accepted {key}\"                  # without a text: our own file, which gets this name

  [[beside]]                               # what is in a file that the contract declares beside ours
  name = \"{final}.done\"
  golden = \"golden/contacts.csv.done\"

  [server]                                 # in what the partner's server differs from OpenSSH's
  hard_links = false
  collects = true                          # the partner takes the file at once
  collects_later = true                    # or before the host looks again
  hides = [\"drop\"]                         # folders of which it shows nothing

  [expects]                                # what must be concluded where nothing goes wrong
  at_once = \"Completed(checksum)\"
  later = \"Unknown(partner_refused)\"

In names and texts of the partner's files and those beside ours stand {key}, {attempt}, {final}, {final.stem}, {final.extension},
{final.name} and {sha256}, our file's digest. In a text other braces, as those of JSON, stand for themselves.

With the key `last = \"golden/last-week.csv\"` our file of last time is still there under the same name.

A file of rows: the columns first, then one array a row; bytes are base64.

  [{\"name\": \"number\", \"of\": \"integer\"}, {\"name\": \"name\", \"of\": \"text\"}]
  [1, \"Ada\"]

A bundle whose partner.toml says `part = \"builder\"` is built and compared, and delivers nothing; one with `part = \"destination\"`
delivers the files of its cases. Neither is served.

Each case is delivered once under every fault (refusals, cut lines, full disks, servers that replace or lie), by the very code
that delivers in operation. The report says what the plugin did, what the host concluded, and whether that is true.

With --record NAME one case (--only) is delivered to a real server instead: that of a destination in the bundle's
destinations.toml, or in the file of --destinations. Every request and answer is written to tests/sessions/NAME.jsonl, and from
then on each test delivers the case again over that record, without the server: another request, or another outcome, is a
failure. Of the destination only address and credential are used. The final name must be free; the delivered file stays there.
Without --yes nothing is written: it is told what would be. Look at the file before you commit it: small files that were
read, such as acknowledgments, are in it as they are.

Exit code 0: the bundle passed; 1: it could not be tested, as where a case file is wrong; 3: there is no such bundle; 4: it failed, a host
would refuse it, or nothing was recorded.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Test {
    /// The bundle: a directory with partner.toml, its components, and its cases in tests/.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only the case of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only the faults of these names, separated by commas, such as plain or cut-after-link: for a quick look while writing.
    /// The name sessions stands for all recorded ones.
    #[arg(long, value_name = "NAMES")]
    fault: Option<String>,
    /// Write the golden files anew instead of comparing.
    #[arg(long)]
    bless: bool,
    /// Write the report as `JUnit` XML too, for build servers. A bundle that cannot be tested is a failed test in it.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    compiled: Compiled,
    /// Deliver one case to a real server, and write the session to `tests/sessions/NAME.jsonl`.
    #[arg(long, value_name = "NAME", requires = "against", conflicts_with_all = ["fault", "bless"])]
    record: Option<String>,
    /// The destination whose server that is: its name or id.
    #[arg(long, value_name = "DESTINATION", requires = "record")]
    against: Option<String>,
    /// The file that the destination is in, if it is not the bundle's destinations.toml.
    #[arg(long, value_name = "FILE", requires = "record")]
    destinations: Option<PathBuf>,
    /// Write at the real server. Without it, what would be written there is told.
    #[arg(long, requires = "record")]
    yes: bool,
}

impl Test {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        let bar = Arc::new(bar(*output));
        let (shown, told) = (Arc::clone(&bar), *output);
        let (bundle, junit) = (self.directory, Junit::open(self.junit)?);
        let options = Options {
            only: self.only,
            fault: self.fault,
            bless: self.bless,
            compiled: self.compiled.directory(),
            progress: Some(Arc::new(move |progress| show(&shown, progress, told))),
        };
        let rehearsed = match self.record.zip(self.against) {
            None => rehearse(&bundle, &options).await.map(Recording::Done),
            Some((session, destination)) => {
                let (destinations, confirmed) = (self.destinations, self.yes);
                let against = Against { session, destination, destinations, confirmed };
                record_session(&bundle, &options, &against).await
            }
        };
        bar.finish_and_clear();
        // A manifest that cannot be read is told by the rehearsal itself.
        let manifest = std::fs::read_to_string(bundle.join("partner.toml")).ok();
        let manifest = manifest.and_then(|text| Manifest::parse(&text).ok());
        let options = manifest.map(|manifest| misspelt(&manifest.options)).unwrap_or_default();
        for warning in outdated(&bundle).into_iter().chain(options) {
            output.notice(&warning);
        }
        let (document, ended, why) = match rehearsed {
            Ok(Recording::Done(report)) => {
                output.answer(&report, || shown::report(&report))?;
                junit.tested(&report)?;
                return Ok(if report.passed { Ended::Done } else { Ended::Refused });
            }
            Ok(Recording::Unconfirmed(plan)) => {
                let why = "nothing was written; repeat the command with --yes to do so";
                let document = json!({ "bundle": bundle, "outcome": "NotConfirmed", "why": why, "plan": plan });
                output.answer(&document, || format!("NotConfirmed: {why}.\n{plan}"))?;
                junit.untested(&bundle, why)?;
                return Ok(Ended::Refused);
            }
            Err(error @ RehearsalError::NameNotFree { .. }) => {
                let why = error.to_string();
                (json!({ "bundle": bundle, "outcome": "Refused", "why": why }), Ended::Refused, why)
            }
            Err(RehearsalError::NoBundle { directory }) => {
                let why = format!("{} is no directory; name the one that holds partner.toml", directory.display());
                (json!({ "bundle": directory, "outcome": "NotFound" }), Ended::NotFound, why)
            }
            Err(RehearsalError::Bundle(refused)) => {
                let why = refused.to_string();
                (json!({ "bundle": refused.bundle, "outcome": "Refused", "why": why }), Ended::Refused, why)
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                if let Err(unwritten) = junit.untested(&bundle, &format!("{error:#}")) {
                    output.notice(&format!("{unwritten:#}"));
                }
                return Err(error);
            }
        };
        let outcome = if ended == Ended::NotFound { "NotFound" } else { "Refused" };
        output.answer(&document, || format!("{outcome}: {why}"))?;
        junit.untested(&bundle, &why)?;
        Ok(ended)
    }
}

fn bar(output: Output) -> ProgressBar {
    if output.is_json() || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn show(bar: &ProgressBar, progress: Progress<'_>, output: Output) {
    // In a build server's log nothing moves, so a line says what takes its time.
    let line = |text: String| {
        if bar.is_hidden() && !output.is_json() {
            output.notice(&text);
        }
    };
    match progress {
        Progress::Loading => {
            bar.set_message("reading and compiling the bundle");
            line("reading and compiling the bundle; in JavaScript or Python up to two minutes a component, the first time".to_owned());
        }
        Progress::Recording { plan } => bar.suspend(|| output.notice(&plan.to_string())),
        Progress::Case { name, deliveries } => {
            if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} deliveries") {
                bar.set_style(style);
            }
            bar.set_length(deliveries as u64);
            bar.set_position(0);
            bar.set_message(name.to_owned());
            line(format!("{name} is delivered {}", counted(deliveries as u64, "time")));
        }
        Progress::Delivered => bar.inc(1),
    }
}
