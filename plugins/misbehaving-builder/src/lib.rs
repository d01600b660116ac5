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
//! | `tell` | logs the values of its first row, and fails with them (or panics, if the setting `loudly` is there) |
//! | `log-flood` | logs without an end |
//! | `leak-handles` | opens the query without an end, and never lets go |
//! | `big-list` | writes as many bytes in one call as the setting `bytes` says (64 MiB) |
//! | `big-failure` | fails with a text of 8 MiB |
//! | `slow` | opens and reads the query over and over |
//! | `too-much-entropy` | asks for 4 GiB of random bytes |
//! | `nothing` | writes nothing and reports a row |

use std::hint::black_box;
use std::io::Write as _;

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
            "log-flood" => loop {
                log::info("the same message, again and again");
            },
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

waybill_guest::export_builder!(Misbehaving);

fn tell(job: &Job) -> Result<Built, Failure> {
    let row = open(job)?.next().transpose()?.unwrap_or_default();
    let values: Vec<String> =
        row.into_iter().filter_map(|value| if let Value::Text(text) = value { Some(text) } else { None }).collect();
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
        for value in row? {
            match value {
                Value::Text(text) => writeln!(output, "{text}")?,
                other => writeln!(output, "{other:?}")?,
            }
        }
        built.rows += 1;
    }
    Ok(built)
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
