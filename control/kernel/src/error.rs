//! The error of the crate: why a service function failed.

use shared::problem::Code;

use crate::store::StoreError;

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
            StoreError::Taken(fault) => Self::refused(Code::Conflict, fault),
            StoreError::Exceeded(exceeded) => Self::refused(exceeded.code(), exceeded.to_string()),
            error => Self::Store(error),
        }
    }
}

impl ServiceError {
    /// A refusal with one fault.
    pub fn refused(code: Code, error: impl Into<String>) -> Self {
        Self::Refused { code, errors: vec![error.into()] }
    }

    /// A resource that is absent, or in another account.
    #[must_use]
    pub fn not_found(kind: &str, id: impl std::fmt::Display) -> Self {
        Self::refused(Code::NotFound, format!("The {kind} {id} was not found."))
    }

    /// The code that goes out; chosen here and nowhere else.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_code() {
        for (error, code) in [
            (ServiceError::not_found("thng", "x"), Code::NotFound),
            (StoreError::Taken("x".into()).into(), Code::Conflict),
            (ServiceError::Store(StoreError::Timeout), Code::Timeout),
            (ServiceError::Store(StoreError::Busy), Code::Unavailable),
            (ServiceError::Full("x"), Code::Unavailable),
            (ServiceError::Store(StoreError::Stopped), Code::Unavailable),
            (
                ServiceError::Store(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()).into()),
                Code::Unavailable,
            ),
            (ServiceError::Store(StoreError::Row("x".into())), Code::Internal),
            (ServiceError::Store(StoreError::Unique("x".into())), Code::Internal),
            (ServiceError::Store(StoreError::Sql(sqlx::Error::RowNotFound)), Code::Internal),
            (ServiceError::Internal("x".into()), Code::Internal),
        ] {
            assert_eq!(error.code(), code, "{error}");
        }
    }
}
