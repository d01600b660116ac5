//! Each product by itself, measured and delivered to.

use waybill_tests::object_store::Manners;
use waybill_tests::sftp_raw::{self, Request, request};
use waybill_tests::sftp_server::Behaviour;
use waybill_tests::{Moto, ObjectStore, PartnerServer, Product, Reach, SftpServer, Sshd, ssh};

use super::measured::{Files, measure, measure_store};
use super::table::{
    ASYNCSSH, IN_PROCESS, MOTO, OPENSSH, OUR_STORE, PARAMIKO, PROFTPD, RAW, RCLONE, REPLACING_STORE, hold,
};

async fn measure_product(name: &str, product: Product) -> anyhow::Result<()> {
    let server = PartnerServer::start(product).await?;
    hold(&measure(name, &server.reach(), &Files::OnDisk(server.files())).await?)
}

#[tokio::test]
async fn del_06_openssh_is_measured_and_delivered_to() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    hold(&measure(OPENSSH, &Reach::openssh(&server)?, &Files::OnDisk(server.files())).await?)
}

#[tokio::test]
async fn del_06_proftpd_is_measured_and_delivered_to() -> anyhow::Result<()> {
    measure_product(PROFTPD, Product::ProFtpd).await
}

#[tokio::test]
async fn del_06_asyncssh_is_measured_and_delivered_to() -> anyhow::Result<()> {
    measure_product(ASYNCSSH, Product::AsyncSsh).await
}

#[tokio::test]
async fn del_06_paramikos_stub_is_measured_and_delivered_to_by_exclusive_create_only() -> anyhow::Result<()> {
    measure_product(PARAMIKO, Product::ParamikoStub).await
}

#[tokio::test]
async fn del_06_rclone_is_measured_and_never_delivered_to() -> anyhow::Result<()> {
    measure_product(RCLONE, Product::Rclone).await
}

#[tokio::test]
async fn del_06_the_simulated_server_is_measured_and_delivered_to() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    hold(&measure(IN_PROCESS, &Reach::in_process(&server, directory.path())?, &Files::InProcess(&server)).await?)
}

/// Yes to each request, a size for each of our temporary files, and not one byte kept.
fn yes_to_everything(asked: &Request) -> Vec<u8> {
    const OK: u32 = 0;
    const END: u32 = 1;
    const NO_SUCH_FILE: u32 = 2;
    let id = asked.id().unwrap_or_default();
    match asked.kind {
        request::REALPATH => sftp_raw::names(id, &[b"/"]),
        request::OPEN | request::OPENDIR => sftp_raw::handle(id, b"h"),
        request::READ | request::READDIR => sftp_raw::status(id, END, "no more"),
        request::STAT if asked.first_string().is_ok_and(|name| name.ends_with(b".part")) => sftp_raw::size(id, 10),
        request::STAT if asked.first_string().is_ok_and(|name| name == b"/") => sftp_raw::directory(id),
        request::STAT => sftp_raw::status(id, NO_SUCH_FILE, "no such file"),
        _ => sftp_raw::status(id, OK, "yes"),
    }
}

#[tokio::test]
async fn del_06_a_raw_server_that_says_yes_to_everything_is_measured_and_never_delivered_to() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let (server, directory) = (sftp_raw::start(yes_to_everything).await?, tempfile::tempdir()?);
    let file = directory.path().join("password");
    std::fs::write(&file, ssh::PASSWORD)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    let reach = Reach {
        port: server.port(),
        user: ssh::USER.to_owned(),
        host_key: server.host_key().to_owned(),
        directory: "/".to_owned(),
        secret: format!("password_file = '{}'", file.display()),
    };
    hold(&measure(RAW, &reach, &Files::None).await?)
}

#[tokio::test]
async fn del_06_motos_store_is_measured_and_delivered_to() -> anyhow::Result<()> {
    hold(&measure_store(MOTO, &Moto::start().await?).await?)
}

#[tokio::test]
async fn del_06_the_tests_own_store_is_measured_and_delivered_to_while_it_keeps_the_condition() -> anyhow::Result<()> {
    hold(&measure_store(OUR_STORE, &ObjectStore::start().await?).await?)?;
    let replacing = ObjectStore::start().await?;
    replacing.set_manners(Manners { keeps_condition: false, ..Manners::default() });
    hold(&measure_store(REPLACING_STORE, &replacing).await?)
}
