//! What requests of the platform operator are refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request of the platform operator is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum HostingError {
    #[error("No key of the platform was sent.")]
    KeyMissing,
    #[error("Only a key of the platform may do this.")]
    NoPlatformKey,
    #[error("There is no such key that is valid.")]
    NoValidKey,
    #[error("until must be later than now.")]
    UntilPassed,
    #[error(
        "{most} links and hosts are taken down, and no more can be: suspend the account, or take down the host."
    )]
    TooManyTakeDowns { most: u64 },
    #[error("host: {0}.")]
    NoHost(String),
    #[error("host: {0} is, or is above, a short domain of this platform; suspend its account.")]
    OwnHost(String),
}

impl DomainError for HostingError {
    fn code(&self) -> Code {
        match self {
            Self::UntilPassed => Code::Invalid,
            Self::NoHost(_) | Self::OwnHost(_) => Code::InvalidParameter,
            Self::KeyMissing => Code::KeyMissing,
            Self::NoPlatformKey => Code::Forbidden,
            Self::NoValidKey => Code::NotFound,
            Self::TooManyTakeDowns { .. } => Code::Conflict,
        }
    }
}
