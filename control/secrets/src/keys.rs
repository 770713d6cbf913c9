//! Keys that lie outside of the database, and values encrypted with them.
//!
//! An encrypted value is: a byte for the version (1), 4 bytes that name the key, 12 bytes of nonce, the ciphertext of
//! AES-256-GCM with its tag. The name of the value is associated data: under another name it does not decrypt.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

/// Length of a key.
pub const KEY_LEN: usize = 32;
/// Length of a nonce, which must be random.
pub const NONCE_LEN: usize = 12;

const VERSION: u8 = 1;
const ID_LEN: usize = 4;

/// Names a key: the first 4 bytes of a hash of it, shown as 8 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId([u8; ID_LEN]);

impl KeyId {
    fn of(key: &[u8; KEY_LEN]) -> Self {
        let mut hash = Sha256::new();
        hash.update("waymark secret key id");
        hash.update(key);
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        Self([a, b, c, d])
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The keys of a file: the first one encrypts, each of them decrypts.
pub struct SecretKeys {
    current: (KeyId, LessSafeKey),
    older: Vec<(KeyId, LessSafeKey)>,
}

/// Why a text holds no keys; it does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeys {
    /// There is no line with a key.
    #[error("it holds no key")]
    Empty,
    /// A line is no key; its number.
    #[error("line {0} is no key of 64 hexadecimal digits")]
    Line(usize),
}

/// Why a value does not decrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// Its key is not among the keys.
    MissingKey(KeyId),
    /// It was changed or moved, or is of a version that this release does not know.
    Invalid,
}

impl SecretKeys {
    /// Reads keys: one a line, as 64 hexadecimal digits, the current one first; empty lines do not count.
    ///
    /// # Errors
    /// There is none, or a line is something else.
    pub fn parse(text: &str) -> Result<Self, InvalidKeys> {
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let mut keys = lines.map(|(at, line)| parse_key(line).ok_or(InvalidKeys::Line(at + 1)));
        let current = keys.next().ok_or(InvalidKeys::Empty)??;
        Ok(Self { current, older: keys.collect::<Result<_, _>>()? })
    }

    /// The key that encrypts.
    #[must_use]
    pub fn current(&self) -> KeyId {
        self.current.0
    }

    /// Every key, the current one first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.all().map(|(id, _)| *id)
    }

    /// Encrypts a value with the current key; `None` when it is too long for the cipher.
    #[must_use]
    pub fn seal(&self, name: &str, value: &[u8], nonce: [u8; NONCE_LEN]) -> Option<Vec<u8>> {
        let (id, key) = &self.current;
        let mut out = vec![VERSION];
        out.extend(id.0);
        out.extend(encrypt(key, name, value, nonce)?);
        Some(out)
    }

    /// Decrypts a value.
    ///
    /// # Errors
    /// Its key is missing, or it is not what was encrypted under this name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (id, encrypted) = split(sealed).ok_or(OpenError::Invalid)?;
        let mut named = self.all().filter(|(known, _)| *known == id).peekable();
        if named.peek().is_none() {
            return Err(OpenError::MissingKey(id));
        }
        named.find_map(|(_, key)| decrypt(key, name, encrypted)).ok_or(OpenError::Invalid)
    }

    fn all(&self) -> impl Iterator<Item = &(KeyId, LessSafeKey)> {
        std::iter::once(&self.current).chain(&self.older)
    }
}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

/// The key that a value is encrypted with; `None` when it is not of a form that this release knows.
#[must_use]
pub fn key_of(sealed: &[u8]) -> Option<KeyId> {
    split(sealed).map(|(id, _)| id)
}

/// A key as a line of a file.
#[must_use]
pub fn line_of(key: &[u8; KEY_LEN]) -> String {
    key.iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|n| char::from_digit(n.into(), 16))
        .collect()
}

/// Encrypts a value with a key of its own; `None` when it is too long for the cipher.
#[must_use]
pub fn seal_with(key: &[u8; KEY_LEN], name: &str, value: &[u8], nonce: [u8; NONCE_LEN]) -> Option<Vec<u8>> {
    encrypt(&cipher(key)?, name, value, nonce)
}

/// Decrypts what [`seal_with`] made; `None` when it is something else.
#[must_use]
pub fn open_with(key: &[u8; KEY_LEN], name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    decrypt(&cipher(key)?, name, sealed)
}

fn parse_key(line: &str) -> Option<(KeyId, LessSafeKey)> {
    let digits: Option<Vec<u8>> =
        line.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    let key: [u8; KEY_LEN] = Vec::try_into(bytes).ok().filter(|_| line.len() == 2 * KEY_LEN)?;
    Some((KeyId::of(&key), cipher(&key)?))
}

fn cipher(key: &[u8; KEY_LEN]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}

fn split(sealed: &[u8]) -> Option<(KeyId, &[u8])> {
    let (id, encrypted) = sealed.strip_prefix(&[VERSION])?.split_first_chunk::<ID_LEN>()?;
    (encrypted.len() >= NONCE_LEN + AES_256_GCM.tag_len()).then_some((KeyId(*id), encrypted))
}

fn encrypt(key: &LessSafeKey, name: &str, value: &[u8], nonce: [u8; NONCE_LEN]) -> Option<Vec<u8>> {
    let mut text = value.to_vec();
    let sealed = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(sealed, Aad::from(name.as_bytes()), &mut text).ok()?;
    Some([&nonce[..], &text].concat())
}

fn decrypt(key: &LessSafeKey, name: &str, encrypted: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = encrypted.split_first_chunk::<NONCE_LEN>()?;
    let mut text = text.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    Some(key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut text).ok()?.to_vec())
}

#[cfg(test)]
mod tests;
