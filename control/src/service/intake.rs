//! Counters of scan intake.

use std::sync::atomic::AtomicU64;

/// Counters of the intake since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Scans that became actions.
    pub stored: AtomicU64,
    /// Scans that came a second time and were skipped.
    pub repeated: AtomicU64,
    /// Scans of short ids that control does not know; they are only counted.
    pub unknown: AtomicU64,
    /// Scans that were not stored, because their accounts had used up those of the day; they are in `hits`.
    pub over_quota: AtomicU64,
    /// Sequence numbers that never came: scans that an edge lost.
    pub missing: AtomicU64,
}
