//! Faults of what a body names.

use shared::problem::Code;

use crate::error::ServiceError;

pub(super) fn invalid(member: &str, fault: String) -> ServiceError {
    ServiceError::refused(Code::Invalid, format!("{member}: {fault}."))
}

/// An absent resource named in the body is a fault of the body.
// Spec gap: 400 or 404 is not shown; 404 is only for resources in the path.
pub(super) fn in_body(member: &str, error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Refused { code: Code::NotFound, errors } => {
            let errors = errors.into_iter().map(|error| format!("{member}: {error}")).collect();
            ServiceError::Refused { code: Code::Invalid, errors }
        }
        error => error,
    }
}
