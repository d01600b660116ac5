//! The publish fence against any sequence of calls, judged by OpenSSH's own log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tempfile::TempDir;
use waybill::job::evidence::PublishForm;
use waybill::remote::{RemoteError, Session, Writer};
use waybill_tests::Sshd;
use waybill_tests::operations::Operation;

use super::{PATIENCE, Record, built, names, openssh_session, writer};

#[derive(Debug, Clone)]
enum Call {
    MakeDirectory(String),
    Send,
    Publish,
    PublishOver,
    /// The first of these are declared.
    Put(usize),
    PutElsewhere(String),
}

const DECLARED: [&str; 2] = ["{key}.sum", "{key}.csv.done"];

fn call() -> impl Strategy<Value = Call> {
    let elsewhere = prop_oneof![
        Just("{key}.csv".to_owned()),
        Just(".attempt-{key}.part".to_owned()),
        Just("../{key}.sum".to_owned()),
        Just("/{key}.sum".to_owned()),
        Just("./{key}.sum".to_owned()),
        Just("{key}.SUM".to_owned()),
        "[a-z./]{0,12}",
    ];
    prop_oneof![
        1 => elsewhere.clone().prop_map(Call::MakeDirectory),
        4 => Just(Call::Send),
        3 => Just(Call::Publish),
        1 => Just(Call::PublishOver),
        3 => (0..DECLARED.len()).prop_map(Call::Put),
        2 => elsewhere.prop_map(Call::PutElsewhere),
    ]
}

fn form() -> impl Strategy<Value = PublishForm> {
    prop_oneof![
        Just(PublishForm::Link),
        Just(PublishForm::Rename),
        Just(PublishForm::ExclusiveCreate),
        Just(PublishForm::PosixRename),
    ]
}

async fn run(writer: &Writer, key: &str, call: &Call) -> Result<(), RemoteError> {
    let filled = |name: &str| name.replace("{key}", key);
    match call {
        Call::MakeDirectory(name) => writer.make_directory(&filled(name)).await,
        Call::Send => writer.send().await.map(drop),
        Call::Publish => writer.publish().await,
        Call::PublishOver => writer.publish_over().await,
        Call::Put(number) => writer.put(&filled(DECLARED[*number]), b"x".to_vec()).await,
        Call::PutElsewhere(name) => writer.put(&filled(name), b"x".to_vec()).await,
    }
}

#[test]
fn fen_04_no_sequence_of_calls_creates_a_name_without_a_fence() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (sshd, session, directory) = runtime.block_on(async {
        let sshd = Arc::new(Sshd::start().await?);
        let session = openssh_session(&sshd).await?;
        anyhow::Ok((sshd, session, tempfile::tempdir()?))
    })?;
    let attempts = AtomicUsize::new(0);
    let config = Config { cases: 150, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[4; 32]);
    let sequences = (form(), prop::bool::weighted(0.25), prop::collection::vec(call(), 0..14));
    let result = TestRunner::new_with_rng(config, seed).run(&sequences, |(form, refuses, calls)| {
        let key = format!("k{}", attempts.fetch_add(1, Ordering::Relaxed));
        runtime
            .block_on(one_attempt(&sshd, &session, &directory, &key, form, refuses, &calls))
            .map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    result.map_err(|error| anyhow::anyhow!("{error}"))
}

async fn one_attempt(
    sshd: &Arc<Sshd>,
    session: &Session,
    directory: &TempDir,
    key: &str,
    form: PublishForm,
    refuses: bool,
    calls: &[Call],
) -> anyhow::Result<()> {
    let before = sshd.operations()?.len();
    let (names, record) = (names(key)?, Arc::new(Record::default()));
    record.refuses.store(refuses, Ordering::SeqCst);
    let fenced_at = Arc::new(AtomicUsize::new(usize::MAX));
    record.when_asked({
        let (sshd, fenced_at) = (Arc::clone(sshd), Arc::clone(&fenced_at));
        move || fenced_at.store(sshd.operations().unwrap().len(), Ordering::SeqCst)
    });
    let file = built(directory, b"content").await?;
    let writer = writer(session, &names, &file, form, &record);
    let mut done = Vec::new();
    for call in calls {
        done.push((call.clone(), run(&writer, key, call).await));
    }
    let sending = writer.outcome(PATIENCE).await;
    anyhow::ensure!(session.is_usable(), "the session was lost");

    // What the server's own log says of this attempt.
    let operations = sshd.operations()?;
    let mut created: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, done) in operations.iter().enumerate().skip(before) {
        if let Operation::MakeDirectory { path } = &done.operation {
            anyhow::bail!("a directory {path} was made, and no declared name has one");
        }
        if let Some(path) = done.operation.creates() {
            let name = Path::new(path).strip_prefix(sshd.files())?.to_string_lossy().into_owned();
            created.entry(name).or_default().push(at);
        }
    }
    let fenced = record.intended() == 1;
    anyhow::ensure!(record.intended() <= 1, "more than one fence");
    let temporary = names.temporary.clone().unwrap_or_default();
    for (name, at) in &created {
        anyhow::ensure!(at.len() == 1, "{name} was asked for {} times", at.len());
        if *name == temporary {
            anyhow::ensure!(at[0] < fenced_at.load(Ordering::SeqCst), "the temporary was created after the fence");
            continue;
        }
        let declared = *name == names.final_name || names.auxiliary.iter().any(|auxiliary| auxiliary.name == *name);
        anyhow::ensure!(declared, "{name} is not declared");
        anyhow::ensure!(fenced && at[0] >= fenced_at.load(Ordering::SeqCst), "{name} was created without a fence");
    }
    // And it agrees with what the host recorded.
    anyhow::ensure!(
        created.contains_key(&names.final_name) == sending.publish.is_some(),
        "{sending:?} {created:?} {done:?}"
    );
    anyhow::ensure!(record.answers().len() == usize::from(sending.publish.is_some()));
    Ok(())
}
