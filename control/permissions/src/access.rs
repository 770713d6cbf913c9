//! Callers: kinds of actors and API keys.

use std::str::FromStr;

use sha2::{Digest, Sha256};
use shared::id::{AccountId, ApplicationId, ProjectId};

use crate::subject::Permissions;

/// Length of an API key in characters of `[A-Za-z0-9]`.
pub const KEY_LEN: usize = 80;

/// The first four letters of new keys of edges.
pub const EDGE_KEY_PREFIX: &str = "wmed";

shared::words! {
    /// The kinds of key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ActorKind {
        /// A person or program that may do everything in its account.
        Operator = "operator",
        /// An operator whose key or role is confined to projects: it may do there what a trusted application may, and
        /// manages keys of its like. A kind of its own, so that a release that does not know it refuses it.
        ProjectOperator = "projectOperator",
        /// An application's secret key, kept on a server: like an operator within its project.
        TrustedApp = "trustedApp",
        /// An application's public key, found in pages and apps.
        App = "app",
        /// A user of an application.
        User = "user",
        /// A Thng with a key of its own.
        Thng = "thng",
    } else ()
}

impl ActorKind {
    /// Whether anybody can get such a key: an application's is in a public page, users are created with that, and a
    /// Thng's can be read from the device.
    #[must_use]
    pub const fn is_public(self) -> bool {
        match self {
            Self::Operator | Self::ProjectOperator | Self::TrustedApp => false,
            Self::App | Self::User | Self::Thng => true,
        }
    }

    /// Whether the key is an operator's, of the account or of one project.
    #[must_use]
    pub const fn is_operator(self) -> bool {
        match self {
            Self::Operator | Self::ProjectOperator => true,
            Self::TrustedApp | Self::App | Self::User | Self::Thng => false,
        }
    }

    /// The first four letters of new keys of this kind, by which secret scanners find them (`deploy/guide/keys.md`).
    #[must_use]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Operator | Self::ProjectOperator => "wmop",
            Self::TrustedApp => "wmta",
            Self::App => "wmap",
            Self::User => "wmus",
            Self::Thng => "wmth",
        }
    }

    /// The kind as `/access` names it: both keys of an application are its own.
    #[must_use]
    pub const fn as_actor_type(self) -> &'static str {
        match self {
            Self::Operator | Self::ProjectOperator => "operator",
            Self::TrustedApp | Self::App => "app",
            Self::User => "userInApp",
            Self::Thng => "thng",
        }
    }
}

shared::words! {
    /// The rights of the users of an account's applications; anybody can become one with the public key of a page.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub enum UserRights {
        /// Read public resources; create, see and change their own as far as the application allows.
        #[default]
        Own = "own",
        /// Read everything in the project, and create Thngs, products, collections and redirections in it.
        Open = "open",
    }
}

impl FromStr for UserRights {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::ALL.into_iter().find(|rights| rights.as_str() == text).ok_or("must be own or open")
    }
}

/// The caller behind a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The account of the key; every query is restricted to it.
    pub account: AccountId,
    /// Kind of the key.
    pub kind: ActorKind,
    /// Id of the operator, application, user or Thng.
    pub id: String,
    /// The project that the key is confined to; applications and users always have one.
    pub project: Option<ProjectId>,
    /// The application of the key: itself, or that of the user.
    pub app: Option<ApplicationId>,
    /// Whether the account may use the enterprise parts.
    pub enterprise: bool,
    /// What users of applications may do in the account.
    pub user_rights: UserRights,
    /// What its role allows; everything where no role restricts it.
    pub permissions: Permissions,
    /// The projects that its role is confined to; empty if its key is limited to one of them.
    pub confined_to: Vec<ProjectId>,
}

impl Actor {
    /// An operator who may do everything in the account: what was accepted from one goes on with these rights.
    #[must_use]
    pub fn operator(account: AccountId, id: String) -> Self {
        Self {
            account,
            kind: ActorKind::Operator,
            id,
            project: None,
            app: None,
            enterprise: true,
            user_rights: UserRights::default(),
            permissions: Permissions::ALL,
            confined_to: Vec::new(),
        }
    }

    /// Whether it is a user of an application that reaches its own things only.
    #[must_use]
    pub fn is_confined_user(&self) -> bool {
        self.kind == ActorKind::User && self.user_rights == UserRights::Own
    }

    /// The projects that it is confined to; `None` where there are none.
    #[must_use]
    pub fn projects(&self) -> Option<Vec<ProjectId>> {
        let all = self.project.map_or_else(|| self.confined_to.clone(), |project| vec![project]);
        (!all.is_empty()).then_some(all)
    }

    /// Its name among those of its kind: keys of one operator that are confined to different projects must not see what
    /// the others did.
    #[must_use]
    pub fn own_name(&self) -> String {
        match (self.kind, self.project) {
            (ActorKind::ProjectOperator, Some(project)) => format!("{}\t{project}", self.id),
            _ => self.id.clone(),
        }
    }
}

/// Whether a text has the form of an API key.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.len() == KEY_LEN && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Creates a key from random bytes behind a prefix: one character each, without bias, from those below 248.
///
/// `None` when too few bytes are usable; 160 bytes hold 80 usable ones but for one case in 10^30.
#[must_use]
pub fn key_from_random(prefix: &str, random: &[u8]) -> Option<String> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letters = random.iter().filter(|b| **b < 248).map(|b| char::from(LETTERS[usize::from(b % 62)]));
    let key: String = prefix.chars().chain(letters).take(KEY_LEN).collect();
    is_key(&key).then_some(key)
}

