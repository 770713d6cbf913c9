//! Maps errors to responses, all with the common error body.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::{error::ServiceError, store::StoreError};
use prometheus_client::encoding::EncodeLabelValue;
use shared::problem::{Code, Problem};

/// Why a request failed with a 5xx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Failure {
    /// A statement ran longer than allowed.
    StatementTimeout,
    /// The request as a whole took too long.
    RequestTimeout,
    /// The database is away, or no connection became free.
    Database,
    /// The store of files failed.
    Blobs,
    /// All places of a pool are taken.
    Full,
    /// A handler panicked.
    Panic,
    /// Anything else.
    Internal,
}

/// What a handler fails with.
#[derive(Debug)]
pub struct ApiError(ServiceError);

impl<E: Into<ServiceError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl ApiError {
    /// Members or parameters with faults, each of which names its own.
    pub fn faults(code: Code, errors: Vec<String>) -> Self {
        Self(ServiceError::Refused { code, errors })
    }

    /// A body with faults, each of which names its member.
    pub fn invalid(faults: Vec<String>) -> Self {
        Self::faults(Code::Invalid, faults)
    }

    /// Refuses a request whose parameters have faults, each of which names its own.
    ///
    /// # Errors
    /// There is one.
    pub fn check_parameters(faults: Vec<String>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self::faults(Code::InvalidParameter, faults)) }
    }
}

/// A refusal on its way out; the outermost layer turns it into the body.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Chooses the status.
    pub code: Code,
    /// For the caller; empty means the code's own sentence.
    pub errors: Vec<String>,
    /// For metrics and the log only.
    pub detail: Option<(Failure, String)>,
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        let code = error.code();
        match error {
            ServiceError::Refused { errors, .. } => Self { code, errors, detail: None },
            // The text of 5xx is fixed: details are for the log.
            ServiceError::Store(_) | ServiceError::Full(_) | ServiceError::Internal(_) => {
                Self { code, errors: Vec::new(), detail: Some((failure(&error), error.to_string())) }
            }
        }
    }
}

fn failure(error: &ServiceError) -> Failure {
    match error {
        ServiceError::Store(StoreError::Timeout) => Failure::StatementTimeout,
        ServiceError::Store(StoreError::Busy | StoreError::Unavailable(_) | StoreError::Stopped) => {
            Failure::Database
        }
        ServiceError::Store(StoreError::Blob(_)) => Failure::Blobs,
        ServiceError::Full(_) => Failure::Full,
        ServiceError::Store(
            StoreError::Unique(_)
            | StoreError::Taken(_)
            | StoreError::Exceeded(_)
            | StoreError::Row(_)
            | StoreError::Sql(_),
        )
        | ServiceError::Refused { .. }
        | ServiceError::Internal(_) => Failure::Internal,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        Refusal::from(self.0).into_response()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = status(self.code).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Refusal {
    /// The answer as it leaves; headers such as `Allow` are those of `from`.
    pub fn render(self, from: Response, docs_url: &str) -> Response {
        let problem = Problem::new(self.code, self.errors, docs_url);
        let mut response = (status(self.code), axum::Json(problem)).into_response();
        let headers = response.headers_mut();
        for (name, value) in from.headers() {
            if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
                headers.append(name, value.clone());
            }
        }
        match status(self.code) {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_errors_hide_their_cause() {
        let refusal = Refusal::from(ServiceError::Store(StoreError::Row("secret".to_owned())));
        assert_eq!(refusal.code, Code::Internal);
        assert!(refusal.errors.is_empty());
        assert!(
            refusal
                .detail
                .is_some_and(|(kind, detail)| kind == Failure::Internal && detail.contains("secret"))
        );
    }

    #[test]
    fn statuses_carry_their_headers() {
        for (code, name) in [
            (Code::KeyMissing, Some(header::WWW_AUTHENTICATE)),
            (Code::Timeout, Some(header::RETRY_AFTER)),
            (Code::TooManyRequests, Some(header::RETRY_AFTER)),
            (Code::NotFound, None),
        ] {
            let refusal = Refusal { code, errors: vec![], detail: None };
            let response = refusal.clone().render(refusal.into_response(), "https://x/docs");
            assert_eq!(response.status().as_u16(), code.status());
            for header in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
                assert_eq!(
                    response.headers().contains_key(&header),
                    Some(&header) == name.as_ref(),
                    "{code:?}"
                );
            }
        }
    }
}
