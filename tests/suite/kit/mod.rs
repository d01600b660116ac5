//! The fixtures prove themselves here, so that a test that fails elsewhere speaks about the host.

mod client;
mod database;
mod embedded_openssh;
mod embedded_postgres;
mod sftp_raw;
mod sftp_server;
mod sshd;
