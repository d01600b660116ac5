//! A destination that does wrong on purpose, for tests of the host. The setting `behaviour` says how; what it does not change,
//! `well` does.
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
//! | `never-send` | sends nothing, and reports what it sees |
//! | `lie-absent` | `baseline` reports the final name as absent, whatever is there |
//! | `lie-acknowledgment` | reports an acceptance of the delivery key in the setting `acknowledges` (`another-key`), in the file `acknowledgment_name` |
//! | `name-escapes` | the final name is the setting `name` (`../x`), as it stands |
//! | `name-unstable` | the final name differs from attempt to attempt: it names the attempt |
//! | `flood-report` | reports 20,000 remarks of 1 KiB each |
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
            "name-unstable" => Ok(format!("contacts-{}-{}.csv", job.delivery_key, job.attempt)),
            _ => Ok(format!("contacts-{}.csv", job.delivery_key)),
        }
    }

    fn baseline(job: &Job, final_name: &str, look: &Reader) -> Result<Listing, Failure> {
        end_badly(job, "baseline")?;
        let listing = look.list(final_name)?;
        Ok(match behaviour(job) {
            "lie-absent" => Listing { found: Found::Absent, ..listing },
            "read-outside" => Listing { extra: reach_outside(look), ..listing },
            "flood-report" => Listing { extra: flood(), ..listing },
            _ => listing,
        })
    }

    fn deliver(
        job: &Job,
        expected: &FileFacts,
        _before: &Listing,
        _auxiliary: &[String],
        look: &Reader,
        send: &Writer,
    ) -> Result<Receipt, Failure> {
        end_badly(job, "deliver")?;
        match behaviour(job) {
            "script" => return script::run(job, expected, look, send),
            "lie-receipt" => return Ok(Receipt::of(pretend(expected))),
            "never-send" => return Ok(Receipt::of(look.list(&expected.name)?)),
            _ => write(job, expected, send)?,
        }
        let receipt = Receipt::of(look.list(&expected.name)?);
        Ok(match behaviour(job) {
            "lie-acknowledgment" => Receipt { acknowledgment: Some(foreign_acknowledgment(job)), ..receipt },
            "flood-report" => Receipt { extra: flood(), ..receipt },
            _ => receipt,
        })
    }

    fn observe(
        job: &Job,
        expected: &FileFacts,
        _before: Option<&Listing>,
        _auxiliary: &[String],
        look: &Reader,
    ) -> Result<Observation, Failure> {
        end_badly(job, "observe")?;
        let listing = if behaviour(job) == "lie-receipt" { pretend(expected) } else { look.list(&expected.name)? };
        let observation = Observation::of(listing);
        Ok(match behaviour(job) {
            "lie-acknowledgment" => Observation { acknowledgment: Some(foreign_acknowledgment(job)), ..observation },
            "read-outside" => Observation { extra: reach_outside(look), ..observation },
            "flood-report" => Observation { extra: flood(), ..observation },
            _ => observation,
        })
    }
}

waybill_guest::export_destination!(Misbehaving);

fn behaviour(job: &Job) -> &str {
    job.setting_or("behaviour", "well")
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
    send.publish()?;
    match behaviour(job) {
        "loop-after-publish" => compute(),
        "panic-after-publish" => fail_loudly("after the file was published"),
        "publish-twice" => send.publish(),
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

fn foreign_acknowledgment(job: &Job) -> Acknowledgment {
    let key = job.setting_or("acknowledges", "another-key");
    Acknowledgment {
        name: job.setting_or("acknowledgment_name", "ack/another-key.txt").to_owned(),
        delivery_key: key.to_owned(),
        attempt: None,
        sha256: None,
        says: "accepted".to_owned(),
        extra: vec![],
    }
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

fn flood() -> Vec<Setting> {
    (0..20_000).map(|number| Setting { name: format!("remark-{number}"), value: "x".repeat(1024) }).collect()
}
