//! What every subject of the control plane stands on: the database, the vocabulary of resources, errors, operations that
//! all share.
//!
//! Invariants: SQL stands only in `store`; rules stand in `domain` as plain functions, without I/O, clock or
//! randomness. A statement that the two engines spell differently stands in both spellings side by side. Every
//! function of the store takes a [`store::Conn`], be it a pooled connection or the inside of a [`store::Tx`].
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod buckets;
pub mod domain;
pub mod error;
pub mod service;
pub mod store;

pub use platform::{FairQueue, batch_size};
