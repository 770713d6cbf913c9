//! Why a service function failed, and the faults that all subjects share.

use shared::{contact::Contact, identifier::Identifier, problem::Code};

use crate::{
    domain::{
        access::ActorKind,
        permission::{Subject, Verb},
    },
    store::StoreError,
};

/// What a request is refused for. Each subject has an enum of them, with the texts that go out.
pub trait DomainError: std::error::Error + Send + Sync + 'static {
    /// The code that goes out.
    fn code(&self) -> Code;

    /// Every fault, for the caller to read.
    fn faults(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

/// What a request of any subject is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum CommonError {
    #[error("{}", .0.join(" "))]
    Faults(Vec<String>),
    #[error("{}", .0.join(" "))]
    Absent(Vec<String>),
    #[error("The {kind} {id} was not found.")]
    NotFound { kind: &'static str, id: String },
    #[error("The identifier {identifier} belongs to {count} {kind}s; use an id instead.")]
    Ambiguous { kind: &'static str, identifier: Identifier, count: i64 },
    #[error("It was changed since it was read: read it again.")]
    ChangedMeanwhile,
    #[error("name is required.")]
    NameMissing,
    #[error("The array must hold 1 to {most} items, not {found}.")]
    ItemCount { most: usize, found: usize },
    #[error("overlap must be a whole number of milliseconds from 0 to {most_ms}.")]
    OverlapTooLong { most_ms: u32 },
    #[error("{}", .0.text())]
    Key(Code),
    #[error("{text} Contact: {0}", text = Code::Suspended.text())]
    Suspended(Contact),
    #[error("Your role does not allow {}:{}.", .0.as_str(), .1.as_str())]
    RoleLacks(Subject, Verb),
    #[error("A key of the kind {} may not do this.", .0.as_str())]
    KeyKind(ActorKind),
    #[error("{0} is for enterprise accounts only.")]
    EnterpriseOnly(&'static str),
    #[error("Idempotency-Key was used for another request within the last day.")]
    IdempotencyMismatch,
    #[error("Too many {what} of {whose} at once; end one of them, or try again later.")]
    TooManyAtOnce { what: &'static str, whose: &'static str },
    #[error("Too many connections {0} are open; close some of them, or try again later.")]
    TooManyConnections(&'static str),
}

impl DomainError for CommonError {
    fn code(&self) -> Code {
        match self {
            Self::Faults(_) | Self::NameMissing | Self::ItemCount { .. } | Self::OverlapTooLong { .. } => {
                Code::Invalid
            }
            Self::Absent(_) | Self::NotFound { .. } => Code::NotFound,
            Self::Ambiguous { .. } => Code::Conflict,
            Self::ChangedMeanwhile => Code::ChangedMeanwhile,
            Self::Key(code) => *code,
            Self::Suspended(_) => Code::Suspended,
            Self::RoleLacks(..) | Self::KeyKind(_) | Self::EnterpriseOnly(_) => Code::Forbidden,
            Self::IdempotencyMismatch => Code::IdempotencyMismatch,
            Self::TooManyAtOnce { .. } | Self::TooManyConnections(_) => Code::TooManyRequests,
        }
    }

    fn faults(&self) -> Vec<String> {
        match self {
            Self::Faults(faults) | Self::Absent(faults) => faults.clone(),
            one => vec![one.to_string()],
        }
    }
}

/// Why an operation failed; independent of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The caller did something that `code` names; `errors` hold every fault, for the caller to read.
    #[error("{code:?}: {errors:?}")]
    Refused {
        /// What kind of fault it is; never one of 5xx.
        code: Code,
        /// Every fault found, each naming its member.
        errors: Vec<String>,
    },
    /// The store failed; the details are for the log only.
    #[error("store: {0}")]
    Store(#[source] StoreError),
    /// All places of a pool are taken, which is named for the log.
    #[error("all places of {0} are taken")]
    Full(&'static str),
    /// A part of the service is stopping or broken; the text is for the log only.
    #[error("internal: {0}")]
    Internal(String),
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Taken(fault) => Self::Refused { code: Code::Conflict, errors: vec![fault] },
            StoreError::Exceeded(exceeded) => exceeded.into(),
            error => Self::Store(error),
        }
    }
}

impl<E: DomainError> From<E> for ServiceError {
    fn from(error: E) -> Self {
        Self::Refused { code: error.code(), errors: error.faults() }
    }
}

impl ServiceError {
    /// A resource that is absent, or in another account.
    #[must_use]
    pub fn not_found(kind: &'static str, id: impl std::fmt::Display) -> Self {
        CommonError::NotFound { kind, id: id.to_string() }.into()
    }

    /// The code that goes out.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } => *code,
            Self::Store(StoreError::Taken(_)) => Code::Conflict,
            Self::Store(StoreError::Exceeded(exceeded)) => exceeded.code(),
            Self::Store(StoreError::Timeout) => Code::Timeout,
            Self::Full(_)
            | Self::Store(
                StoreError::Busy | StoreError::Unavailable(_) | StoreError::Stopped | StoreError::Blob(_),
            ) => Code::Unavailable,
            Self::Store(StoreError::Sql(_) | StoreError::Row(_) | StoreError::Unique(_))
            | Self::Internal(_) => Code::Internal,
        }
    }
}
