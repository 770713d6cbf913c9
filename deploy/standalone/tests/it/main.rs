//! The composition and the tools, through the real binary and real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod config;
mod demo;
mod harness;
mod import;
mod import_again;
mod import_known;
mod jobs;
mod keys;
mod lan;
mod links;
mod moving;
mod proxied;
mod tools;
mod up;
