//! What control keeps of its fleet: keys of edges, their leases, publishers and snapshots.
//!
//! Invariants: Leases go by the clock of the database. A publisher that lost its lease is fenced off by its term.

pub mod store;

pub use ::kernel::error;
