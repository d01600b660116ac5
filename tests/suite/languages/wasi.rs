//! What the host answers a runtime that imports WASI, seen from a Python plugin that reaches for what it does not have.

use waybill::plugin::CallError;

use crate::plugin::fixture::{Partners, Table, destination};

/// The file that such a build wrote, or how it failed.
async fn build(partners: &Partners, how: &str) -> anyhow::Result<Result<String, CallError>> {
    partners.bundle("reaching", "misbehaving-python", "sftp-destination", "")?;
    let turn = waybill_tests::house::compiling().await?;
    let bundle = partners.load_only().await?;
    drop(turn);
    Ok(match partners.build(&bundle, &destination(&bundle, &[("how", how)], Table(0))).await {
        Ok(built) => Ok(String::from_utf8(built.file.read_at(0, 4096).await?.to_vec())?),
        Err(error) => Err(error),
    })
}

#[tokio::test]
async fn plg_07_an_empty_wasi_answers_a_runtime_and_hands_a_plugin_nothing() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    for (how, told) in [
        ("raise", "KeyError: 'missing'"),
        ("sleep", "wasi:clocks/"),
        ("file", "/etc/passwd"),
        ("socket", "wasi:sockets/"),
    ] {
        let error = build(&partners, how).await?.expect_err(how);
        let CallError::Trapped { message } = &error else { panic!("{how}: {error:?}") };
        assert!(message.contains(told), "{how}: {message}");
    }
    assert_eq!(build(&partners, "print").await?, Ok(String::new()), "what is printed goes to the log");
    // When the job was created, 2026-03-02T08:15:00Z, however often it is asked.
    assert_eq!(build(&partners, "clock").await?, Ok("1772439300.0".to_owned()));
    assert_eq!(build(&partners, "environment").await?, Ok("{}".to_owned()));
    let (first, second) = (build(&partners, "random").await?, build(&partners, "random").await?);
    assert!(first.is_ok() && first != second, "a builder's runtime has randomness: {first:?}");
    Ok(())
}
