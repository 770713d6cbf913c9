//! What requests of edges are refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request of an edge is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum EdgeError {
    #[error("No key of an edge was sent.")]
    KeyMissing,
    #[error("The key of the edge is not known.")]
    KeyUnknown,
    #[error("{name} must have 1 to {most} bytes.")]
    PartLength { name: String, most: usize },
    #[error("The stream is an upgrade of HTTP/1.1 to {0}.")]
    NoUpgrade(&'static str),
}

impl DomainError for EdgeError {
    fn code(&self) -> Code {
        match self {
            Self::KeyMissing => Code::KeyMissing,
            Self::KeyUnknown => Code::KeyUnknown,
            Self::PartLength { .. } => Code::InvalidParameter,
            Self::NoUpgrade(_) => Code::Invalid,
        }
    }
}
