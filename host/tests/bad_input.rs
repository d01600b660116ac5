//! The program itself, given what it cannot work with: exit code 1, one sentence on standard error, nothing else.
//!
//! It is here and not in the suite because only a package's own tests are promised its built program.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

const JOB: &str = "0190a6c4-0000-7000-8000-000000000001";

/// Runs the program in this directory, without any setting of the environment that runs the tests.
fn waybill(directory: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> anyhow::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
    command.current_dir(directory).env_clear().env("RUST_BACKTRACE", "1").args(arguments);
    Ok(command.envs(settings.iter().copied()).output()?)
}

/// The one sentence of a failed command, after checking that it is that.
fn sentence(output: &Output) -> anyhow::Result<String> {
    let said = String::from_utf8(output.stderr.clone())?;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let errors: Vec<&str> = said.lines().collect();
    let [sentence] = errors.as_slice() else { anyhow::bail!("{} lines instead of one: {said}", errors.len()) };
    assert!(sentence.starts_with("error: "), "{sentence}");
    for noise in ["panicked", "backtrace", "anyhow", "Os {"] {
        assert!(!sentence.contains(noise), "{noise:?} is in: {sentence}");
    }
    Ok((*sentence).to_owned())
}

fn assert_names(sentence: &str, names: &[&str]) {
    for name in names {
        assert!(sentence.contains(name), "{name:?} is not in: {sentence}");
    }
}

#[test]
fn bad_input_a_command_without_a_database_says_how_to_name_one() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let said = sentence(&waybill(directory.path(), &["job", "show", JOB, "--tenant", JOB], &[])?)?;
    assert_names(&said, &["no database", "[database] url", "WAYBILL_DATABASE_URL", "--embedded"]);
    let said = sentence(&waybill(directory.path(), &["serve"], &[])?)?;
    assert_names(&said, &["no database", "WAYBILL_DATABASE_URL"]);
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "something was made");
    Ok(())
}

#[test]
fn bad_input_a_misspelt_key_of_the_configuration_is_named_with_its_line() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("waybill.toml"), "[worker]\nconcurency = 3\n")?;
    for arguments in [&["serve"][..], &["job", "show", JOB, "--tenant", JOB]] {
        let arguments = [arguments, &["--config", "waybill.toml"]].concat();
        let said = sentence(&waybill(directory.path(), &arguments, &[])?)?;
        assert_names(&said, &["waybill.toml", "line 2", "`concurency`", "`concurrency`"]);
    }
    let said = sentence(&waybill(directory.path(), &["serve", "--config", "nowhere.toml"], &[])?)?;
    assert_names(&said, &["nowhere.toml", "create it", "--config"]);
    Ok(())
}

#[test]
fn bad_input_an_unreachable_database_is_named_and_no_password_is_told() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let url = format!("postgres://somebody:canary-77@127.0.0.1:{port}/waybill");
    let said = sentence(&waybill(directory.path(), &["serve"], &[("WAYBILL_DATABASE_URL", &url)])?)?;
    assert_names(&said, &["waybill_worker", &format!("127.0.0.1:{port}/waybill"), "refused", "waybill migrate"]);
    assert!(!said.contains("canary"), "a password was told: {said}");
    let said = sentence(&waybill(directory.path(), &["serve"], &[("WAYBILL_DATABASE_URL", "127.0.0.1/waybill")])?)?;
    assert_names(&said, &["postgres://user@host/database"]);
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "something was made");
    Ok(())
}
