//! Who calls, and what the kind of key may do.

use std::str::FromStr;

use shared::id::{AccountId, ApplicationId, ProjectId};

/// Length of an API key in characters of `[A-Za-z0-9]` (decisions 1).
pub const KEY_LEN: usize = 80;

/// The kinds of key (decisions 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// A person or program that may do everything in its account.
    Operator,
    /// An application's secret key, kept on a server: like an operator within its project.
    TrustedApp,
    /// An application's public key, found in pages and apps.
    App,
    /// A user of an application.
    User,
    /// A Thng with a key of its own.
    Thng,
}

impl ActorKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Operator, Self::TrustedApp, Self::App, Self::User, Self::Thng];

    /// The kind as stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::TrustedApp => "trustedApp",
            Self::App => "app",
            Self::User => "user",
            Self::Thng => "thng",
        }
    }

    /// The kind as `/access` names it: both keys of an application are its own.
    #[must_use]
    pub const fn as_actor_type(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::TrustedApp | Self::App => "app",
            Self::User => "userInApp",
            Self::Thng => "thng",
        }
    }
}

impl FromStr for ActorKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(())
    }
}

/// The caller behind a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The account the key belongs to; every query goes by it.
    pub account: AccountId,
    /// Kind of the key.
    pub kind: ActorKind,
    /// Id of the operator, application, user or Thng.
    pub id: String,
    /// The project that the key is confined to; applications and users always have one.
    pub project: Option<ProjectId>,
    /// The application that the key was made by: its own, or the user's.
    pub app: Option<ApplicationId>,
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
