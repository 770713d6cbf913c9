//! Print orders: many codes as one file, made, rendered and kept in the background.
//!
//! # The way of an order
//!
//! 1. Its codes are noted in the order of its pages ([`domain::order::Stage::Collect`]), those of a file or a reprint as it is
//!    read ([`domain::order::Stage::Read`]). An order of serials makes the Things and links first
//!    ([`domain::order::Stage::Make`]).
//! 2. They are rendered chunk by chunk, each to two blobs ([`domain::order::Stage::Render`]).
//! 3. The edges are waited for ([`domain::order::Stage::Publish`]).
//! 4. The chunks are joined into the files ([`domain::order::Stage::Assemble`]), and removed
//!    ([`domain::order::Stage::Clear`]).
//!
//! # Invariants
//!
//! - A step is one transaction with its effect and the new place of the order, so a worker that is killed leaves the whole
//!   step or nothing: no serial is made twice, and none is left out.
//! - Bytes depend on the order and its codes alone. A blob that was written and not noted is written again, the same.
//! - A worker holds an order by a lease on the clock of the database, with a fence that grows with each holder. One that
//!   has lost it writes no row any more.
//! - Memory holds a chunk at a time, and some 60 bytes for each code while files are joined.
//! - Numbers are taken when the order is accepted, under a row of their own: two orders never get the same ones. What an
//!   order that was cancelled did not use is not given out again.
//! - What an order has made stays, however it ends.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod metrics;
pub mod service;
pub mod store;
pub mod worker;
