//! All messages between control and edge, versioned (README, "Wire protocol").

pub mod ack_limiter;
pub mod certificates;
pub mod contents;
pub mod frame;
pub mod internal;
pub mod limits;
pub mod links;
pub mod scan;
pub mod spooled;
pub mod stream;
pub mod unknown;
pub mod view;

/// Version of the protocol; an edge and a control one apart work together.
///
/// 2 added redirect rules: an edge of 1 does not know their events. 3 is the first over a network.
pub const PROTOCOL: u32 = 3;

/// The oldest version that is still understood.
pub const OLDEST_PROTOCOL: u32 = 3;
