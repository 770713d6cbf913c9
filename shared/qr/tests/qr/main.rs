//! QR images as a scanner, a printer and a cache see them.
//!
//! The tools named in `tools.rs` must be installed; a missing one fails the tests.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod any_request;
mod decode;
mod figures;
mod golden;
mod grid;
mod styled;
mod tools;
