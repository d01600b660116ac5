//! Ways to and from [`Failure`] that keep its kind. It is an error, whose text is its kind with the reason.

use std::io;

use crate::Failure;

impl Failure {
    /// The text, without the kind. Empty for [`Failure::Stopped`].
    pub fn reason(&self) -> &str {
        match self {
            Self::Stopped => "",
            Self::Forbidden(text)
            | Self::Refused(text)
            | Self::Unknown(text)
            | Self::Invalid(text)
            | Self::Other(text) => text,
        }
    }

    /// The same failure with words before its text, such as the name of a file: `Refused("x.done: no space left")`.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        let add = |text: String| format!("{what}: {text}");
        match self {
            Self::Stopped => Self::Stopped,
            Self::Forbidden(text) => Self::Forbidden(add(text)),
            Self::Refused(text) => Self::Refused(add(text)),
            Self::Unknown(text) => Self::Unknown(add(text)),
            Self::Invalid(text) => Self::Invalid(add(text)),
            Self::Other(text) => Self::Other(add(text)),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

/// For writers, whose trait knows only this error: [`Output`](crate::Output) reads the failure out of it again.
impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::other(failure)
    }
}

/// The host's failure that the error carries, or else its text.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(failure) => failure,
            Err(error) => Self::Other(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_kind_through_an_io_error() {
        for failure in [Failure::Stopped, Failure::Forbidden("too long".into()), Failure::Unknown("cut".into())] {
            assert_eq!(Failure::from(io::Error::from(failure.clone())), failure);
        }
        assert_eq!(Failure::from(io::Error::other("no host's failure")), Failure::Other("no host's failure".into()));
    }

    #[test]
    fn words_before_the_text_do_not_change_the_kind() {
        assert_eq!(Failure::Refused("no".into()).about("x.done"), Failure::Refused("x.done: no".into()));
        assert_eq!(Failure::Stopped.about("x.done"), Failure::Stopped);
        assert_eq!(Failure::from("gone").reason(), "gone");
    }
}
