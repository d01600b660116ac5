//! What the tests share: a database a test, real and faulty SFTP servers, small disks, waiting without sleeping.
//!
//! The servers come from [`waybill::embedded`]; nothing here is a second way to start them. Fixtures return
//! `anyhow::Result`, so that a broken fixture tells why, and clean up when dropped.

pub mod certificates;
pub mod database;
pub mod failover;
pub mod house;
pub mod moto;
pub mod object_store;
pub mod operations;
pub mod partner_server;
pub mod proxy;
pub mod services;
pub mod sftp_raw;
pub mod sshd;
pub mod tmpfs;
mod upkeep;
pub mod wait;

pub use database::Database;
pub use house::{House, Plan, Reach};
pub use moto::Moto;
pub use object_store::ObjectStore;
pub use operations::Operation;
pub use partner_server::{PartnerServer, Product};
pub use proxy::Proxy;
pub use sftp_server::SftpServer;
pub use sshd::Sshd;
pub use tmpfs::SmallDisk;
pub use waybill::remote::simulated::{self as sftp_server, ssh};
