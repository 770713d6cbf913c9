//! What requests about assessment, its settings and cases are refused for.

use shared::problem::Code;

use crate::domain::action_names::TriggerType;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about assessment, its settings or a case is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum AssessmentError {
    #[error("{name}: {id} was not found in this account.")]
    NoSuchOwner { name: &'static str, id: String },
    #[error("product: give project or product, not both.")]
    TwoOwners,
    #[error("version: the settings are of version {0} by now.")]
    SettingsChanged(i64),
    #[error("version: the case is of version {0} by now.")]
    CaseChanged(i64),
    #[error("display: the Thng has {0} tags already, which is the most.")]
    TooManyTags(usize),
    #[error("{whose} gets at most {most} reports of finders within a day: try again tomorrow.")]
    TooManyReports { whose: &'static str, most: i64 },
    #[error("The application may not submit triggers of the type {}.", .0.as_str())]
    TriggerNotAllowed(TriggerType),
}

impl DomainError for AssessmentError {
    fn code(&self) -> Code {
        match self {
            Self::TooManyTags(_) => Code::Invalid,
            Self::NoSuchOwner { .. } | Self::TwoOwners => Code::InvalidParameter,
            Self::TriggerNotAllowed(_) => Code::Forbidden,
            Self::TooManyReports { .. } => Code::TooManyRequests,
            Self::SettingsChanged(_) | Self::CaseChanged(_) => Code::Conflict,
        }
    }
}
