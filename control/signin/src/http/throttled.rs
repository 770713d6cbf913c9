//! HTTP: answers to tries that come too early.

use web::{api_error::ApiError, rate_limit::Ledger, request_error::RequestError};

use crate::service::throttles::SignInError;

/// 429 with `Retry-After` for a throttled attempt; other errors as they are.
pub(super) fn throttled(error: SignInError, ledger: &Ledger) -> ApiError {
    let (wait, what, or) = match error {
        SignInError::Passwords(wait) => (wait, "wrong passwords", ", or ask for a password reset"),
        SignInError::Codes(wait) => (wait, "wrong codes of the second factor", ""),
        SignInError::Mails(wait) => (wait, "mails within an hour", ""),
        SignInError::Other(error) => return error.into(),
    };
    let seconds = wait.seconds;
    ledger.pause(seconds);
    RequestError::TooManyTries { what, seconds, or }.into()
}
