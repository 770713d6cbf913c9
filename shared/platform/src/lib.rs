//! What every binary needs: connection permits, shares of pools, time limits and read budgets of sockets, files that are read again when they
//! change, settings.
//!
//! Invariants: nothing here knows what is served; a refusal has one of a closed set of reasons; a permit is returned
//! when its guard is dropped.

mod bounded;
mod descriptors;
pub mod fair;
mod permits;
mod read_budget;
pub mod settings;
mod shares;
mod watch;

pub use self::{
    bounded::{Bounded, TimeLimits},
    descriptors::descriptors,
    permits::{Bounds, Busy, Handle, Holder, Permit, Permits, Rank, Refused},
    read_budget::ReadBudget,
    shares::{Full, Share, Shares},
    watch::FileWatch,
};
