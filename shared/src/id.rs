//! Resource identifiers: 24 characters of a 50-letter alphabet.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Characters an identifier may hold, in ASCII order so that text order follows numeric order.
///
/// The letters are those of the platform API.
pub const ALPHABET: &[u8; 50] = b"0123456789ABCDEFGHKMNPQRSTUVWXYabcdefghkmnpqrstwxy";

/// Length of an identifier in characters.
pub const ID_LEN: usize = 24;

/// Leading characters that follow time: 50^8 ms is 1,238 years.
const TIME_LEN: usize = 8;

/// Why a text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id has 24 characters of the letters and digits a-y A-Y 0-9 without i j l o u v z I J L O Z")]
pub struct InvalidId;

/// Writes `value` in base 50, most significant digit first, filling `out`.
fn write_base50(mut value: u128, out: &mut [u8]) {
    for slot in out.iter_mut().rev() {
        *slot = ALPHABET[(value % 50) as usize];
        value /= 50;
    }
}

/// Composes an identifier from a time and 128 random (or keyed-hash) bits.
///
/// The first 8 characters encode `at_ms`, so rows created together are adjacent in an index; the other 16 carry 90
/// bits of `random` and make the identifier unguessable. Negative times count as 0.
#[must_use]
pub fn compose(at_ms: i64, random: [u8; 16]) -> [u8; ID_LEN] {
    let mut out = [b'0'; ID_LEN];
    let at = u128::from(at_ms.max(0).unsigned_abs());
    write_base50(at, &mut out[..TIME_LEN]);
    write_base50(u128::from_be_bytes(random), &mut out[TIME_LEN..]);
    out
}

/// Whether `text` has the form of an identifier.
#[must_use]
pub fn is_valid(text: &str) -> bool {
    text.len() == ID_LEN && text.bytes().all(|byte| ALPHABET.binary_search(&byte).is_ok())
}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// 24 characters of [`ALPHABET`]; created by parsing or from a time and random bits.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; ID_LEN]);

        impl $name {
            /// Creates a new identifier from the time in milliseconds and 128 random bits.
            #[must_use]
            pub fn new(at_ms: i64, random: [u8; 16]) -> Self {
                Self(compose(at_ms, random))
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                // The bytes are ASCII by construction; the fallback is never taken.
                std::str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if !is_valid(text) {
                    return Err(InvalidId);
                }
                text.as_bytes().try_into().map(Self).map_err(|_| InvalidId)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

id_types! {
    /// An account: the tenant that everything else belongs to.
    AccountId;
    /// A person or program that works in an account with an operator key.
    OperatorId;
    /// A project, a named part of an account.
    ProjectId;
    /// A Thng: one tracked item.
    ThngId;
    /// A product: what Thngs are instances of.
    ProductId;
    /// A place.
    PlaceId;
    /// A collection of Thngs.
    CollectionId;
    /// A batch of Thngs.
    BatchId;
    /// Id of a role that an account made.
    RoleId;
    /// A task of a batch.
    TaskId;
    /// A request to erase personal data.
    ErasureId;
    /// An action recorded against a Thng or product.
    ActionId;
    /// An application of a project.
    ApplicationId;
    /// A user of applications.
    UserId;
    /// A file.
    FileId;
    /// A job.
    JobId;
    /// A webhook.
    WebhookId;
    /// A reaction.
    ReactionId;
    /// A case: an item that an assessment suspects.
    CaseId;
    /// What a finder wrote about an item that may be a copy.
    ReportId;
    /// An access of an operator to an account.
    AccessId;
    /// The identifier of any resource a redirection may belong to.
    ResourceId;
}

impl From<ThngId> for ResourceId {
    fn from(id: ThngId) -> Self {
        Self(id.0)
    }
}

impl From<ProductId> for ResourceId {
    fn from(id: ProductId) -> Self {
        Self(id.0)
    }
}

impl From<PlaceId> for ResourceId {
    fn from(id: PlaceId) -> Self {
        Self(id.0)
    }
}

impl From<CollectionId> for ResourceId {
    fn from(id: CollectionId) -> Self {
        Self(id.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn alphabet_is_sorted_and_complete() {
        assert!(ALPHABET.is_sorted());
        let mut letters: Vec<u8> = b"abcdefghkmnpqrstwxyABCDEFGHKMNPQRSTUVWXY0123456789".to_vec();
        letters.sort_unstable();
        assert_eq!(letters, ALPHABET);
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in
            ["", "U", "UKXAGyEf8SQ5eTDmVgGpHqAi", "UKXAGyEf8SQ5eTDmVgGpHqAaa", "UKXAGyEf8SQ5eTDmVgGpHqA é"]
        {
            assert!(text.parse::<ThngId>().is_err(), "{text:?}");
        }
        assert!("UKXAGyEf8SQ5eTDmVgGpHqAa".parse::<ThngId>().is_ok());
    }

    proptest! {
        #[test]
        fn a_later_time_sorts_later(a in 0i64..4_000_000_000_000, b in 0i64..4_000_000_000_000, r: [u8; 16], s: [u8; 16]) {
            prop_assume!(a < b);
            prop_assert!(ThngId::new(a, r) < ThngId::new(b, s));
            prop_assert!(ThngId::new(a, r).as_str() < ThngId::new(b, s).as_str());
        }

        #[test]
        fn composed_ids_parse(at: i64, r: [u8; 16]) {
            let id = ThngId::new(at, r);
            prop_assert_eq!(id.as_str().parse::<ThngId>(), Ok(id));
        }
    }
}
