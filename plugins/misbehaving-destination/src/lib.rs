//! A destination that does wrong on purpose, for tests of the host. The setting `behaviour` says how, or the entry `behaviour` of the
//! job's scope; what it does not change, `well` does.
//!
//! | behaviour | what it does |
//! | --- | --- |
//! | `well` (the default) | sends, publishes, looks |
//! | `loop`, `panic`, `fail` | in the call that the setting `in` names (`deliver`): computes without an end, panics, fails |
//! | `loop-after-send`, `loop-after-publish`, `panic-after-send`, `panic-after-publish` | the same, at that point of `deliver` |
//! | `publish-without-send`, `publish-twice`, `send-twice` | what it says, and hands on the failure |
//! | `publish-over` | sends, and publishes in the overwriting form, agreed or not |
//! | `put-before-send`, `put-undeclared`, `put-final-name` | puts `FINAL.done` first; puts `undeclared.txt` last; puts the final name itself, before and after sending |
//! | `read-outside` | in `baseline` and `observe`: tries to reach names outside, and reports those that it reached as `reached` |
//! | `lie-receipt` | sends nothing, and reports the expected file as seen, digest and all; in `observe` too |
//! | `never-send`, `never-publish` | sends nothing, or sends and does not publish; reports what it sees |
//! | `lie-absent` | reports the final name as absent, whatever is there |
//! | `lie-digest` | reports what it sees with the size and digest of the expected file |
//! | `lie-name`, `lie-baseline-name` | reports a look at the final name as one at `somebody-elses.csv`: from `deliver` on, or in `baseline` |
//! | `tell-auxiliary` | reports at a later look the names that it was told |
//! | `lie-auxiliary` | reports `FINAL.done` as put, and puts nothing |
//! | `fail-after-publish` | publishes, and fails |
//! | `lie-acknowledgment`, `lie-own-acknowledgment` | reports an acceptance of the delivery key `another-key`, or of its own, in the file `answers/KEY.txt` |
//! | `name-escapes` | the final name is the setting `name` (`../x`), as it stands |
//! | `name-unstable` | the final name differs from attempt to attempt: it names the attempt |
//! | `name-of-job`, `name-of-version` | the final name names the job's id, or the version of its terms |
//! | `quote` | does well, and puts the setting `message` into every text that it reports, from `deliver` on; in `baseline` into all but the name |
//! | `flood-report` | reports 20,000 remarks of 1 KiB each |
//! | `dump` | reports all that it was told of its job, settings and all, as remarks named `job` |
//! | `script` | in `deliver`: the calls of the setting `script`, `script.rs` |

mod script;

use std::hint::black_box;

use waybill_guest::{
    Acknowledgment, Destination, Entry, Failure, FileFacts, Found, Job, Listing, Observation, Reader, Receipt, Setting,
    Writer,
};

struct Misbehaving;

impl Destination for Misbehaving {
    fn final_name(job: &Job) -> Result<String, Failure> {
        end_badly(job, "final-name")?;
        match behaviour(job) {
            "name-escapes" => Ok(job.setting_or("name", "../x").to_owned()),
            "name-of-job" => Ok(format!("contacts-{}-{}.csv", job.delivery_key, job.id)),
            "name-of-version" => Ok(format!("contacts-{}-{}.csv", job.delivery_key, job.version)),
            "name-unstable" => Ok(format!("contacts-{}-{}.csv", job.delivery_key, job.attempt)),
            _ => Ok(format!("contacts-{}.csv", job.delivery_key)),
        }
    }

    fn baseline(job: &Job, final_name: &str, look: &Reader) -> Result<Listing, Failure> {
        end_badly(job, "baseline")?;
        let listing = look.list(final_name)?;
        Ok(match behaviour(job) {
            "read-outside" => Listing { extra: reach_outside(look), ..listing },
            "flood-report" => Listing { extra: flood(), ..listing },
            "quote" => Listing { found: Found::NotVisible(message(job)), extra: vec![remark(job)], ..listing },
            _ => told(job, None, listing),
        })
    }

