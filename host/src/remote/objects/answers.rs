//! What is known of the effect of a request that failed.
//!
//! Only an answer that says by itself that nothing was done is a refusal; it carries SFTP's code for the same thing, so that
//! whoever weighs a refusal knows one set of codes. Everything else may have taken effect: an error of the store's own (5xx),
//! "slow down", silence, a connection that was cut after the request had begun.

use crate::remote::error::{
    FAILURE, FILE_ALREADY_EXISTS, NO_SUCH_FILE, OP_UNSUPPORTED, PERMISSION_DENIED, RemoteError,
};

/// Why there was no good answer. It travels through the client library inside its error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// No byte of the request left.
    #[error("{0}")]
    NotSent(String),
    /// What answers there is not the store to talk to, such as one with a certificate that nobody vouches for. No byte of the
    /// request left.
    #[error("{0}")]
    Unfit(String),
    /// The request had begun, and what came of it is not known.
    #[error("{0}")]
    Cut(String),
    #[error(transparent)]
    Answered(Answered),
}

/// An answer other than a yes. Its words are the store's, bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}{}{message}", if message.is_empty() { "" } else { ": " })]
pub(super) struct Answered {
    pub status: u16,
    /// S3's name of the error; empty where the answer had no body.
    pub code: String,
    pub message: String,
}

/// The longest part of a store's words that is kept.
const WORDS: usize = 300;

impl Answered {
    /// Reads S3's error document, if there is one.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let of = |tag: &str| {
            let found = text.split_once(&format!("<{tag}>")).and_then(|(_, rest)| rest.split_once('<'));
            found.map_or_else(String::new, |(words, _)| plain(words))
        };
        Self { status, code: of("Code"), message: of("Message") }
    }
}

/// Words from outside, for people: bounded, on one line.
pub(super) fn plain(words: &str) -> String {
    words.chars().take(WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The failure inside an error of the client library; none where the library itself could not read the answer.
pub(super) fn failure(error: &object_store::Error) -> Option<&Failure> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return Some(failure);
        }
        cause = error.source();
    }
    None
}

/// Sorts the failure of one request.
pub(super) fn sorted(error: &object_store::Error) -> RemoteError {
    match (failure(error), error) {
        (Some(Failure::NotSent(why) | Failure::Unfit(why)), _) => RemoteError::NotSent { why: why.clone() },
        (Some(Failure::Cut(why)), _) => RemoteError::Unknown { why: why.clone() },
        (Some(Failure::Answered(answered)), _) => answer(answered),
        (None, object_store::Error::InvalidPath { source }) => {
            RemoteError::Invalid { why: format!("an object cannot have this name: {source}") }
        }
        (None, error) => {
            RemoteError::Unknown { why: format!("the answer cannot be read: {}", plain(&error.to_string())) }
        }
    }
}

fn answer(answered: &Answered) -> RemoteError {
    let code = match (answered.status, answered.code.as_str()) {
        (404, "NoSuchKey") => NO_SUCH_FILE,
        (401 | 403, _) => PERMISSION_DENIED,
        // Some stores answer a condition that is not met as if they were asked to read.
        (412 | 304, _) => FILE_ALREADY_EXISTS,
        // Not the store's word for "there is no such condition here", but HTTP's: it was not even tried.
        (405 | 501, _) => OP_UNSUPPORTED,
        // 409: another write of the same name was under way, and this one was not done. A missing bucket is no missing object.
        (301 | 307 | 308 | 400 | 404 | 409 | 411 | 413 | 416, _) => FAILURE,
        _ => return RemoteError::Unknown { why: format!("the store answered {answered}") },
    };
    RemoteError::Refused { code: Some(code), text: answered.to_string() }
}

#[cfg(test)]
mod tests {
    use object_store::client::{HttpError, HttpErrorKind};

    use super::*;

    fn wrapped(failure: Failure) -> object_store::Error {
        let source = Box::new(HttpError::new(HttpErrorKind::Unknown, failure));
        object_store::Error::Generic { store: "S3", source }
    }

    fn answered(status: u16, code: &str) -> RemoteError {
        let body = format!("<?xml version='1.0'?><Error><Code>{code}</Code><Message>words\n</Message></Error>");
        sorted(&wrapped(Failure::Answered(Answered::read(status, body.as_bytes()))))
    }

    #[test]
    fn only_an_answer_that_says_so_by_itself_had_no_effect() {
        assert!(answered(404, "NoSuchKey").says_absent());
        for (status, code) in [
            (404, "NoSuchBucket"),
            (404, ""),
            (403, "AccessDenied"),
            (409, "ConditionalRequestConflict"),
            (400, "BadDigest"),
        ] {
            let error = answered(status, code);
            assert!(error.is_refusal() && !error.says_absent(), "{error}");
        }
        let exists = answered(412, "PreconditionFailed");
        let text = "412 PreconditionFailed: words ".to_owned();
        assert_eq!(exists, RemoteError::Refused { code: Some(FILE_ALREADY_EXISTS), text });
        for (status, code) in
            [(500, "InternalError"), (503, "SlowDown"), (429, ""), (408, ""), (502, ""), (504, ""), (507, "")]
        {
            let error = answered(status, code);
            assert!(matches!(error, RemoteError::Unknown { .. }), "{error}");
        }
        let cut = sorted(&wrapped(Failure::Cut("reset".to_owned())));
        assert!(matches!(cut, RemoteError::Unknown { .. }), "{cut}");
        let not_sent = sorted(&wrapped(Failure::NotSent("refused".to_owned())));
        assert!(matches!(not_sent, RemoteError::NotSent { .. }), "{not_sent}");
    }

    #[test]
    fn an_answer_that_the_library_cannot_read_may_have_had_an_effect() {
        let unread = object_store::Error::Generic { store: "S3", source: "no ETag".into() };
        assert!(matches!(sorted(&unread), RemoteError::Unknown { .. }));
    }
}
