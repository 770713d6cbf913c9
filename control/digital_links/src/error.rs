//! What requests about Digital Links are refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a change, check or preview of Digital Links is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum DigitalLinksError {
    #[error("{path} of {host} leads to another product or Thng.")]
    Taken { host: String, path: String },
    #[error("The product has no Digital Link: identifiers.gs1:01 is missing.")]
    NoGtin,
    #[error("The account has checked the links of products {most} times within a minute; try again later.")]
    TooManyChecks { most: u32 },
}

impl DomainError for DigitalLinksError {
    fn code(&self) -> Code {
        match self {
            Self::Taken { .. } | Self::NoGtin => Code::Conflict,
            Self::TooManyChecks { .. } => Code::TooManyRequests,
        }
    }

    fn faults(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}
