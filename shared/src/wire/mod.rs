//! Everything that travels between control and edge, versioned (design: push, 2 and 6).

pub mod scan;
pub mod stream;

/// Version of the protocol; an edge and a control one apart work together.
///
/// 2 brought rules of redirection: an edge of 1 does not know their events.
pub const PROTOCOL: u32 = 2;
