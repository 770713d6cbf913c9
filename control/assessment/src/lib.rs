//! The assessment that tells whether a scanned item is genuine, diverted or copied.
//!
//! Invariants: Rules are plain functions of an item, its scans and the settings of an account: time and facts are
//! arguments. A verdict never falls because older scans were pushed out: the greatest points since commissioning
//! are kept. The order in which scans arrive changes nothing.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
