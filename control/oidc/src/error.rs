//! Why a sign-in failed.

use kernel::error::DomainError;
use shared::problem::Code;

/// Why a sign-in failed, as a sentence for whoever signs in; the log has the details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// As many sign-ins wait for the provider as may.
    #[error("Too many sign-ins wait for the provider: try again in some seconds.")]
    Busy,
    /// The provider is away, slow, or answers something else than the standard asks for.
    #[error("The provider of identities does not answer as it should: try again later.")]
    Unavailable,
    /// The browser has no pending sign-in, or one of another server.
    #[error("This browser has not begun this sign-in: begin again.")]
    NotBegun,
    /// It was begun too long ago.
    #[error("This sign-in was begun more than 10 minutes ago: begin again.")]
    Expired,
    /// The state is missing, or that of another sign-in.
    #[error("The answer belongs to another sign-in: begin again.")]
    OtherState,
    /// It was ended before.
    #[error("This sign-in was used already: begin again.")]
    Replayed,
    /// The answer names another issuer, or none although the provider promised to.
    #[error("The answer is not of the provider that was asked: begin again.")]
    OtherIssuer,
    /// The provider refused; its error code, where it is one of the standard's.
    #[error("The provider of identities refused the sign-in: {0}.")]
    Refused(&'static str),
    /// The provider did not accept the code.
    #[error("The provider of identities does not accept this answer: begin again.")]
    CodeRefused,
    /// The ID token is missing, of somebody else, expired, or not signed by the provider.
    #[error("The identity that was sent cannot be trusted: begin again.")]
    Untrusted,
    /// The ID token lacks the claim that the platform operator requires.
    #[error("The provider of identities does not say that you belong here: ask whoever runs this server.")]
    ClaimMissing,
    /// The server has no provider.
    #[error("This server has no provider of identities.")]
    NoProvider,
    /// The identity has no address.
    #[error("The provider of identities names no e-mail address.")]
    NoAddress,
    /// The provider has not verified the address.
    #[error("The provider of identities has not verified the e-mail address.")]
    UnverifiedAddress,
    /// No operator may sign in by it.
    #[error(
        "No operator has this identity, or its account lets nobody sign in so: ask whoever runs the account."
    )]
    NoOperator,
    /// Operators of several accounts may sign in by it.
    #[error("Several accounts have an operator with this identity: name the account when you sign in.")]
    SeveralAccounts,
    /// Users and programs have no identities.
    #[error("Only an operator has identities.")]
    NotAnOperator,
    /// The system's own fault, for the log.
    #[error("the sign-in failed: {0}")]
    Internal(String),
}

/// The codes of OAuth 2.0 (section 4.1.2.1) and of OpenID Connect (section 3.1.2.6). Other text of an answer is not
/// repeated: whoever wrote the link chose it.
const CODES: [&str; 16] = [
    "access_denied",
    "account_selection_required",
    "consent_required",
    "interaction_required",
    "invalid_request",
    "invalid_request_object",
    "invalid_request_uri",
    "invalid_scope",
    "login_required",
    "registration_not_supported",
    "request_not_supported",
    "request_uri_not_supported",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_response_type",
];

impl DomainError for SignInError {
    fn code(&self) -> Code {
        match self {
            Self::NoProvider => Code::NotFound,
            Self::Busy | Self::Unavailable => Code::Unavailable,
            Self::NotBegun
            | Self::Expired
            | Self::OtherState
            | Self::Replayed
            | Self::OtherIssuer
            | Self::Refused(_)
            | Self::CodeRefused
            | Self::Untrusted
            | Self::ClaimMissing
            | Self::NoAddress
            | Self::UnverifiedAddress
            | Self::NoOperator
            | Self::SeveralAccounts
            | Self::NotAnOperator => Code::Forbidden,
            Self::Internal(_) => Code::Internal,
        }
    }

    fn faults(&self) -> Vec<String> {
        match self {
            Self::Internal(_) => Vec::new(),
            one => vec![one.to_string()],
        }
    }
}

impl SignInError {
    /// The provider's refusal.
    pub(crate) fn refused(code: &str) -> Self {
        Self::Refused(CODES.into_iter().find(|known| *known == code).unwrap_or("for an unknown reason"))
    }
}
