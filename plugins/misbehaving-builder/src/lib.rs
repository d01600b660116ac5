//! A builder that does wrong on purpose, for tests of the host. The setting `behaviour` says how:
//!
//! | behaviour | what it does |
//! | --- | --- |
//! | `well` (the default) | writes the rows of the query `rows`, one value a line |
//! | `loop` | computes without an end |
//! | `allocate` | takes memory without an end |
//! | `output` | writes without an end |
//! | `recurse` | calls itself without an end |
//! | `panic` | panics with the message of the setting `message` |
//! | `rows-then-fail` | writes some rows, then fails with the kind of the setting `failure` |
//! | `swallow-lost-rows` | does as `well`, and takes rows that it was refused for the end of the rows |
//! | `stop-at-a-short-batch` | takes a batch with fewer rows than it asked for to be the last; holds on to the query, if the setting `hold` is there |
//! | `name-the-attempt` | writes the attempt's id into the file |
//! | `swallow-full-spool` | writes each row by a call of its own, and goes on past those that failed |
//! | `tell` | logs the values of its first row, and fails with them (or panics, if the setting `loudly` is there) |
//! | `log-flood` | reads the rows, then logs without an end, or as many messages as the setting `messages` says |
//! | `leak-handles` | opens the query without an end, and never lets go |
//! | `big-list` | writes as many bytes in one call as the setting `bytes` says (64 MiB) |
//! | `big-failure` | fails with a text of 8 MiB |
//! | `slow` | opens and reads the query over and over |
//! | `too-much-entropy` | asks for 4 GiB of random bytes |
//! | `nothing` | writes nothing and reports a row |

use std::hint::black_box;
use std::io::Write as _;

use waybill_guest::export::BuilderExport;
use waybill_guest::export::builder::Guest;
use waybill_guest::export::builder::waybill::partner::output::File;
use waybill_guest::export::builder::waybill::partner::source;
use waybill_guest::{Builder, Built, Failure, Job, Output, Rows, Value, log, random, rows};

struct Misbehaving;

impl Builder for Misbehaving {
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
        match job.setting_or("behaviour", "well") {
            "well" => well(job, output, u64::MAX),
            "loop" => compute(),
            "allocate" => allocate(),
            "output" => loop {
                output.append(&[b'x'; 4096])?;
            },
            "recurse" => Ok(Built { rows: recurse(job.version.into()) }),
            "panic" => fail_loudly(job.setting_or("message", "as the settings asked")),
            "rows-then-fail" => {
                well(job, output, 3)?;
                Err(failure(job))
            }
            "tell" => tell(job),
            "swallow-lost-rows" => swallow_lost_rows(job, output),
            "stop-at-a-short-batch" => stop_at_a_short_batch(job, output),
            "name-the-attempt" => {
                writeln!(output, "{}", job.attempt)?;
                well(job, output, u64::MAX)
            }
            "log-flood" => log_flood(job),
            "leak-handles" => leak_handles(job),
            "big-list" => {
                output.append_at_once(&vec![b'x'; job.parsed("bytes")?.unwrap_or(64 << 20)])?;
                Ok(Built { rows: 0 })
            }
            "big-failure" => Err(Failure::Other("x".repeat(8 << 20))),
            "slow" => loop {
                for row in open(job)? {
                    black_box(row?);
                }
            },
            "too-much-entropy" => Ok(Built { rows: random(u32::MAX).len() as u64 }),
            "nothing" => Ok(Built { rows: 1 }),
            unknown => Err(Failure::Invalid(format!("the setting \"behaviour\" is {unknown:?}: no such behaviour"))),
        }
    }
}

/// What is exported: the SDK lets nobody go on past a write that failed.
struct WithoutTheSdk;

impl Guest for WithoutTheSdk {
    fn build(job: Job, output: &File) -> Result<Built, Failure> {
        if job.setting("behaviour") == Some("swallow-full-spool") {
            return swallow_full_spool(&job, output);
        }
        BuilderExport::<Misbehaving>::build(job, output)
    }
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, clippy::all, clippy::pedantic, reason = "generated: the component model's entry points")]
mod exported {
    use super::WithoutTheSdk;

    waybill_guest::export::builder::export_world!(WithoutTheSdk with_types_in waybill_guest::export::builder);
}

