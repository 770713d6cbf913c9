//! HTTP: the answer to one attempt too many.

use web::{api_error::ApiError, rate_limit::Ledger, request_error::RequestError};

use crate::service::attempts::AttemptError;

/// 429 with `Retry-After` for a throttled attempt; other errors as they are.
pub fn throttled(error: AttemptError, ledger: &Ledger) -> ApiError {
    let (seconds, what, or) = match error {
        AttemptError::Passwords(wait) => {
            (wait.seconds, "wrong passwords for this address", ", or ask for a password reset")
        }
        AttemptError::Mails(wait) => (wait.seconds, "mails of this account within an hour", ""),
        AttemptError::Mailbox(wait) => (wait.seconds, "mails to this address within an hour", ""),
        AttemptError::Other(error) => return error.into(),
    };
    ledger.pause(seconds);
    RequestError::TooManyTries { what, seconds, or }.into()
}
