//! Certificates of short domains that accounts have proven, from an authority that is asked by ACME (RFC 8555).
//!
//! # The way of a certificate
//!
//! 1. A short domain is proven. One control, under a lease, orders a certificate for it ([`worker`]).
//! 2. What the authority is about to check goes to all edges by the change stream. Once they have it, the authority is asked to
//!    check ([`service::order`]).
//! 3. What the authority gave is checked ([`domain::chain`]), stored with its key, and sent to all edges.
//! 4. At two thirds of its life it is ordered again.
//!
//! # Invariants
//!
//! - An order is for a domain whose claim is verified, of an account that is not suspended.
//! - The key pair of an order is stored before the authority is asked for a certificate, so an order goes on wherever it was
//!   when its control died.
//! - Keys are encrypted in the tables and in the change log, under a name with the host.
//! - What a control writes of an order, it writes under the fence of its lease.
//! - An order that failed waits longer each time, and no other waits for it; all wait for an hour at most where the authority finds
//!   three in a row too many.
//! - An account that the authority no longer accepts is replaced, at most once a day ([`domain::account`]).
//! - The clock of the database decides when an order is due, how long a pause is and whether a certificate has ended; no clock of a
//!   control does. Where it is far from that of the authority, nothing is ordered ([`domain::certificate::clock_fault`]).
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod client;
pub mod domain;
pub mod metrics;
pub mod service;
pub mod settings;
pub mod store;
pub mod worker;