    fn deliver(
        job: &Job,
        expected: &FileFacts,
        _before: &Listing,
        auxiliary: &[String],
        look: &Reader,
        send: &Writer,
    ) -> Result<Receipt, Failure> {
        end_badly(job, "deliver")?;
        match behaviour(job) {
            "script" => {
                return script::run(job, &script::Told { final_name: &expected.name, auxiliary }, look, send);
            }
            "lie-receipt" => return Ok(Receipt::of(pretend(expected))),
            "never-send" => return Ok(Receipt::of(look.list(&expected.name)?)),
            _ => write(job, expected, send)?,
        }
        let receipt = Receipt {
            acknowledgment: acknowledgment(job),
            ..Receipt::of(told(job, Some(expected), look.list(&expected.name)?))
        };
        Ok(match behaviour(job) {
            "lie-auxiliary" => Receipt { auxiliary: vec![format!("{}.done", expected.name)], ..receipt },
            "flood-report" => Receipt { extra: flood(), ..receipt },
            "dump" => Receipt { extra: dump(job), ..receipt },
            "quote" => quote(job),
            _ => receipt,
        })
    }

    fn observe(
        job: &Job,
        expected: &FileFacts,
        _before: Option<&Listing>,
        auxiliary: &[String],
        look: &Reader,
    ) -> Result<Observation, Failure> {
        end_badly(job, "observe")?;
        let listing = if behaviour(job) == "lie-receipt" { pretend(expected) } else { look.list(&expected.name)? };
        let observation =
            Observation { acknowledgment: acknowledgment(job), ..Observation::of(told(job, Some(expected), listing)) };
        Ok(match behaviour(job) {
            "read-outside" => Observation { extra: reach_outside(look), ..observation },
            "tell-auxiliary" => {
                Observation { extra: auxiliary.iter().map(|name| told_name(name)).collect(), ..observation }
            }
            "flood-report" => Observation { extra: flood(), ..observation },
            _ => observation,
        })
    }
}

waybill_guest::export_destination!(Misbehaving);

fn told_name(name: &str) -> Setting {
    Setting { name: "auxiliary".to_owned(), value: name.to_owned() }
}

fn behaviour(job: &Job) -> &str {
    job.scope("behaviour").unwrap_or_else(|| job.setting_or("behaviour", "well"))
}

/// What it says of a look.
fn told(job: &Job, expected: Option<&FileFacts>, listing: Listing) -> Listing {
    match (behaviour(job), expected) {
        ("lie-absent", _) => Listing { found: Found::Absent, sha256: None, ..listing },
        ("lie-name", Some(_)) | ("lie-baseline-name", None) => {
            Listing { name: "somebody-elses.csv".to_owned(), ..listing }
        }
        ("lie-digest", Some(expected)) => pretend(expected),
        _ => listing,
    }
}

/// The writing part of `deliver`.
fn write(job: &Job, expected: &FileFacts, send: &Writer) -> Result<(), Failure> {
    match behaviour(job) {
        "publish-without-send" => return send.publish(),
        "put-before-send" => send.put(&format!("{}.done", expected.name), b"too early")?,
        "put-final-name" => {
            // Refused or not, it goes on: the second one comes at a time when a declared name would be allowed.
            let _ = send.put(&expected.name, b"not the file");
        }
        _ => {}
    }
    send.send()?;
    match behaviour(job) {
        "loop-after-send" => compute(),
        "panic-after-send" => fail_loudly("after the file was sent"),
        "send-twice" => drop(send.send()?),
        "put-final-name" => return send.put(&expected.name, b"not the file"),
        "publish-over" => return send.publish_over(),
        _ => {}
    }
    if behaviour(job) == "never-publish" {
        return Ok(());
    }
    send.publish()?;
    match behaviour(job) {
        "loop-after-publish" => compute(),
        "panic-after-publish" => fail_loudly("after the file was published"),
        "publish-twice" => send.publish(),
        "fail-after-publish" => Err(Failure::Other("as the settings asked".to_owned())),
        "put-undeclared" => send.put("undeclared.txt", b"nobody agreed to this"),
        _ => Ok(()),
    }
}

