//! The whole suite in one binary.
