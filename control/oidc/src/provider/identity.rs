//! Who signed in, as the claims of an ID token say.

use openidconnect::{
    AccessToken, AccessTokenHash, IdTokenVerifier,
    core::{CoreIdToken, CoreIdTokenClaims, CoreJsonWebKey},
};

use super::untrusted;
use crate::error::SignInError;

/// Longest subject: section 2 of OpenID Connect Core.
const MAX_SUBJECT: usize = 255;

/// Longest address and longest name that are used.
const MAX_TEXT: usize = 255;

/// Who signed in, as the provider says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// Who it is there: at most 255 characters, without control characters.
    pub subject: String,
    /// The address.
    pub email: Option<String>,
    /// Whether the provider knows that the address is theirs.
    pub email_verified: bool,
    /// The name.
    pub name: Option<String>,
}

/// Checks that the access token came with the ID token, where the latter says which it is.
pub(super) fn check_access_token(
    claims: &CoreIdTokenClaims,
    id_token: &CoreIdToken,
    token: &AccessToken,
    verifier: &IdTokenVerifier<'_, CoreJsonWebKey>,
) -> Result<(), SignInError> {
    let Some(expected) = claims.access_token_hash() else { return Ok(()) };
    let found = id_token.signing_alg().ok().and_then(|algorithm| {
        AccessTokenHash::from_token(token, algorithm, id_token.signing_key(verifier).ok()?).ok()
    });
    if found.as_ref() == Some(expected) { Ok(()) } else { Err(untrusted("the access token is another")) }
}

pub(super) fn identity(claims: &CoreIdTokenClaims) -> Result<Identity, SignInError> {
    let subject = claims.subject().as_str();
    if subject.is_empty() || subject.chars().count() > MAX_SUBJECT || subject.contains(char::is_control) {
        return Err(untrusted("the subject is empty, too long, or has control characters"));
    }
    Ok(Identity {
        issuer: claims.issuer().as_str().to_owned(),
        subject: subject.to_owned(),
        email: claims.email().and_then(|email| text_of(email)),
        email_verified: claims.email_verified() == Some(true),
        name: claims.name().and_then(|names| names.get(None)).and_then(|name| text_of(name)),
    })
}

pub(super) fn text_of(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.chars().count() <= MAX_TEXT && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}
