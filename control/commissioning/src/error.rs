//! What requests to commission and decommission Thngs are refused for.

use shared::problem::Code;

use crate::domain::commissioning::Refusal;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request to commission or decommission a Thng is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum CommissioningError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
    Step(Vec<Refusal>),
}

impl DomainError for CommissioningError {
    fn code(&self) -> Code {
        match self {
            Self::Step(_) => Code::Conflict,
        }
    }

    fn faults(&self) -> Vec<String> {
        match self {
            Self::Step(refusals) => refusals.iter().map(ToString::to_string).collect(),
        }
    }
}
