//! What can go wrong in the simulated server itself.

use super::files::No;

#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    #[error("the simulated server's line broke")]
    Line(#[from] std::io::Error),
    #[error("the simulated server's SSH side failed")]
    Ssh(#[from] russh::Error),
    #[error("the simulated server has no host key: {why}")]
    HostKey { why: String },
    #[error("a packet that is none of SFTP: {what}")]
    Packet { what: String },
    #[error("{path} cannot be put there: {no:?}")]
    File { path: String, no: No },
    #[error("nothing stood at the gate within {seconds} s")]
    NotReached { seconds: u64 },
}
