//! What requests about changes of many links are refused for.

use shared::{id::JobId, problem::Code};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about a change of many links is refused for, or why a change fails.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum LinkChangeError {
    #[error("What was asked for cannot be read any more.")]
    Unreadable,
    #[error("No link is found.")]
    NothingFound,
    #[error("{count} links are found; a change has at most {most}.")]
    TooManyLinks { count: u64, most: u64 },
    #[error("expect: {expected} links were expected, and {found} are found.")]
    OtherCount { expected: u64, found: u64 },
    #[error("{most} changes of links are under way; wait until one has ended.")]
    TooManyChanges { most: u64 },
    #[error(
        "The former values of {kept} links are kept, of at most {most}: undo a change, or wait until one cannot be undone any \
         more."
    )]
    TooManyKept { kept: u64, most: u64 },
    #[error("The change {0} has ended.")]
    Ended(JobId),
    #[error("The change {id} waits for no approval: it is {status}.")]
    NotWaiting { id: JobId, status: &'static str },
    #[error("Somebody else must approve the change {0}: it is your own.")]
    OwnChange(JobId),
    #[error("The change {id} has not ended: it is {status}. Cancel it first.")]
    NotEnded { id: JobId, status: &'static str },
    #[error("{0} is an undo, which cannot be undone.")]
    IsUndo(JobId),
    #[error("The change {0} is being undone.")]
    BeingUndone(JobId),
    #[error("Nothing of the change {0} is left to undo.")]
    NothingToUndo(JobId),
    #[error("The former values of the change {0} were removed: their time is over.")]
    FormerRemoved(JobId),
    #[error("strict: {count} links were changed or deleted since.")]
    ChangedSince { count: u64 },
}

impl DomainError for LinkChangeError {
    fn code(&self) -> Code {
        match self {
            Self::Unreadable | Self::NothingFound | Self::TooManyLinks { .. } => Code::Invalid,
            Self::OwnChange(_) => Code::Forbidden,
            Self::FormerRemoved(_) => Code::NotFound,
            Self::OtherCount { .. }
            | Self::TooManyKept { .. }
            | Self::Ended(_)
            | Self::NotWaiting { .. }
            | Self::NotEnded { .. }
            | Self::IsUndo(_)
            | Self::BeingUndone(_)
            | Self::NothingToUndo(_)
            | Self::ChangedSince { .. } => Code::Conflict,
            Self::TooManyChanges { .. } => Code::TooManyRequests,
        }
    }
}
