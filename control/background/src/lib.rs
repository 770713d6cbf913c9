//! The life of background work of which each item is a row: jobs, print orders, changes of many links, removals of
//! users.
//!
//! # The way of an item
//!
//! 1. A lane claims it under a lease on the clock of the database, with a fence that grows with each holder ([`store::work`]).
//! 2. It does steps until it ends, waits, or its turn is over, and releases it ([`worker`]). A step is one transaction that
//!    writes its effect and holds the row, so a worker that is killed leaves the whole step or nothing.
//! 3. An item that fails is tried again after pauses that grow, and after many tries fails for good or rests for an hour, unless a
//!    store was away.
//! 4. What it leaves is removed later, in short transactions ([`retention`]).
//!
//! A kind of work gives its statements and its steps by the traits [`store::work::Work`] and [`worker::Lane`].

pub mod retention;
pub mod store;
pub mod worker;

#[doc(hidden)]
pub use kernel::{hold_lease, pg_now, sqlite_now, store::lease::Timed};
