//! What every binary needs: connection permits, shares of pools, time limits on sockets, files that are read again when they
//! change, settings, the ends of certificates, the text of metrics.
//!
//! Invariants: nothing here knows what is served; a refusal has one of a closed set of reasons; a permit is returned
//! when its guard is dropped.

mod bounded;
pub mod certificate;
mod descriptors;
pub mod exposition;
pub mod fair;
mod permits;
pub mod settings;
mod shares;
mod watch;

pub use self::{
    bounded::{Bounded, TimeLimits},
    descriptors::descriptors,
    permits::{Bounds, Busy, Handle, Holder, Permit, Permits, Rank, Refused},
    shares::{Full, Share, Shares},
    watch::FileWatch,
};
