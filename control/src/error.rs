//! What reports of edges, and commands on the first account, are refused for.

use shared::{problem::Code, short_url::Host};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a report of an edge, or a command on the first account, is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum ControlError {
    #[error("A batch holds at most {most} scans, not {found}.")]
    BatchTooLarge { most: usize, found: usize },
    #[error("firstSeq is too large.")]
    FirstSeqTooLarge,
    #[error("The batch is not of the edge whose key was sent.")]
    ForeignBatch,
    #[error("The report is not of the edge whose key was sent.")]
    ForeignReport,
    #[error("The body is no batch of scans: {0}.")]
    NoBatch(serde_json::Error),
    #[error("The body is no report about unknown ids: {0}.")]
    NoReport(serde_json::Error),
    #[error("The body must have at most {most} bytes.")]
    BodyTooLarge { most: usize },
    #[error("{name} must be a whole number from 0.")]
    NoNumber { name: &'static str },
    #[error("The body must be at most {most} records that this version knows.")]
    NoRecords { most: usize },
    #[error("Codes were created on {0}: what is printed cannot be changed.")]
    DomainHasCodes(Host),
    #[error("There is no account yet.")]
    NoAccount,
}

impl DomainError for ControlError {
    fn code(&self) -> Code {
        match self {
            Self::BatchTooLarge { .. }
            | Self::FirstSeqTooLarge
            | Self::NoBatch(_)
            | Self::NoReport(_)
            | Self::NoRecords { .. } => Code::Invalid,
            Self::NoNumber { .. } => Code::InvalidParameter,
            Self::ForeignBatch | Self::ForeignReport => Code::Forbidden,
            Self::NoAccount => Code::NotFound,
            Self::DomainHasCodes(_) => Code::Conflict,
            Self::BodyTooLarge { .. } => Code::TooLarge,
        }
    }
}
