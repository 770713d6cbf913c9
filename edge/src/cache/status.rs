//! How a request was answered by the cache, for metrics and tests.

shared::words! {
    /// How an answer came about, as metrics name it and in their order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum CacheStatus {
        /// Held and fresh.
        Hit = "hit",
        /// Read from the backing.
        Miss = "miss",
        /// Known to be absent.
        Negative = "negative",
        /// Held, but from before a snapshot; read again.
        Stale = "stale",
        /// Read by another request at the same time.
        Coalesced = "coalesced",
    }
}
