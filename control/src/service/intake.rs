//! What the intake of scans needs of the process, and what it counted.

use std::{net::IpAddr, sync::atomic::AtomicU64};

use crate::domain::scan::Place;

/// Where an address is, from a database that the operator gives.
pub trait GeoIp: Send + Sync + 'static {
    /// What is known of an address; nothing is no fault.
    fn find(&self, ip: IpAddr) -> Place;
}

/// No geography: for a service without a database.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGeoIp;

impl GeoIp for NoGeoIp {
    fn find(&self, _ip: IpAddr) -> Place {
        Place::default()
    }
}

/// What the intake counted since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Scans that became actions.
    pub stored: AtomicU64,
    /// Scans that came a second time and were skipped.
    pub repeated: AtomicU64,
    /// Scans of short ids that control does not know: only counted.
    pub unknown: AtomicU64,
    /// Sequence numbers that never came: scans that an edge lost.
    pub missing: AtomicU64,
}
