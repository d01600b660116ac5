//! Holds the architecture.
