//! What changes of Digital Links are refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a change or check of a Digital Link is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum DigitalLinksError {
    #[error("{path} of {host} leads to another product or Thng.")]
    Taken { host: String, path: String },
    #[error("The account has checked the links of products {most} times within a minute; try again later.")]
    TooManyChecks { most: u32 },
}

impl DomainError for DigitalLinksError {
    fn code(&self) -> Code {
        match self {
            Self::Taken { .. } => Code::Conflict,
            Self::TooManyChecks { .. } => Code::TooManyRequests,
        }
    }

    fn faults(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}
