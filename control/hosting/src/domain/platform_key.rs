//! Keys of the platform operator.

use shared::time::UnixMillis;

use super::api_key::KeyId;

/// The first four letters of keys of the platform, by which secret scanners find them.
pub const PLATFORM_KEY_PREFIX: &str = "wmpl";

/// A key of the platform, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformKey {
    /// The SHA-256 of the key.
    pub hash: [u8; 32],
    /// What it is called.
    pub label: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it ceases to work.
    pub expires_at: Option<UnixMillis>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
}

impl PlatformKey {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId::of(&self.hash)
    }

    /// Whether it has expired.
    #[must_use]
    pub fn is_expired(&self, now: UnixMillis) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}
