//! What requests about jobs are refused for.

use shared::{id::JobId, problem::Code};

use crate::domain::job::Unfit;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about a job is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum JobsError {
    #[error("{most} jobs are under way; wait until one has ended.")]
    TooManyJobs { most: u64 },
    #[error("The job {id} has ended: it is {status}.")]
    Ended { id: JobId, status: &'static str },
    #[error("The job {id} has not ended: it is {status}. Cancel it first.")]
    NotEnded { id: JobId, status: &'static str },
}

impl DomainError for JobsError {
    fn code(&self) -> Code {
        match self {
            Self::TooManyJobs { .. } => Code::TooManyRequests,
            Self::Ended { .. } | Self::NotEnded { .. } => Code::Conflict,
        }
    }
}

impl From<Unfit> for ServiceError {
    fn from(error: Unfit) -> Self {
        Self::Internal(error.to_string())
    }
}
