//! Calls in any order, for properties over sequences of them.
//!
//! The setting `script`, or the scope's entry, is a list of steps, separated by commas. Each is made whatever the ones before it answered, and
//! `{final}` in a name stands for the final name. The receipt reports each answer in order: the step, and `ok` or the failure.
//!
//! | step | call |
//! | --- | --- |
//! | `send`, `publish`, `publish-over` | the writer's |
//! | `put:NAME`, `mkdir:NAME` | the writer's `put` of a few bytes, and `make-directory` |
//! | `put-told` | the writer's `put` of each name that the call was told |
//! | `stat:NAME`, `read:NAME`, `digest:NAME`, `list:DIRECTORY` | the reader's |
//! | `panic` | ends the call there |

use waybill_guest::{Failure, Job, Reader, Receipt, Setting, Writer};

/// One step of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Send,
    Publish,
    PublishOver,
    Put(&'a str),
    PutTold,
    MakeDirectory(&'a str),
    Stat(&'a str),
    Read(&'a str),
    Digest(&'a str),
    List(&'a str),
    Panic,
}

impl<'a> Step<'a> {
    fn parse(text: &'a str) -> Result<Self, Failure> {
        Ok(match text.split_once(':') {
            None => match text {
                "send" => Self::Send,
                "publish" => Self::Publish,
                "publish-over" => Self::PublishOver,
                "put-told" => Self::PutTold,
                "panic" => Self::Panic,
                _ => return Err(unknown(text)),
            },
            Some((call, name)) => match call {
                "put" => Self::Put(name),
                "mkdir" => Self::MakeDirectory(name),
                "stat" => Self::Stat(name),
                "read" => Self::Read(name),
                "digest" => Self::Digest(name),
                "list" => Self::List(name),
                _ => return Err(unknown(text)),
            },
        })
    }

    fn make(self, told: &Told<'_>, look: &Reader, send: &Writer) -> Result<(), Failure> {
        let named = |name: &str| name.replace("{final}", told.final_name);
        match self {
            Self::Send => send.send().map(drop),
            Self::Publish => send.publish(),
            Self::PublishOver => send.publish_over(),
            Self::Put(name) => send.put(&named(name), b"put by a script"),
            Self::PutTold => told.auxiliary.iter().try_for_each(|name| send.put(name, b"put by a script")),
            Self::MakeDirectory(name) => send.make_directory(&named(name)),
            Self::Stat(name) => look.stat(&named(name)).map(drop),
            Self::Read(name) => look.read(&named(name), 0, 1024).map(drop),
            Self::Digest(name) => look.digest(&named(name), "sha256").map(drop),
            Self::List(name) => look.entries(&named(name), "", 100).map(drop),
            Self::Panic => crate::fail_loudly("the script ends here"),
        }
    }
}

/// The names that the call was told.
pub struct Told<'a> {
    pub final_name: &'a str,
    pub auxiliary: &'a [String],
}

/// Makes all steps. A script with an unknown step makes none.
pub fn run(job: &Job, told: &Told<'_>, look: &Reader, send: &Writer) -> Result<Receipt, Failure> {
    let steps = parse(job.scope("script").unwrap_or_else(|| job.setting_or("script", "")))?;
    let mut receipt = Receipt { listing: None, acknowledgment: None, auxiliary: vec![], extra: vec![] };
    for (text, step) in steps {
        let value = match step.make(told, look, send) {
            Ok(()) => "ok".to_owned(),
            Err(failure) => failure.to_string(),
        };
        receipt.extra.push(Setting { name: text.to_owned(), value });
    }
    Ok(receipt)
}

fn parse(script: &str) -> Result<Vec<(&str, Step<'_>)>, Failure> {
    let steps = script.split(',').map(str::trim).filter(|text| !text.is_empty());
    steps.map(|text| Ok((text, Step::parse(text)?))).collect()
}

fn unknown(step: &str) -> Failure {
    Failure::Invalid(format!("the setting \"script\" has the step {step:?}, which is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_in_order() {
        let steps: Vec<_> =
            parse("send, put:{final}.done,publish,,stat:a:b").unwrap().into_iter().map(|(_, step)| step).collect();
        assert_eq!(steps, [Step::Send, Step::Put("{final}.done"), Step::Publish, Step::Stat("a:b")]);
    }

    #[test]
    fn an_unknown_step_is_named() {
        for step in ["sned", "send:x", "mkdri:x"] {
            let failure = parse(step).unwrap_err();
            assert!(failure.reason().contains(step), "{failure:?}");
        }
    }
}
