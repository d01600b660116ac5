//! `remote`, against OpenSSH's server and the in-process one: what its types say must be what the server's own log says.

mod connect;
mod fence;
mod prove;
mod publish;
mod session;

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use waybill::job::contract::{Auxiliary, Contract};
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::names::NamePattern;
use waybill::remote::{
    Endpoint, Fence, FenceRefused, Journal, Licence, Names, SecretRef, Session, SessionLimits, SftpEndpoint, Writer,
    WriterParts,
};
use waybill::spool::{Spool, SpoolFile};
use waybill_tests::sftp_server::Behaviour;
use waybill_tests::{SftpServer, Sshd, ssh};

/// Longer than any call of these tests takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// For tests whose server never answers.
const IMPATIENT: SessionLimits = SessionLimits {
    connect: Duration::from_secs(20),
    request: Duration::from_secs(2),
    stall: Duration::from_secs(2),
    look: Duration::from_secs(2),
    keepalive: Duration::from_secs(15),
    inactivity: Duration::from_secs(90),
    goodbye: Duration::from_secs(3),
    largest_object: u64::MAX,
};

/// The in-process server with an endpoint that fits.
struct Partner {
    server: SftpServer,
    endpoint: SftpEndpoint,
    directory: TempDir,
}

impl Partner {
    async fn start(behaviour: Behaviour) -> anyhow::Result<Self> {
        Self::around(SftpServer::start(behaviour).await?)
    }

    fn around(server: SftpServer) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let endpoint = in_process_endpoint(server.port(), server.host_key(), &directory)?;
        Ok(Self { server, endpoint, directory })
    }

    async fn session(&self) -> anyhow::Result<Session> {
        Ok(Session::connect(&self.endpoint(), &SessionLimits::default()).await?)
    }

    async fn impatient_session(&self) -> anyhow::Result<Session> {
        Ok(Session::connect(&self.endpoint(), &IMPATIENT).await?)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Sftp(self.endpoint.clone())
    }
}

fn in_process_endpoint(port: u16, host_key: &str, directory: &TempDir) -> anyhow::Result<SftpEndpoint> {
    Ok(SftpEndpoint {
        host: "127.0.0.1".to_owned(),
        port,
        user: ssh::USER.to_owned(),
        directory: ".".to_owned(),
        host_keys: vec![host_key.to_owned()],
        secret: SecretRef::PasswordFile(private_file(directory, "password", ssh::PASSWORD)?),
    })
}

fn private_file(directory: &TempDir, name: &str, content: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = directory.path().join(name);
    std::fs::write(&path, content).context("writing a secret for a test")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

fn openssh_endpoint(sshd: &Sshd) -> anyhow::Result<SftpEndpoint> {
    Ok(SftpEndpoint {
        host: "127.0.0.1".to_owned(),
        port: sshd.port(),
        user: sshd.user().to_owned(),
        directory: ".".to_owned(),
        host_keys: vec![sshd.host_key()?],
        secret: SecretRef::KeyFile(sshd.client_key()),
    })
}

async fn openssh_session(sshd: &Sshd) -> anyhow::Result<Session> {
    Ok(Session::connect(&Endpoint::Sftp(openssh_endpoint(sshd)?), &SessionLimits::default()).await?)
}

pub async fn built(directory: &TempDir, content: &[u8]) -> anyhow::Result<SpoolFile> {
    let mut draft = Spool::open(directory.path())?.create(content.len() as u64)?;
    draft.write(content).await?;
    Ok(draft.finish().await?)
}

/// The names of one attempt: a checksum that may come before the data file, and a trigger after it.
pub fn names(key: &str) -> anyhow::Result<Arc<Names>> {
    names_beside(key, &[("{final}.done", false)])
}

/// With a file that comes before the data.
fn names_with_sum(key: &str) -> anyhow::Result<Arc<Names>> {
    names_beside(key, &[("{final.stem}.sum", true), ("{final}.done", false)])
}

fn names_beside(key: &str, beside: &[(&str, bool)]) -> anyhow::Result<Arc<Names>> {
    let auxiliary = |pattern: &str, before_publish: bool| {
        anyhow::Ok(Auxiliary { name: NamePattern::parse(pattern)?, trigger: !before_publish, before_publish })
    };
    let contract = Contract {
        auxiliary: beside.iter().map(|(name, before)| auxiliary(name, *before)).collect::<anyhow::Result<_>>()?,
        ..Contract::default()
    };
    let temporary = NamePattern::parse(".{attempt}.part")?;
    Ok(Arc::new(Names::mint(&contract, Some(&temporary), &format!("{key}.csv"), key, &format!("attempt-{key}"))?))
}

/// The attempt's durable record, in memory. The fence can refuse, and can look around when it is asked.
#[derive(Default)]
pub struct Record {
    refuses: AtomicBool,
    intended: Mutex<Vec<PublishForm>>,
    answers: Mutex<Vec<(PublishForm, Answer)>>,
    when_asked: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Record {
    fn intended(&self) -> usize {
        self.intended.lock().unwrap().len()
    }

    pub fn answers(&self) -> Vec<(PublishForm, Answer)> {
        self.answers.lock().unwrap().clone()
    }

    pub fn when_asked(&self, look: impl FnMut() + Send + 'static) {
        *self.when_asked.lock().unwrap() = Some(Box::new(look));
    }
}

impl Fence for Record {
    fn intend(&self, form: PublishForm) -> BoxFuture<'_, Result<(), FenceRefused>> {
        async move {
            if let Some(look) = self.when_asked.lock().unwrap().as_mut() {
                look();
            }
            if self.refuses.load(Ordering::SeqCst) {
                return Err(FenceRefused { why: "another attempt holds the job".to_owned() });
            }
            self.intended.lock().unwrap().push(form);
            Ok(())
        }
        .boxed()
    }
}

impl Journal for Record {
    fn published(&self, form: PublishForm, answer: &Answer) -> BoxFuture<'_, ()> {
        self.answers.lock().unwrap().push((form, answer.clone()));
        async {}.boxed()
    }
}

pub fn writer(
    session: &Session,
    names: &Arc<Names>,
    file: &SpoolFile,
    form: PublishForm,
    record: &Arc<Record>,
) -> Writer {
    losing(session, names, file, form, record, &CancellationToken::new())
}

/// The hand of an attempt that has lost its job once the token fires.
fn losing(
    session: &Session,
    names: &Arc<Names>,
    file: &SpoolFile,
    form: PublishForm,
    record: &Arc<Record>,
    lost: &CancellationToken,
) -> Writer {
    Writer::new(WriterParts {
        session: session.clone(),
        names: Arc::clone(names),
        file: file.clone(),
        licence: Licence { form, overwrite_agreed: form.overwrites(), baseline_showed_file: form.overwrites() },
        listing_hidden: false,
        lost: lost.clone(),
        fence: Arc::clone(record) as Arc<dyn Fence>,
        journal: Arc::clone(record) as Arc<dyn Journal>,
    })
}
