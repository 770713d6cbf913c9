//! Passwords and how they are stored: argon2id in a PHC string.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use subtle::ConstantTimeEq;

// Spec gap: what passwords may be is not shown.
/// Shortest password of the first contract, in characters.
pub const MIN_PASSWORD: usize = 8;
/// Shortest new password, in characters.
pub const MIN_NEW_PASSWORD: usize = 12;
/// Longest password, in characters, so that hashing cannot be abused to use up the CPU.
pub const MAX_PASSWORD: usize = 256;

/// Guesses that a new password must withstand: far more than an address lets anybody make in its lifetime.
const LEAST_GUESSES: u64 = 1_000_000;

/// Length of the salt in bytes.
pub const SALT_LEN: usize = 16;

const HASH_LEN: usize = 32;
/// 19 MiB, two passes, one lane: the least that OWASP asks of argon2id.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const PREFIX: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

/// A password as somebody sent it; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password of allowed length; the fault is a sentence without its subject.
    ///
    /// # Errors
    /// It is shorter than [`MIN_PASSWORD`] or longer than [`MAX_PASSWORD`].
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::with_length(text, MIN_PASSWORD)
    }

    /// A new password of allowed length; the fault is a sentence without its subject.
    ///
    /// # Errors
    /// It is shorter than [`MIN_NEW_PASSWORD`] or longer than [`MAX_PASSWORD`].
    pub fn parse_new(text: &str) -> Result<Self, String> {
        Self::with_length(text, MIN_NEW_PASSWORD)
    }

    /// Whether somebody who knows `about` its owner guesses it with few tries: it is common, or made of common parts.
    /// May take some milliseconds.
    #[must_use]
    pub fn is_guessable(&self, about: &[&str]) -> bool {
        zxcvbn::zxcvbn(&self.0, about).guesses() < LEAST_GUESSES
    }

    fn with_length(text: &str, least: usize) -> Result<Self, String> {
        let length = text.chars().count();
        if (least..=MAX_PASSWORD).contains(&length) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("must have {least} to {MAX_PASSWORD} characters, not {length}"))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// The algorithm refused its parameters or found no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a password cannot be hashed")]
pub struct HashFailed;

/// How a password is stored: a PHC string. Takes some 20 ms of one core and 19 MiB.
///
/// # Errors
/// There is no memory.
pub fn hash(password: &Password, salt: &[u8; SALT_LEN]) -> Result<String, HashFailed> {
    let out = digest(password, salt)?;
    Ok(format!("{PREFIX}{}${}", STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(out)))
}

/// Verifies a password; takes the same time when nothing is stored.
///
/// # Errors
/// There is no memory, or the stored text is not a result of [`hash`].
pub fn verify(password: &Password, stored: Option<&str>) -> Result<bool, HashFailed> {
    let (salt, expected) = match stored {
        Some(text) => read(text).ok_or(HashFailed)?,
        None => ([0; SALT_LEN], [0; HASH_LEN]),
    };
    let is_same: bool = digest(password, &salt)?.ct_eq(&expected).into();
    Ok(is_same && stored.is_some())
}

fn digest(password: &Password, salt: &[u8; SALT_LEN]) -> Result<[u8; HASH_LEN], HashFailed> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_LEN)).map_err(|_| HashFailed)?;
    let mut out = [0; HASH_LEN];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.0.as_bytes(), salt, &mut out)
        .map_err(|_| HashFailed)?;
    Ok(out)
}

fn read(text: &str) -> Option<([u8; SALT_LEN], [u8; HASH_LEN])> {
    let (salt, hash) = text.strip_prefix(PREFIX)?.split_once('$')?;
    let salt = STANDARD_NO_PAD.decode(salt).ok()?.try_into().ok()?;
    Some((salt, STANDARD_NO_PAD.decode(hash).ok()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_password_is_verified() {
        let password = |text: &str| Password::parse(text).unwrap();
        let stored = hash(&password("password"), &[7; SALT_LEN]).unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$BwcHBwcHBwcHBwcHBwcHBw$"), "{stored}");
        assert_eq!(verify(&password("password"), Some(&stored)), Ok(true));
        assert_eq!(verify(&password("Password"), Some(&stored)), Ok(false));
        assert_eq!(verify(&password("password"), None), Ok(false));
        assert_eq!(verify(&password("password"), Some("")), Err(HashFailed));
        assert_ne!(hash(&password("password"), &[8; SALT_LEN]).unwrap(), stored);
    }

    #[test]
    fn passwords_have_limits_and_are_not_shown() {
        for (length, fits) in [(0, false), (7, false), (8, true), (256, true), (257, false)] {
            assert_eq!(Password::parse(&"ü".repeat(length)).is_ok(), fits, "{length}");
        }
        assert_eq!(format!("{:?}", Password::parse("password").unwrap()), "Password(…)");
        for (length, fits) in [(11, false), (12, true), (256, true), (257, false)] {
            assert_eq!(Password::parse_new(&"ü".repeat(length)).is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn common_passwords_are_guessable() {
        let about = ["ada.lovelace@example.com", "Ada", "Lovelace"];
        for (text, expected) in [
            ("passwordpassword", true),
            ("password1234", true),
            ("123456789012", true),
            ("qwertyuiop123", true),
            ("aaaaaaaaaaaaaaaa", true),
            ("ada.lovelace@example.com", true),
            ("correct horse battery staple", false),
            ("a long sentence is best", false),
            ("kX3qP7wZ9vBn", false),
        ] {
            assert_eq!(Password::parse_new(text).unwrap().is_guessable(&about), expected, "{text}");
        }
    }
}
