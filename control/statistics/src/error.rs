//! What requests about statistics are refused for.

use shared::{id::ProjectId, problem::Code};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about statistics is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum StatisticsError {
    #[error(
        "from and to: the range has more than {most} counts of {of}; ask for a shorter range, or filter."
    )]
    RangeTooLong { of: &'static str, most: i64 },
    #[error("from and to: the link has more than {most} scans in the range; ask for a shorter one.")]
    TooManyScans { most: usize },
    #[error("groupBy: a key of projects cannot group by project; filter by one of them.")]
    GroupedByProject,
    #[error("filter: your key is of several projects; name one of them by filter=project=ID.")]
    SeveralProjects,
    #[error("A report holds at most {most} counts, not {found}.")]
    ReportTooLarge { most: usize, found: usize },
    #[error("Short domains belong to the account: a key of projects does not see who asks for unknown ids.")]
    UnknownIdsOfAccount,
    #[error("Counts of a demo are for owners and admins.")]
    CountsOfDemo,
    #[error(
        "The project {0} was not made by `waymark demo`: scans of others are counted as edges report them, and stay counted."
    )]
    NoDemo(ProjectId),
}

impl DomainError for StatisticsError {
    fn code(&self) -> Code {
        match self {
            Self::ReportTooLarge { .. } => Code::Invalid,
            Self::RangeTooLong { .. }
            | Self::TooManyScans { .. }
            | Self::GroupedByProject
            | Self::SeveralProjects => Code::InvalidParameter,
            Self::UnknownIdsOfAccount | Self::CountsOfDemo | Self::NoDemo(_) => Code::Forbidden,
        }
    }
}
