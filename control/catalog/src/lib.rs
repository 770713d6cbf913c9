//! Products, Thngs, places, collections, batches, files, and properties with their history.
//!
//! Invariants: Every query names the account. A batch of values is written in the order of properties and times,
//! with the rows of their properties locked, so that two writers of one property cannot mix.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