/// Ends the call that the setting `in` names.
fn end_badly(job: &Job, call: &str) -> Result<(), Failure> {
    if job.setting_or("in", "deliver") == call {
        match behaviour(job) {
            "loop" => compute(),
            "panic" => fail_loudly(job.setting_or("message", "as the settings asked")),
            "fail" => return Err(Failure::Other(job.setting_or("message", "as the settings asked").to_owned())),
            _ => {}
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

#[expect(clippy::panic, reason = "it is what the test asks for")]
fn fail_loudly(message: &str) -> ! {
    panic!("{message}")
}

/// The expected file, as if it had been seen.
fn pretend(expected: &FileFacts) -> Listing {
    let entry = Entry {
        name: expected.name.clone(),
        kind: "file".to_owned(),
        bytes: Some(expected.bytes),
        modified: Some(1_700_000_000),
    };
    Listing {
        name: expected.name.clone(),
        found: Found::Present(entry),
        sha256: Some(expected.sha256.clone()),
        extra: vec![],
    }
}

/// An acceptance that nobody wrote.
fn acknowledgment(job: &Job) -> Option<Acknowledgment> {
    let key = match behaviour(job) {
        "lie-acknowledgment" => "another-key",
        "lie-own-acknowledgment" => &job.delivery_key,
        _ => return None,
    };
    Some(Acknowledgment {
        name: format!("answers/{key}.txt"),
        delivery_key: key.to_owned(),
        attempt: Some(job.attempt.clone()),
        sha256: None,
        says: "accepted".to_owned(),
        extra: vec![],
    })
}

/// A receipt that says the message in every text that it has.
fn quote(job: &Job) -> Receipt {
    let entry = Entry { name: message(job), kind: message(job), bytes: None, modified: None };
    let acknowledgment = Acknowledgment {
        name: message(job),
        delivery_key: message(job),
        attempt: Some(message(job)),
        sha256: None,
        says: message(job),
        extra: vec![remark(job)],
    };
    Receipt {
        listing: Some(Listing {
            name: message(job),
            found: Found::Present(entry),
            sha256: None,
            extra: vec![remark(job)],
        }),
        acknowledgment: Some(acknowledgment),
        auxiliary: vec![message(job)],
        extra: vec![remark(job)],
    }
}

fn message(job: &Job) -> String {
    job.setting_or("message", "as the settings asked").to_owned()
}

fn remark(job: &Job) -> Setting {
    Setting { name: message(job), value: message(job) }
}

/// Tries every way of looking at names that no manifest declares, and reports each that was answered.
fn reach_outside(look: &Reader) -> Vec<Setting> {
    const OUTSIDE: [&str; 10] = [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "/",
        "",
        ".",
        "sub/../../x",
        "somebody-elses.csv",
        "back\\slash",
        "nul\0byte",
    ];
    let mut reached = vec![];
    let mut note = |how: &str, name: &str| {
        reached.push(Setting { name: "reached".to_owned(), value: format!("{how} {name:?}") });
    };
    for name in OUTSIDE {
        if look.stat(name).is_ok() {
            note("stat", name);
        }
        if look.read(name, 0, 100).is_ok() {
            note("read", name);
        }
        if look.digest(name, "sha256").is_ok() {
            note("digest", name);
        }
        // The directory itself may be listed, but only what is declared may come of it.
        match look.entries(name, "", 1000) {
            Ok(_) if !matches!(name, "" | ".") => note("entries", name),
            Ok(entries) => entries
                .iter()
                .filter(|entry| OUTSIDE.contains(&entry.name.as_str()))
                .for_each(|entry| note("entries", &entry.name)),
            Err(_) => {}
        }
    }
    reached
}

/// Each setting, and then all of it, in remarks as long as the host keeps them.
fn dump(job: &Job) -> Vec<Setting> {
    let whole: Vec<char> = format!("{job:?}").chars().collect();
    let parts = whole.chunks(500).map(|part| Setting { name: "job".to_owned(), value: part.iter().collect() });
    job.settings.iter().cloned().chain(parts).collect()
}

fn flood() -> Vec<Setting> {
    (0..20_000).map(|number| Setting { name: format!("remark-{number}"), value: "x".repeat(1024) }).collect()
}
