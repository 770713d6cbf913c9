//! What requests about erasures are refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about erasures is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum PrivacyError {
    #[error("{most} erasures are under way; wait until one has ended.")]
    TooManyErasures { most: u64 },
}

impl DomainError for PrivacyError {
    fn code(&self) -> Code {
        match self {
            Self::TooManyErasures { .. } => Code::TooManyRequests,
        }
    }
}
