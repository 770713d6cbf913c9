//! How a request was answered by the cache, for metrics and tests.

/// How an answer came about, for metrics and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheStatus {
    /// Held and fresh.
    Hit,
    /// Read from the backing.
    Miss,
    /// Known to be absent.
    Negative,
    /// Held, but from before a snapshot; read again.
    Stale,
    /// Read by another request at the same time.
    Coalesced,
}

impl CacheStatus {
    /// Every status, in the order of the metrics.
    pub(crate) const ALL: [Self; 5] = [Self::Hit, Self::Miss, Self::Negative, Self::Stale, Self::Coalesced];

    /// The status as a metric label.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Negative => "negative",
            Self::Stale => "stale",
            Self::Coalesced => "coalesced",
        }
    }
}
