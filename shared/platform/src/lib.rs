//! What every binary needs to bound its clients: permits of connections, shares of pools, time limits of sockets.
//!
//! Invariants: nothing here knows what is served; a refusal names one of a closed set of reasons; whatever was taken
//! is given back when its guard is dropped.

mod bounded;
mod descriptors;
mod permits;
mod shares;

pub use self::{
    bounded::{Bounded, TimeLimits},
    descriptors::descriptors,
    permits::{Bounds, Busy, Handle, Holder, Permit, Permits, Rank, Refused},
    shares::{Full, Share, Shares},
};
