//! What is known of the effect of a call to the kernel that failed.
//!
//! Only errors that say by themselves that nothing was done are refusals; they carry SFTP's code for the same thing, so that
//! whoever weighs a refusal knows one set of codes. Everything else may have taken effect.

use rustix::io::Errno;

use crate::remote::error::{
    FAILURE, FILE_ALREADY_EXISTS, NO_SPACE, NO_SUCH_FILE, OP_UNSUPPORTED, PERMISSION_DENIED, QUOTA_EXCEEDED,
    RemoteError,
};

/// Sorts a failure of one call.
pub(super) fn sorted(errno: Errno) -> RemoteError {
    let refused = |code| RemoteError::Refused { code: Some(code), text: words(errno) };
    match errno {
        Errno::NOENT => refused(NO_SUCH_FILE),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => refused(PERMISSION_DENIED),
        Errno::EXIST => refused(FILE_ALREADY_EXISTS),
        Errno::NOSPC => refused(NO_SPACE),
        Errno::DQUOT => refused(QUOTA_EXCEEDED),
        // A flag that a file system does not know is an invalid argument.
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => refused(OP_UNSUPPORTED),
        Errno::NOTDIR
        | Errno::ISDIR
        | Errno::LOOP
        | Errno::NAMETOOLONG
        | Errno::XDEV
        | Errno::MLINK
        | Errno::NOTEMPTY
        | Errno::BUSY
        | Errno::FBIG
        | Errno::NXIO
        | Errno::ILSEQ => refused(FAILURE),
        // No descriptor was free in this process, or on this machine: the call did not begin.
        Errno::MFILE | Errno::NFILE => RemoteError::NotSent { why: words(errno) },
        _ => RemoteError::Unknown { why: words(errno) },
    }
}

/// The same for an error of the standard library.
pub(super) fn sorted_io(error: &std::io::Error) -> RemoteError {
    Errno::from_io_error(error).map_or_else(|| RemoteError::Unknown { why: error.to_string() }, sorted)
}

fn words(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_so_by_itself_had_no_effect() {
        assert!(sorted(Errno::NOENT).says_absent());
        for errno in [Errno::ACCESS, Errno::EXIST, Errno::NOSPC, Errno::XDEV, Errno::INVAL, Errno::LOOP] {
            assert!(sorted(errno).is_refusal() && !sorted(errno).says_absent(), "{errno:?}");
        }
        for errno in [Errno::IO, Errno::STALE, Errno::TIMEDOUT, Errno::INTR, Errno::NOMEM, Errno::NODEV] {
            assert!(matches!(sorted(errno), RemoteError::Unknown { .. }), "{errno:?}");
        }
        assert!(matches!(sorted(Errno::MFILE), RemoteError::NotSent { .. }));
    }
}
