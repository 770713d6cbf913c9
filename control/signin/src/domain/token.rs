//! The token of a session, which is in the cookie, and the key that is derived from it.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::access::{KEY_LEN, key_from_random};

/// The cookie. Browsers take one with this prefix only over TLS (or from `localhost`), for this host and for all paths.
pub const COOKIE: &str = "__Host-waymark";

/// [`COOKIE`] as it stands before its value.
pub const COOKIE_START: &str = "__Host-waymark=";

/// What `Set-Cookie` says beside the value. The cookie ends with the browser; how long the session lasts is up to the server.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";

/// The value of `Set-Cookie` that takes the token from a browser.
pub const CLEARED_COOKIE: &str = "__Host-waymark=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0";

/// Length of a token in bytes.
pub const TOKEN_LEN: usize = 32;

/// The token of a session: 256 random bits; never shown but in the cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; TOKEN_LEN]);

impl Token {
    /// A token of random bytes.
    #[must_use]
    pub const fn new(random: [u8; TOKEN_LEN]) -> Self {
        Self(random)
    }

    /// The token in the `Cookie` headers of a request; `None` unless there is exactly one.
    #[must_use]
    pub fn find<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let pairs =
            headers.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
        let value = values.next()?;
        // With two of them it would be anybody's guess which one counts.
        if values.next().is_some() {
            return None;
        }
        URL_SAFE_NO_PAD.decode(value).ok()?.try_into().ok().map(Self)
    }

    /// The value of `Set-Cookie` that gives a browser the token.
    #[must_use]
    pub fn set_cookie(&self) -> String {
        format!("{COOKIE}={}; {ATTRIBUTES}", URL_SAFE_NO_PAD.encode(self.0))
    }

    /// The key of the session: a keyed hash of the token, in the form of keys.
    ///
    /// `None` in one case of 10^30; see [`key_from_random`].
    #[must_use]
    pub fn key(&self, secret: &[u8; 32]) -> Option<String> {
        let secret = blake3::derive_key("waymark 2026-11 keys of sessions", secret);
        let mut bytes = [0; 2 * KEY_LEN];
        blake3::Hasher::new_keyed(&secret).update(&self.0).finalize_xof().fill(&mut bytes);
        key_from_random("", &bytes)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::is_key;

    #[test]
    fn the_cookie_is_found_among_others() {
        let token = Token::new([7; TOKEN_LEN]);
        let set = token.set_cookie();
        let (pair, attributes) = set.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Strict");
        let both = format!("{pair}; {pair}");
        let spaced = format!("a=b;  {pair} ; c=d");
        let short = &pair[..pair.len() - 1];
        for (headers, expected) in [
            (vec![pair], true),
            (vec![&spaced], true),
            (vec!["a=b", pair], true),
            (vec![&both], false),
            (vec![pair, pair], false),
            (vec![short], false),
            (vec!["__Host-waymark="], false),
            (vec!["waymark=x"], false),
            (vec![], false),
        ] {
            let found = Token::find(headers.iter().copied());
            assert_eq!(found, expected.then(|| token.clone()), "{headers:?}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn the_key_depends_on_token_and_secret() {
        let key = |token: u8, secret: u8| Token::new([token; TOKEN_LEN]).key(&[secret; 32]).unwrap();
        assert!(is_key(&key(1, 1)));
        assert_eq!(key(1, 1), key(1, 1));
        assert_ne!(key(1, 1), key(2, 1));
        assert_ne!(key(1, 1), key(1, 2));
        assert!(!Token::new([1; TOKEN_LEN]).set_cookie().contains(&key(1, 1)));
    }
}
