//! What is known of an API key beside its owner: its id, and where and how long it is valid.

use std::{fmt, net::IpAddr, str::FromStr};

use shared::{networks::Networks, problem::Code, time::UnixMillis};

use crate::access::{Actor, ActorKind};

/// Bytes of the hash that an id shows.
const ID_BYTES: usize = 12;

/// The id of a key: the first 24 hexadecimal digits of its SHA-256, in upper case.
///
/// Whoever finds a key can thus say which one it is, and a row that an older release adds has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; ID_BYTES]);

/// A text that is no id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a key has 24 characters 0-9 A-F")]
pub struct NotAKeyId;

impl KeyId {
    /// The id of the key with this hash.
    #[must_use]
    pub fn of(hash: &[u8; 32]) -> Self {
        Self(std::array::from_fn(|at| hash[at]))
    }

    /// The first and the last hash that a key with this id may have.
    #[must_use]
    pub fn range(&self) -> ([u8; 32], [u8; 32]) {
        let bound = |rest: u8| std::array::from_fn(|at| self.0.get(at).copied().unwrap_or(rest));
        (bound(0), bound(u8::MAX))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl FromStr for KeyId {
    type Err = NotAKeyId;

    fn from_str(text: &str) -> Result<Self, NotAKeyId> {
        let is_hex = text.len() == 2 * ID_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return Err(NotAKeyId);
        }
        let mut bytes = [0; ID_BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NotAKeyId)?;
        }
        Ok(Self(bytes))
    }
}

/// How long a key is valid, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// When it ceases to be valid.
    pub expires_at: Option<UnixMillis>,
    /// From where it may be used; empty is everywhere.
    pub networks: Networks,
}

impl Bounds {
    /// Whether a key with these bounds can do nothing that one with the others cannot.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        others.expires_at.is_none_or(|end| self.expires_at.is_some_and(|at| at <= end))
            && (others.networks.is_empty()
                || !self.networks.is_empty() && self.networks.are_within(&others.networks))
    }
}

/// A key that is not revoked, as it is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Whose it is.
    pub actor: Actor,
    /// How long it is valid, and from where.
    pub bounds: Bounds,
    /// Whether its account is suspended.
    pub is_suspended: bool,
    /// Whether it is that of a session, which counts behind the gate of the console only.
    pub is_session: bool,
}

impl KnownKey {
    /// Whether it may be used from an address now; `now` is asked only of a key that expires.
    ///
    /// # Errors
    /// [`Code::KeyExpired`], [`Code::ForeignNetwork`] or [`Code::Suspended`]. A key with networks may not be used from an unknown address.
    pub fn check(&self, now: impl FnOnce() -> UnixMillis, client: Option<IpAddr>) -> Result<(), Code> {
        if self.bounds.expires_at.is_some_and(|at| at <= now()) {
            return Err(Code::KeyExpired);
        }
        if !admits(&self.bounds.networks, client) {
            return Err(Code::ForeignNetwork);
        }
        if self.is_suspended { Err(Code::Suspended) } else { Ok(()) }
    }

    /// Whether its last use is kept: that of users and Things would be a write for each of them.
    #[must_use]
    pub const fn notes_use(&self) -> bool {
        match self.actor.kind {
            ActorKind::Operator | ActorKind::ProjectOperator | ActorKind::TrustedApp | ActorKind::App => true,
            ActorKind::User | ActorKind::Thng => false,
        }
    }
}

/// Whether a key with these networks may be used from an address.
#[must_use]
pub fn admits(networks: &Networks, client: Option<IpAddr>) -> bool {
    networks.is_empty() || client.is_some_and(|ip| networks.contain(ip))
}

/// Whether a code says that a key was refused, and not what it may do.
#[must_use]
pub const fn is_of_key(code: Code) -> bool {
    matches!(
        code,
        Code::KeyMissing | Code::KeyUnknown | Code::KeyExpired | Code::ForeignNetwork | Code::Suspended
    )
}

#[cfg(test)]
mod tests {
    use shared::id::AccountId;

    use super::*;
    use crate::{
        access::{UserRights, hash_key},
        subject::Permissions,
    };

    #[test]
    fn an_id_is_the_start_of_the_hash() {
        let hash = hash_key(&"A".repeat(80));
        let id = KeyId::of(&hash);
        // printf %s AAAA… | sha256sum
        assert_eq!(id.to_string().len(), 24);
        assert!(shared::id::is_valid(&id.to_string()), "{id}: as any other id");
        assert_eq!(id.to_string().to_lowercase().parse(), Ok(id));
        let (first, last) = id.range();
        assert!(first < hash && hash < last && KeyId::of(&first) == id && KeyId::of(&last) == id);
        for wrong in [
            "",
            "UKXAGyEf8SQ5eTDmVgGpHqAa",
            "0123456789ABCDEF0123456",
            "+123456789ABCDEF01234567",
            "é123456789ABCDEF0123456",
        ] {
            assert_eq!(wrong.parse::<KeyId>(), Err(NotAKeyId), "{wrong}");
        }
    }

    fn bounds(expires_at: Option<i64>, networks: &str) -> Bounds {
        Bounds { expires_at: expires_at.map(UnixMillis), networks: networks.parse().unwrap() }
    }

    #[test]
    fn bounds_are_within_others_or_wider() {
        let free = bounds(None, "");
        let bound = bounds(Some(10), "10.0.0.0/8");
        for (inner, outer, expected) in [
            (&free, &free, true),
            (&bound, &free, true),
            (&bound, &bound, true),
            (&free, &bound, false),
            (&bounds(Some(9), "10.1.0.0/16"), &bound, true),
            (&bounds(Some(11), "10.1.0.0/16"), &bound, false),
            (&bounds(None, "10.1.0.0/16"), &bound, false),
            (&bounds(Some(9), ""), &bound, false),
            (&bounds(Some(9), "0.0.0.0/0"), &bound, false),
        ] {
            assert_eq!(inner.are_within(outer), expected, "{inner:?} {outer:?}");
        }
    }

    #[test]
    fn a_key_is_valid_in_its_time_and_networks() {
        let actor = Actor {
            account: AccountId::new(1, [1; 16]),
            kind: ActorKind::Operator,
            id: "o".to_owned(),
            project: None,
            app: None,
            enterprise: false,
            user_rights: UserRights::default(),
            permissions: Permissions::ALL,
            confined_to: Vec::new(),
        };
        for (expires_at, networks, client, expected) in [
            (None, "", None, Ok(())),
            (Some(11), "", None, Ok(())),
            (Some(10), "", None, Err(Code::KeyExpired)),
            (Some(9), "10.0.0.0/8", Some("192.0.2.1"), Err(Code::KeyExpired)),
            (None, "10.0.0.0/8", Some("10.1.1.1"), Ok(())),
            (None, "10.0.0.0/8", Some("192.0.2.1"), Err(Code::ForeignNetwork)),
            (None, "10.0.0.0/8", None, Err(Code::ForeignNetwork)),
        ] {
            let mut key = KnownKey {
                actor: actor.clone(),
                bounds: bounds(expires_at, networks),
                is_suspended: false,
                is_session: false,
            };
            let client = client.map(|ip: &str| ip.parse().unwrap());
            assert_eq!(
                key.check(|| UnixMillis(10), client),
                expected,
                "{expires_at:?} {networks} {client:?}"
            );
            key.is_suspended = true;
            let suspended = key.check(|| UnixMillis(10), client);
            assert_eq!(suspended, expected.and(Err(Code::Suspended)), "of a suspended account");
        }
    }
}
