//! Moto's S3 server, for one test each: a store that others wrote, over TLS, which checks signatures with botocore's code and
//! lets its account do what `docs/operators.md` asks for and nothing more.
//!
//! `tests/setup.sh` installs it. What lies in it is seen and put there by rclone: neither end of that is ours.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::certificates::Authority;
use crate::object_store::{ACCESS_KEY, BUCKET, KeyFiles, PREFIX, REGION, SECRET_KEY};
use crate::services::{self, TestDirectory};
use crate::{partner_server, wait};

/// A server with one bucket, empty at first. It ends before its files go, in the order of these fields.
#[derive(Debug)]
pub struct Moto {
    _server: Child,
    port: u16,
    keys: KeyFiles,
    directory: TestDirectory,
}

impl Moto {
    pub async fn start() -> anyhow::Result<Self> {
        for directory in services::left_behind("moto")? {
            services::remove(&directory)?;
        }
        let directory = TestDirectory::new("moto")?;
        let file = |name: &str| directory.path().join(name);
        let authority = Authority::new("an authority of the house")?;
        fs::write(file("ca.pem"), authority.pem())?;
        let identity = authority.signed(&["localhost", "127.0.0.1"])?;
        fs::write(file("certificate.pem"), identity.pem())?;
        partner_server::private(&file("key.pem"), &identity.key_pem())?;

        let mut command = partner_server::python("moto_partner.py");
        command.args([BUCKET, REGION]).arg(file("certificate.pem")).arg(file("key.pem"));
        command.env("PARTNER_USER", ACCESS_KEY).env("PARTNER_PASSWORD", SECRET_KEY);
        let mut server = command
            .current_dir(directory.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(file("log"))?)
            .kill_on_drop(true)
            .spawn()
            .context("running setpriv, which is in Debian's util-linux")?;
        // It says its port once it listens there.
        let said = server.stdout.take().context("it has no output")?;
        let mut port = String::new();
        tokio::time::timeout(wait::BOUND, BufReader::new(said).read_line(&mut port))
            .await
            .context("moto is silent")??;
        let Ok(port) = port.trim().parse() else {
            bail!("moto does not start: {}; is it installed (tests/setup.sh)?", fs::read_to_string(file("log"))?);
        };
        Ok(Self { _server: server, port, keys: KeyFiles::write()?, directory })
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    pub fn key_files(&self) -> &KeyFiles {
        &self.keys
    }

    /// The authority that signed its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// The lines of `destinations.toml` that name it.
    pub fn place(&self) -> String {
        format!("{}\nca_file = '{}'", self.keys.place(&self.url()), self.ca_file().display())
    }

    /// All names below the prefix, in order.
    pub fn names(&self) -> anyhow::Result<Vec<String>> {
        let listed = String::from_utf8(self.rclone(&["lsf", "--files-only", "--recursive"], "", b"")?)?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Empty where there is none: rclone takes the name for a folder's.
    pub fn read(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        self.rclone(&["cat"], name, b"")
    }

    /// As somebody else puts an object there.
    pub fn put(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        self.rclone(&["rcat"], name, content).map(drop)
    }

    /// It waits for a process of its own, and the test with it.
    fn rclone(&self, what: &[&str], name: &str, input: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut rclone = std::process::Command::new("rclone")
            .args(what)
            .arg(format!("store:{BUCKET}/{PREFIX}/{name}"))
            // Variables of whoever runs the test may name other authorities and other keys.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .env("RCLONE_CONFIG", "/dev/null")
            .env("RCLONE_CA_CERT", self.ca_file())
            .env("RCLONE_S3_NO_CHECK_BUCKET", "true")
            .env("RCLONE_CONFIG_STORE_TYPE", "s3")
            .env("RCLONE_CONFIG_STORE_PROVIDER", "Other")
            .env("RCLONE_CONFIG_STORE_ENDPOINT", self.url())
            .env("RCLONE_CONFIG_STORE_REGION", REGION)
            .env("RCLONE_CONFIG_STORE_ACCESS_KEY_ID", ACCESS_KEY)
            .env("RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY", SECRET_KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("running rclone")?;
        // Closed with this statement, so that rclone sees the end.
        rclone.stdin.take().context("it has no input")?.write_all(input)?;
        let done = rclone.wait_with_output()?;
        anyhow::ensure!(done.status.success(), "rclone {what:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(done.stdout)
    }
}