/// Which of its keys an application or Thng has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// A key of before keys had a prefix. Of Things there may be several, counted from 0.
    WithoutPrefix(u32),
    /// A key with the prefix of its kind, counted from 1.
    WithPrefix(u32),
}

impl Generation {
    /// The generation of an application, which is stored as a number: 0 is the key of before there were prefixes.
    #[must_use]
    pub const fn of_application(number: u32) -> Self {
        if number == 0 { Self::WithoutPrefix(0) } else { Self::WithPrefix(number) }
    }
}

// Spec gap: whether keys can be read again is not shown; clients read `appApiKey`, `secretApiKey` and
// `thngApiKey` whenever they like, while only hashes are stored. Those keys are derived.
/// The key of an application or Thng: a keyed hash of its purpose, the same each time.
///
/// `None` in one case of 10^30; see [`key_from_random`].
#[must_use]
pub fn derive_key(
    secret: &[u8; 32],
    kind: ActorKind,
    actor_id: &str,
    generation: Generation,
) -> Option<String> {
    let (prefix, number) = match generation {
        Generation::WithoutPrefix(number) => ("", number),
        Generation::WithPrefix(number) => (kind.key_prefix(), number),
    };
    let mut hasher = blake3::Hasher::new_keyed(secret);
    // The prefix is hashed too: otherwise most letters of a key would be those of one without a prefix.
    for part in [prefix, kind.as_str(), actor_id].into_iter().filter(|part| !part.is_empty()) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&number.to_le_bytes());
    let mut bytes = [0; 2 * KEY_LEN];
    hasher.finalize_xof().fill(&mut bytes);
    key_from_random(prefix, &bytes)
}

/// How a key is stored and looked up: it has more than 256 bits of entropy, so a fast hash is enough.
#[must_use]
pub fn hash_key(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_80_letters_and_digits() {
        let random: Vec<u8> = (0..160u8).collect();
        let key = key_from_random("", &random).unwrap();
        assert!(is_key(&key));
        let prefixed = key_from_random("wmop", &random).unwrap();
        assert!(is_key(&prefixed) && prefixed.starts_with("wmop") && key.starts_with(&prefixed[4..]));
        assert_eq!(key_from_random("", &[255; 160]), None);
        assert_eq!(key_from_random("", &random[..79]), None);
        assert!(!is_key(&format!("{}-", &key[..79])));
        assert!(!is_key(&key[..79]));
    }

    #[test]
    fn each_kind_has_a_prefix_of_four_letters() {
        let mut prefixes: Vec<&str> = ActorKind::ALL.iter().map(|kind| kind.key_prefix()).collect();
        prefixes.push(EDGE_KEY_PREFIX);
        assert!(prefixes.iter().all(|prefix| prefix.len() == 4 && prefix.starts_with("wm")), "{prefixes:?}");
        prefixes.sort_unstable();
        prefixes.dedup();
        // Both kinds of operators' keys have the same.
        assert_eq!(prefixes.len(), ActorKind::ALL.len());
    }

    #[test]
    fn derived_keys_depend_on_actor_kind_generation_and_secret() {
        let key = |secret: u8, kind, id, generation| derive_key(&[secret; 32], kind, id, generation).unwrap();
        let old = Generation::WithoutPrefix;
        let first = key(1, ActorKind::App, "A", old(0));
        assert!(is_key(&first));
        assert_eq!(first, key(1, ActorKind::App, "A", old(0)));
        let next = key(1, ActorKind::App, "A", Generation::WithPrefix(1));
        assert!(is_key(&next) && next.starts_with("wmap"), "{next}");
        assert!(!key(1, ActorKind::App, "A", old(1)).starts_with(&next[4..]), "another hash");
        for other in [
            key(2, ActorKind::App, "A", old(0)),
            key(1, ActorKind::TrustedApp, "A", old(0)),
            key(1, ActorKind::App, "B", old(0)),
            key(1, ActorKind::App, "A", old(1)),
            key(1, ActorKind::App, "A", Generation::WithPrefix(2)),
            next,
        ] {
            assert_ne!(first, other);
        }
    }

    /// Keys of before there were prefixes are in pages and devices: they must never change.
    #[test]
    fn keys_without_a_prefix_stay_as_they_were() {
        for (kind, number, expected) in LEGACY {
            let key =
                derive_key(&[7; 32], *kind, "UKXAGyEf8SQ5eTDmVgGpHqAa", Generation::WithoutPrefix(*number));
            assert_eq!(key.as_deref(), Some(*expected), "{kind:?} {number}");
        }
    }

    /// As the release before prefixes derived them.
    const LEGACY: &[(ActorKind, u32, &str)] = &[
        (
            ActorKind::App,
            0,
            "XvPRLYhif4ts5iCTojGuG1MsMq7bMneTThU9yBW0yKlWEOSHD7Jb9tNcRHwTF256R0znuiRq8IEgdJaC",
        ),
        (
            ActorKind::TrustedApp,
            0,
            "DfwDZTyMLzCjX8TGU0IoaduXcLVlMQ66MFvAkYBJlqJtxhkYLSI0nvDgZLaaNeJYdo6oSskGl98S29mI",
        ),
        (
            ActorKind::Thng,
            0,
            "pNWM5A86lLG3Omgbdd1v3N6RKzs30oOpYbMpvP1SGhbHHu03ILIioJ3kua9QZsBNulqUCUmjGHhJR6X2",
        ),
        (
            ActorKind::Thng,
            3,
            "blsOV4VKQBzOFJFRMxzZ53AY9Rro7gMxAmJbXRKPM8nbwd1BMBm88Lh1jW2ijQdeDlbWleZp46d6qFjD",
        ),
    ];
}
