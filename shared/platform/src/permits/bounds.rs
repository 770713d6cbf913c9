//! Bounds of concurrent connections, and the reasons of a refusal.

shared::words! {
    /// Why a connection is refused or ended; a closed set, for metrics.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Refused {
        /// All permits are taken.
        Full = "full",
        /// The address has as many as it may.
        Address = "address",
        /// The key has as many as it may.
        Key = "key",
        /// The account has as many as it may.
        Account = "account",
        /// Holders of public keys have as many as they may.
        Public = "public",
        /// Had presented no key and was closed to make room.
        Displaced = "displaced",
        /// The headers of a request did not come in time.
        HeadersLate = "headers_late",
        /// There was no request for too long.
        Idle = "idle",
        /// The client does not read, or too slowly.
        SlowReader = "slow_reader",
    }
}

/// Bounds of concurrent connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub most: usize,
    /// Most connections without a key; beyond it one of them is closed for the next. `None`: none is ever closed.
    pub newcomers: Option<usize>,
    /// Of holders of public keys.
    pub public: usize,
    /// Of one address (IPv6: one /64) whose connections showed no secret key.
    pub per_address: usize,
    /// Of one key.
    pub per_key: usize,
    /// Of one account.
    pub per_account: usize,
    /// Most connections of one account without its operators, for whom there is always room.
    pub per_applications: usize,
    /// Most connections with public keys of one account, so that other accounts have room.
    pub per_account_public: usize,
}

impl Bounds {
    /// Bounds without keys: in total and per address; no connection is closed for another.
    #[must_use]
    pub const fn plain(most: usize, per_address: usize) -> Self {
        Self {
            most,
            newcomers: None,
            public: most,
            per_address,
            per_key: most,
            per_account: most,
            per_applications: most,
            per_account_public: most,
        }
    }
}
