//! What every binary needs: connection permits, shares of pools, sizes of steps, time limits and read budgets of sockets, files that are read again
//! when they change, settings and the names of all of them, the text of `/metrics`, and what is read of certificates.
//!
//! Invariants: nothing here knows what is served; a refusal has one of a closed set of reasons; a permit is returned
//! when its guard is dropped.

pub mod batch_size;
mod bounded;
pub mod certificate;
mod descriptors;
pub mod exposition;
pub mod fair;
mod fair_queue;
mod permits;
mod read_budget;
pub mod settings;
mod shares;
pub mod variables;
mod watch;

pub use self::{
    bounded::{Bounded, TimeLimits},
    descriptors::descriptors,
    fair_queue::FairQueue,
    permits::{Bounds, Busy, Handle, Holder, Permit, Permits, Rank, Refused},
    read_budget::ReadBudget,
    shares::{Full, Share, Shares},
    watch::FileWatch,
};
