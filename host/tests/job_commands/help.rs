//! Help and wrong arguments.

use std::process::Command;

#[test]
fn cli_01_every_job_command_has_help_with_an_example() -> anyhow::Result<()> {
    let commands = ["create", "list", "show", "explain", "watch", "edit", "cancel", "replace", "reconcile", "correct"];
    for command in commands {
        let output =
            Command::new(env!("CARGO_BIN_EXE_waybill")).env_clear().args(["job", command, "--help"]).output()?;
        let help = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{command}");
        assert!(help.contains(&format!("Example:\n  waybill job {command} ")), "{help}");
        assert!(help.contains("--json"), "{help}");
    }
    for command in ["watch", "edit", "cancel", "replace", "reconcile", "correct"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_waybill")).env_clear().args(["job", command, "--help"]).output()?;
        assert!(String::from_utf8(output.stdout)?.contains("Exit code 0: "), "{command}");
    }
    Ok(())
}

#[test]
fn cli_01_every_command_for_partners_and_bundles_has_help_with_an_example() -> anyhow::Result<()> {
    let partner = ["list", "show", "check", "enable", "disable"].map(|command| ["partner", command]);
    for command in partner.into_iter().chain([["plugin", "inspect"]]) {
        let output = Command::new(env!("CARGO_BIN_EXE_waybill")).env_clear().args(command).arg("--help").output()?;
        let help = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{command:?}");
        assert!(help.contains(&format!("Example:\n  waybill {} ", command.join(" ")).trim_end().to_owned()), "{help}");
        assert!(help.contains("--json"), "{help}");
    }
    Ok(())
}

#[test]
fn cli_01_wrong_arguments_end_with_code_2_and_say_what_is_right() -> anyhow::Result<()> {
    let id = "0190a6c4-0000-7000-8000-000000000001";
    let common = ["--tenant", id, "--as", "rosa"];
    for (arguments, says) in [
        (&["edit", id, "--version", "1"][..], "--scope"),
        (&["edit", id, "--version", "1", "--not-before", "2030-01-01T00:00:00Z", "--no-not-before"], "--no-not-before"),
        (&["edit", id, "--scope", "a=b"], "--version"),
        (&["replace", id], "--reason"),
        (&["reconcile", id, "--outcome", "lost", "--reason", "r", "--evidence", "e"], "not-delivered"),
        (
            &[
                "correct",
                id,
                "--from",
                "completed",
                "--to",
                "failed",
                "--reason",
                "r",
                "--evidence",
                "e",
                "--failure",
                "BuildFailed",
            ],
            "never authorized",
        ),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_waybill")).env_clear().arg("job").args(arguments).args(common).output()?;
        let said = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    Ok(())
}