// Outside of WebAssembly there is no host to export to.
#[cfg(not(target_family = "wasm"))]
const _: () = {
    const fn implements<T: Guest>() {}
    implements::<WithoutTheSdk>();
};

fn swallow_lost_rows(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
    let mut built = Built { rows: 0 };
    for row in open(job).into_iter().flatten() {
        let Ok(row) = row else { break };
        write_row(row, output)?;
        built.rows += 1;
    }
    Ok(built)
}

/// Without the SDK, which reads on.
fn stop_at_a_short_batch(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
    const ASKED: u32 = 100;
    let mut built = Built { rows: 0 };
    let rows = source::open(job.setting_or("query", "rows"), &job.scope)?;
    loop {
        let batch = rows.next(ASKED)?;
        let short = batch.len() < ASKED as usize;
        for row in batch {
            write_row(row, output)?;
            built.rows += 1;
        }
        if short {
            if job.setting("hold").is_some() {
                std::mem::forget(rows);
            }
            return Ok(built);
        }
    }
}

fn swallow_full_spool(job: &Job, file: &File) -> Result<Built, Failure> {
    let mut built = Built { rows: 0 };
    for row in open(job)? {
        for value in row? {
            if let Value::Text(text) = value {
                // Refused or not, it goes on.
                let _ = file.write(text.as_bytes());
            }
        }
        built.rows += 1;
    }
    Ok(built)
}

fn log_flood(job: &Job) -> Result<Built, Failure> {
    for row in open(job)? {
        black_box(row?);
    }
    let most = job.parsed("messages")?.unwrap_or(u64::MAX);
    for _ in 0..most {
        log::error("the same message, again and again");
    }
    Ok(Built { rows: 0 })
}

fn tell(job: &Job) -> Result<Built, Failure> {
    let row = open(job)?.next().transpose()?.unwrap_or_default();
    let values = row.into_iter().filter_map(|value| match value {
        Value::Null | Value::Boolean(_) => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Text(text) => Some(text),
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
    });
    let values: Vec<String> = values.collect();
    let told = format!("the first row holds {}", values.join(" and "));
    log::info(&told);
    log::error(&told);
    if job.setting("loudly").is_some() {
        fail_loudly(&told)
    }
    Err(Failure::Other(told))
}

fn open(job: &Job) -> Result<Rows, Failure> {
    rows(job.setting_or("query", "rows"), &job.scope)
}

fn well(job: &Job, output: &mut Output<'_>, most: u64) -> Result<Built, Failure> {
    let mut built = Built { rows: 0 };
    for row in open(job)? {
        if built.rows == most {
            break;
        }
        write_row(row?, output)?;
        built.rows += 1;
    }
    Ok(built)
}

fn write_row(row: Vec<Value>, output: &mut Output<'_>) -> Result<(), Failure> {
    for value in row {
        match value {
            Value::Text(text) => writeln!(output, "{text}")?,
            other => writeln!(output, "{other:?}")?,
        }
    }
    Ok(())
}

fn compute() -> ! {
    let mut count: u64 = 0;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

fn allocate() -> ! {
    let mut held: Vec<Vec<u8>> = vec![];
    loop {
        held.push(black_box(vec![1; 1 << 20]));
    }
}

/// The frame is large and read after the call, so that no compiler makes a loop of it.
#[expect(unconditional_recursion, reason = "it is what the test asks for")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(black_box(depth + 1)) + frame.iter().sum::<u64>()
}

#[expect(clippy::panic, reason = "it is what the test asks for")]
fn fail_loudly(message: &str) -> ! {
    panic!("{message}")
}

fn leak_handles(job: &Job) -> ! {
    loop {
        match open(job) {
            Ok(rows) => std::mem::forget(rows),
            Err(failure) => fail_loudly(&format!("no more handles: {failure}")),
        }
    }
}

/// A failure of each kind, by its name.
fn failure(job: &Job) -> Failure {
    let text = job.setting_or("message", "as the settings asked").to_owned();
    match job.setting_or("failure", "other") {
        "stopped" => Failure::Stopped,
        "forbidden" => Failure::Forbidden(text),
        "refused" => Failure::Refused(text),
        "unknown" => Failure::Unknown(text),
        "invalid" => Failure::Invalid(text),
        _ => Failure::Other(text),
    }
}
