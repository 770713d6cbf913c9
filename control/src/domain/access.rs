//! Who calls, and what the kind of key may do.

use std::str::FromStr;

use shared::id::AccountId;

/// Length of an API key in characters of `[A-Za-z0-9]` (decisions 1).
pub const KEY_LEN: usize = 80;

/// The kinds of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// A person or program that may do everything in its account.
    Operator,
}

impl ActorKind {
    /// The kind as stored and as `/access` names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
        }
    }
}

impl FromStr for ActorKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "operator" => Ok(Self::Operator),
            _ => Err(()),
        }
    }
}

/// The caller behind a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The account the key belongs to; every query goes by it.
    pub account: AccountId,
    /// Kind of the key.
    pub kind: ActorKind,
    /// Id of the operator (later application, user or Thng).
    pub id: String,
    /// Whether the account may use the enterprise parts.
    pub enterprise: bool,
}

/// Tells whether a text has the form of an API key.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.len() == KEY_LEN && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Makes a key from random bytes: one character each, without bias, from those below 248.
///
/// `None` when too few bytes are usable; 160 bytes hold 80 usable ones but for one case in 10^30.
#[must_use]
pub fn key_from_random(random: &[u8]) -> Option<String> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let key: String = random
        .iter()
        .filter(|b| **b < 248)
        .take(KEY_LEN)
        .map(|b| char::from(LETTERS[usize::from(b % 62)]))
        .collect();
    is_key(&key).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_80_letters_and_digits() {
        let random: Vec<u8> = (0..160u8).collect();
        let key = key_from_random(&random).unwrap();
        assert!(is_key(&key));
        assert_eq!(key_from_random(&[255; 160]), None);
        assert_eq!(key_from_random(&random[..79]), None);
        assert!(!is_key(&format!("{}-", &key[..79])));
        assert!(!is_key(&key[..79]));
    }
}
