//! GnuPG, the program that most partners read with: makes keys and decrypts, in a directory of its own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// A home of keys without passphrases. Its agent ends with it.
pub struct Gpg {
    home: tempfile::TempDir,
}

impl Gpg {
    pub fn new() -> anyhow::Result<Self> {
        // The agent's socket lies in it, and a socket's path is short.
        Ok(Self { home: tempfile::Builder::new().prefix("wg").tempdir_in("/tmp")? })
    }

    /// A key that was made at the start of 2020. The usage and the end are in GnuPG's words: `sign`, `encr`; `never`, `20200301T000000`.
    pub fn key(&self, algorithm: &str, usage: &str, until: &str) -> anyhow::Result<String> {
        let user = format!("{usage} until {until}");
        self.run(&["--quick-generate-key", &user, algorithm, usage, until], &[])?;
        let listed = String::from_utf8(self.run(&["--with-colons", "--list-keys", &format!("={user}")], &[])?)?;
        let line = listed.lines().find(|line| line.starts_with("fpr:"));
        let fingerprint = line.and_then(|line| line.split(':').nth(9));
        Ok(fingerprint.with_context(|| format!("no fingerprint in {listed}"))?.to_owned())
    }

    /// Adds a subkey that encrypts.
    pub fn subkey(&self, fingerprint: &str, algorithm: &str, until: &str) -> anyhow::Result<()> {
        self.run(&["--quick-add-key", fingerprint, algorithm, "encr", until], &[]).map(drop)
    }

    /// Takes the revocation into effect that GnuPG prepares with each key, and makes harmless by a colon.
    pub fn revoke(&self, fingerprint: &str) -> anyhow::Result<()> {
        let prepared = self.home.path().join(format!("openpgp-revocs.d/{fingerprint}.rev"));
        let text = std::fs::read_to_string(prepared)?.replace("\n:-----", "\n-----");
        self.run(&["--import"], text.as_bytes()).map(drop)
    }

    /// The public key as armored text.
    pub fn public(&self, fingerprint: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.run(&["--armor", "--export", fingerprint], &[])?)?)
    }

    pub fn private(&self, fingerprint: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.run(&["--armor", "--export-secret-keys", fingerprint], &[])?)?)
    }

    /// What is inside. A message whose integrity is not shown is refused.
    pub fn decrypt(&self, message: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.run(&["--decrypt"], message)
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut child = Command::new("gpg")
            .arg("--homedir")
            .arg(self.home.path())
            .args(["--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""])
            .args(if arguments.contains(&"--decrypt") { &[][..] } else { &["--faked-system-time", "20200101T000000"] })
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("gpg is not installed; run: tests/setup.sh packages")?;
        let mut stdin = child.stdin.take().context("gpg has no input")?;
        // Written from another thread: an output that fills its pipe would wait for us.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output()
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "gpg {arguments:?} ended with {}: {said}", output.status);
        Ok(output.stdout)
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        // Without its directory the agent would end by itself, within a minute.
        let _ = Command::new("gpgconf").arg("--homedir").arg(self.home.path()).args(["--kill", "all"]).output();
    }
}
