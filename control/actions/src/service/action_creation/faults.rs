//! Faults of what a body names.

use shared::problem::Code;

use crate::error::{CommonError, ServiceError};

/// An absent resource named in the body is a fault of the body.
// Spec gap: 400 or 404 is not shown; 404 is only for resources in the path.
pub(super) fn in_body(member: &str, error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Refused { code: Code::NotFound, errors } => {
            let faults = errors.into_iter().map(|error| format!("{member}: {error}"));
            CommonError::Faults(faults.collect()).into()
        }
        error => error,
    }
}
