//! Identities at a provider that operators sign in with.

use sha2::{Digest as _, Sha256};
use shared::time::UnixMillis;

/// Most identities that are linked to an operator.
pub const MAX_IDENTITIES: usize = 20;

/// Bytes of the hash that an id shows.
const ID_BYTES: usize = 12;

/// An identity that is linked to an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The provider.
    pub issuer: String,
    /// Who it is there.
    pub subject: String,
    /// The address by which it was linked.
    pub email: String,
    /// When it was linked.
    pub created_at: UnixMillis,
    /// When somebody last signed in with it.
    pub last_used_at: UnixMillis,
}

impl LinkedIdentity {
    /// Its id: 24 hexadecimal digits of the SHA-256 of issuer and subject.
    #[must_use]
    pub fn id(&self) -> String {
        // Neither holds a line end.
        let hash = Sha256::digest(format!("{}\n{}", self.issuer, self.subject));
        hash.iter().take(ID_BYTES).map(|byte| format!("{byte:02X}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_issuer_and_subject() {
        let id = |issuer: &str, subject: &str| {
            let (created_at, last_used_at) = (UnixMillis(1), UnixMillis(2));
            let email = "ada@example.com".to_owned();
            LinkedIdentity { issuer: issuer.into(), subject: subject.into(), email, created_at, last_used_at }
                .id()
        };
        let ada = id("https://login.example.com", "ada");
        assert!(ada.len() == 24 && ada.bytes().all(|byte| byte.is_ascii_hexdigit()), "{ada}");
        assert_ne!(ada, id("https://login.example.com", "eve"));
        assert_ne!(ada, id("https://login.example.co", "mada"));
    }
}
