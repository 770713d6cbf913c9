//! The cookie in which a sign-in waits, encrypted.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::service::Random;
use secrets::keys::{NONCE_LEN, open_with, seal_with};

use crate::{
    error::SignInError,
    pending::{LIFETIME, Pending},
};

/// The name of the cookie. Browsers take such a name over TLS or from this machine only, for this host and all paths.
pub const COOKIE: &str = "__Host-waymark-oidc";

/// What is encrypted, for the cipher: nothing else that was encrypted with the same key is taken for it.
const NAME: &str = "oidc-pending-1";

/// Most characters of the value: the longest return path and the rest, as base64.
const MAX_CHARS: usize = 3_072;

/// Writes and reads the cookie.
#[derive(Clone)]
pub struct PendingCookies {
    key: [u8; 32],
}

impl PendingCookies {
    /// With the key that all replicas have.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The value of the `Set-Cookie` header for a sign-in.
    ///
    /// `SameSite=Lax`, because the browser comes back from another site.
    ///
    /// # Errors
    /// The system's own fault.
    pub fn set(&self, pending: &Pending, random: &dyn Random) -> Result<String, SignInError> {
        let internal = |text: &str| SignInError::Internal(text.to_owned());
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce).map_err(|error| internal(&error.to_string()))?;
        let bytes = serde_json::to_vec(pending).map_err(|_| internal("a sign-in cannot be written"))?;
        let sealed = seal_with(&self.key, NAME, &bytes, nonce).ok_or(internal("a sign-in is too long"))?;
        let value = URL_SAFE_NO_PAD.encode(sealed);
        if value.len() > MAX_CHARS {
            return Err(internal("a sign-in is too long"));
        }
        let seconds = LIFETIME.as_secs();
        Ok(format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax"))
    }

    /// The value of the `Set-Cookie` header that removes the cookie.
    #[must_use]
    pub fn clear() -> String {
        format!("{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax")
    }

    /// The sign-in in the `Cookie` headers of a request.
    ///
    /// # Errors
    /// There is none, or it was not written by this server.
    pub fn find<'a>(&self, headers: impl IntoIterator<Item = &'a str>) -> Result<Pending, SignInError> {
        let pairs = headers.into_iter().flat_map(|header| header.split(';'));
        let mut values =
            pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == COOKIE);
        let (_, value) = values.next().ok_or(SignInError::NotBegun)?;
        let sealed = URL_SAFE_NO_PAD.decode(value).ok().filter(|_| value.len() <= MAX_CHARS);
        let bytes = sealed.and_then(|sealed| open_with(&self.key, NAME, &sealed));
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or(SignInError::NotBegun)
    }
}

#[cfg(test)]
mod tests {
    use kernel::service::RandomUnavailable;

    use super::*;
    use crate::{pending::tests::pending, return_path::ReturnPath};

    struct Zeros;

    impl Random for Zeros {
        fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable> {
            out.fill(0);
            Ok(())
        }
    }

    #[test]
    fn only_what_this_server_wrote_is_read() {
        let cookies = PendingCookies::new([1; 32]);
        let set = cookies.set(&pending(), &Zeros).unwrap();
        let (pair, attributes) = set.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax");
        assert!(!pair.contains("the-"), "it is encrypted");
        assert_eq!(cookies.find([pair]), Ok(pending()));
        assert_eq!(cookies.find(["a=b", &format!("c=d; {pair}; e=f")]), Ok(pending()));
        assert_eq!(PendingCookies::new([2; 32]).find([pair]), Err(SignInError::NotBegun));
        let value = pair.split_once('=').unwrap().1;
        for other in [
            String::new(),
            "a=b".to_owned(),
            COOKIE.to_owned(),
            format!("{COOKIE}="),
            format!("{COOKIE}=not base64"),
            format!("{COOKIE}={}A", &value[..value.len() - 1]),
            format!("{COOKIE}={}", &value[4..]),
            format!("waymark-oidc={value}"),
            format!("{COOKIE}={}", "A".repeat(10_000)),
        ] {
            assert_eq!(cookies.find([other.as_str()]), Err(SignInError::NotBegun), "{other}");
        }
    }

    #[test]
    fn the_longest_sign_in_fits_into_a_cookie() {
        let long = Pending {
            return_path: ReturnPath::parse(&format!("/{}", "\"".repeat(512))).unwrap(),
            redirect_uri: format!("https://{}/console/api/oidc/callback", "a".repeat(253)),
            state: "s".repeat(43),
            nonce: "n".repeat(43),
            verifier: "v".repeat(43),
            ..pending()
        };
        let set = PendingCookies::new([1; 32]).set(&long, &Zeros).unwrap();
        assert!(set.len() < 4_096, "{}", set.len());
    }
}
