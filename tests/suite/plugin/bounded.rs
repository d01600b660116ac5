//! PLG-03: a plugin that does wrong is bounded and classified, and costs nothing else.
//!
//! Every case runs on one thread beside a healthy build: if the host waited for the misbehaving guest anywhere, the
//! healthy one could not finish first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Executor as _};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::plugin::{CallError, FailureKind, LimitKind};
use waybill::source::Database::Url;
use waybill::source::{Queries, Query};
use waybill_tests::{Database, wait};

use super::fixture::{Away, Partners, Silent, Table, destination, expected};

const ROWS: u64 = 20_000;
/// An endless call has one second here; a loaded machine gets the rest, far below the default limit of 900 s.
const LATEST: Duration = Duration::from_secs(120);

type Check = fn(&CallError) -> bool;

fn is_limit(error: &CallError, kind: LimitKind) -> bool {
    matches!(error, CallError::Limit { limit, .. } if *limit == kind)
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_each_misbehaving_build_is_bounded_classified_and_costs_nothing_else() -> anyhow::Result<()> {
    let cases: &[(&[(&str, &str)], Check)] = &[
        (&[("behaviour", "loop")], |error| matches!(error, CallError::TimedOut { seconds: 1, limit: "build_seconds" })),
        (&[("behaviour", "allocate")], |error| is_limit(error, LimitKind::Memory)),
        (&[("behaviour", "output")], |error| is_limit(error, LimitKind::Output)),
        // Which of its two stacks a guest exhausts first depends on its frames.
        (&[("behaviour", "recurse")], |error| {
            is_limit(error, LimitKind::Stack)
                || matches!(error, CallError::Trapped { message } if message.contains("nested too deeply"))
        }),
        (&[("behaviour", "log-flood")], |error| matches!(error, CallError::TimedOut { .. })),
        (&[("behaviour", "slow")], |error| matches!(error, CallError::TimedOut { .. })),
        (
            &[("behaviour", "leak-handles")],
            |error| matches!(error, CallError::Limit { limit: LimitKind::Handles, detail } if detail.contains("4 queries")),
        ),
        (&[("behaviour", "too-much-entropy")], |error| is_limit(error, LimitKind::HostCall)),
        (&[("behaviour", "big-list"), ("bytes", "16777216")], |error| is_limit(error, LimitKind::HostCall)),
        (
            &[("behaviour", "big-list"), ("bytes", "2097152")],
            |error| matches!(error, CallError::Failed { kind: FailureKind::Invalid, text } if text.contains("chunks")),
        ),
        (&[("behaviour", "big-failure")], |error| is_limit(error, LimitKind::HostCall)),
        (
            &[("behaviour", "panic"), ("message", "the margins are too narrow")],
            |error| matches!(error, CallError::Trapped { message } if message.starts_with('"') && message.contains("the margins are too narrow")),
        ),
        (
            &[("behaviour", "rows-then-fail"), ("failure", "refused")],
            |error| matches!(error, CallError::Failed { kind: FailureKind::Refused, text } if text == "as the settings asked"),
        ),
    ];
    let partners = Partners::new()?;
    let hurried = partners.misbehaving().await?;
    // The same guest with time enough: a loaded machine must not end what does right, or what meets another limit first.
    std::fs::remove_dir_all(partners.path().join("bad"))?;
    partners.bundle(
        "patient",
        "misbehaving-builder",
        "misbehaving-destination",
        "[limits]\nmemory_mib = 32\noutput_mib = 1\n",
    )?;
    let patient = partners.load_only().await?;
    for (settings, is_classified) in cases {
        let healthy = destination(&patient, &[], Table(ROWS));
        let endless = ["loop", "log-flood", "slow"].contains(&settings[0].1);
        let bundle = if endless { &hurried } else { &patient };
        let bad = destination(bundle, settings, Table(10));
        let start = Instant::now();
        let (wrong, good) = tokio::join!(partners.build(bundle, &bad), partners.build(&patient, &healthy));
        assert!(start.elapsed() < LATEST, "{settings:?} took {:?}", start.elapsed());
        let error = wrong.expect_err(&format!("{settings:?} must not succeed"));
        assert!(is_classified(&error), "{settings:?} is classified as {error:?}");
        let good = good?;
        assert_eq!(good.rows, ROWS, "beside {settings:?}");
        let length = usize::try_from(good.file.bytes())?;
        assert_eq!(good.file.read_at(0, length).await?, expected(ROWS), "beside {settings:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_a_healthy_build_ends_while_another_guest_computes() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("both", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let healthy = destination(&bundle, &[], Table(1));
    let looping = destination(&bundle, &[("behaviour", "loop")], Table(1));
    let stop = CancellationToken::new();
    let computing = partners.build_until(&bundle, &looping, &stop);
    tokio::select! {
        biased;
        ended = computing => panic!("the endless loop ended: {ended:?}"),
        good = partners.build(&bundle, &healthy) => assert_eq!(good?.rows, 1),
    }
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_a_stop_request_ends_a_computing_and_a_waiting_guest() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("bad", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let looping = destination(&bundle, &[("behaviour", "loop")], Table(1));
    let waiting = destination(&bundle, &[], Silent);
    for stopped in [looping, waiting] {
        let stop = CancellationToken::new();
        let build = partners.build_until(&bundle, &stopped, &stop);
        let request = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(build, request);
        assert_eq!(ended.map(|built| built.rows), Err(CallError::Stopped));
    }
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_a_host_call_that_does_not_return_is_bounded() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    let bundle = partners.misbehaving().await?;
    let waiting = destination(&bundle, &[], Silent);
    let ended = partners.build(&bundle, &waiting).await;
    assert_eq!(ended.map(|built| built.rows), Err(CallError::TimedOut { seconds: 1, limit: "build_seconds" }));
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_a_fault_of_the_host_is_not_blamed_on_the_plugin() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("good", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let away = destination(&bundle, &[], Away);
    let error = partners.build(&bundle, &away).await.unwrap_err();
    assert!(matches!(&error, CallError::Host { what, .. } if what.contains("nobody listens")), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn plg_03_a_call_has_at_most_four_connections_to_the_tenants_database() -> anyhow::Result<()> {
    let (partners, database) = (Partners::new()?, Database::fresh().await?);
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let admin = database.admin().await?;
    // A fifth connection would be refused, and that told instead of the limit.
    let role = format!("few_{}", database.name());
    admin.execute(AssertSqlSafe(format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 4"))).await?;
    let sql = "select n::text as name from generate_series(1, 1000000) n where :tenant is not null".to_owned();
    let url = Url(database.address().url(&role, database.name()));
    let queries = Queries::new(Uuid::nil(), BTreeMap::from([("rows".to_owned(), Query { sql, database: url })]));
    let leaking = destination(&bundle, &[("behaviour", "leak-handles")], queries);
    let error = partners.build(&bundle, &leaking).await.unwrap_err();
    let told = "more than 4 queries were open at once; let go of one before the next is opened".to_owned();
    assert_eq!(error, CallError::Limit { limit: LimitKind::Handles, detail: told });
    wait::until("the call's connections to end", async || {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1";
        let count: i64 = sqlx::query_scalar(count).bind(&role).fetch_one(&admin).await?;
        Ok((count == 0).then_some(()))
    })
    .await
}

/// With so many remembered values the search for them takes milliseconds a message.
#[tokio::test(flavor = "current_thread")]
async fn plg_03_messages_past_the_last_that_is_written_cost_next_to_nothing() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "[limits]\nbuild_seconds = 60\n")?;
    let bundle = partners.load_only().await?;
    let flooding = destination(&bundle, &[("behaviour", "log-flood"), ("messages", "50000")], Table(100_000));
    assert_eq!(partners.build(&bundle, &flooding).await.map(|built| built.rows), Ok(0));
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn plg_03_a_file_at_its_limit_is_whole_and_one_byte_more_is_none() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("good", "misbehaving-builder", "misbehaving-destination", "[limits]\noutput_mib = 1\n")?;
    let bundle = partners.load_only().await?;
    let build = async |bytes: u64| {
        let bytes = bytes.to_string();
        let one = destination(&bundle, &[("behaviour", "big-list"), ("bytes", &bytes)], Table(0));
        partners.build(&bundle, &one).await
    };
    assert_eq!(build(1 << 20).await?.file.bytes(), 1 << 20);
    let draft = partners.spool.create((1 << 20) - 1)?;
    let bytes = (1_u32 << 20).to_string();
    let one = destination(&bundle, &[("behaviour", "big-list"), ("bytes", &bytes)], Table(0));
    let error = bundle.build(&one, &super::fixture::job(&one), draft, &CancellationToken::new()).await.unwrap_err();
    assert!(is_limit(&error, LimitKind::Output), "{error:?}");
    Ok(())
}
