//! The code of each error of a service.

use kernel::{error::ServiceError, store::StoreError};
use shared::problem::Code;

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
