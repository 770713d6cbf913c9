//! A sign-in that was begun.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use shared::{id::AccountId, time::UnixMillis};
use subtle::ConstantTimeEq as _;

use crate::{error::SignInError, return_path::ReturnPath};

/// How long a sign-in may take.
pub const LIFETIME: Duration = Duration::from_secs(600);

/// A sign-in that was begun: what only its browser has until it comes back.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// The secret of PKCE.
    pub(crate) verifier: String,
    /// Where the provider sends the browser; the token endpoint compares it.
    pub(crate) redirect_uri: String,
    pub(crate) return_path: ReturnPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<AccountId>,
    pub(crate) expires_at: UnixMillis,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// What the browser brings back: the parameters of the redirect URL.
#[derive(Clone, Copy, Default)]
pub struct Answer<'a> {
    /// The state.
    pub state: Option<&'a str>,
    /// The code.
    pub code: Option<&'a str>,
    /// Who says that it answered (RFC 9207).
    pub iss: Option<&'a str>,
    /// Why there is no code.
    pub error: Option<&'a str>,
}

impl Pending {
    /// Compares what came back with what was begun; gives the code.
    ///
    /// Then [`used_states::claim`](crate::store::used_states::claim) must succeed before the code is used.
    ///
    /// # Errors
    /// It is of another sign-in, too late, or the provider refused.
    pub fn check<'a>(&self, answer: Answer<'a>, now: UnixMillis) -> Result<&'a str, SignInError> {
        let state = answer.state.unwrap_or_default();
        if !bool::from(state.as_bytes().ct_eq(self.state.as_bytes())) {
            return Err(SignInError::OtherState);
        }
        if now >= self.expires_at {
            return Err(SignInError::Expired);
        }
        if let Some(code) = answer.error {
            return Err(SignInError::refused(code));
        }
        answer.code.filter(|code| !code.is_empty()).ok_or(SignInError::CodeRefused)
    }

    /// SHA-256 of the state.
    #[must_use]
    pub fn state_hash(&self) -> [u8; 32] {
        Sha256::digest(self.state.as_bytes()).into()
    }

    /// When it expires.
    #[must_use]
    pub const fn expires_at(&self) -> UnixMillis {
        self.expires_at
    }

    /// Where the browser goes after the sign-in.
    #[must_use]
    pub const fn return_path(&self) -> &ReturnPath {
        &self.return_path
    }

    /// The account that was named at the beginning.
    #[must_use]
    pub const fn account(&self) -> Option<AccountId> {
        self.account
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pending() -> Pending {
        Pending {
            state: "the-state".to_owned(),
            nonce: "the-nonce".to_owned(),
            verifier: "the-verifier".to_owned(),
            redirect_uri: "https://api.example.com/callback".to_owned(),
            return_path: ReturnPath::parse("/console/").unwrap(),
            account: None,
            expires_at: UnixMillis(1_000),
        }
    }

    #[test]
    fn only_the_answer_of_this_sign_in_is_used() {
        let ok = Answer { state: Some("the-state"), code: Some("c"), ..Answer::default() };
        let check = |answer, now| pending().check(answer, UnixMillis(now));
        assert_eq!(check(ok, 999), Ok("c"));
        assert_eq!(check(ok, 1_000), Err(SignInError::Expired));
        for state in [None, Some(""), Some("the-stat"), Some("the-state2"), Some("THE-STATE")] {
            assert_eq!(check(Answer { state, ..ok }, 0), Err(SignInError::OtherState), "{state:?}");
        }
        for code in [None, Some("")] {
            assert_eq!(check(Answer { code, ..ok }, 0), Err(SignInError::CodeRefused), "{code:?}");
        }
        let denied = Answer { error: Some("access_denied"), ..ok };
        assert_eq!(check(denied, 0), Err(SignInError::Refused("access_denied")));
        let odd = check(Answer { error: Some("<script>"), ..ok }, 0).unwrap_err();
        assert!(!odd.to_string().contains('<'), "the text of a stranger is not repeated: {odd}");
        // A stranger's link cannot end a sign-in by an error either.
        assert_eq!(check(Answer { state: None, ..denied }, 0), Err(SignInError::OtherState));
    }

    #[test]
    fn nothing_of_it_is_shown() {
        assert!(!format!("{:?}", pending()).contains("the-"));
    }
}
