//! The kit that the tests share.
