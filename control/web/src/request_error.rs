//! What requests are refused for before an operation sees them.

use kernel::error::DomainError;
use shared::{entity_tag::NoTag, id::AccountId, problem::Code};

/// What a request is refused for before an operation sees it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum RequestError {
    #[error("The path names no resource.")]
    NoResource,
    #[error("{0} in the query must not hold U+0000.")]
    NulInQuery(String),
    #[error("nextPageToken does not belong to this query.")]
    ForeignPageToken,
    #[error("{0}.")]
    IfMatch(NoTag),
    #[error("This operation does not look at If-Match: leave it out.")]
    NoCondition,
    #[error("wait must be edges.")]
    Wait,
    #[error("timeout must be like 500ms or 2s, at most 20s.")]
    WaitTimeout,
    #[error("ids must name what is meant, comma-separated.")]
    IdsMissing,

    #[error("This operation takes no body.")]
    TakesNoBody,
    #[error("The body is missing.")]
    BodyMissing,
    #[error("Content-Type must be application/json.")]
    NotJson,
    #[error("The body is not well-formed JSON at line {line}, column {column}.")]
    MalformedJson { line: usize, column: usize },
    #[error("The body broke off.")]
    BodyBrokenOff,
    #[error("The body must have at most {most} bytes.")]
    BodyTooLarge { most: usize },

    #[error("Idempotency-Key must have 1 to 255 printable ASCII characters.")]
    NoIdempotencyKey,
    #[error("The first request with this Idempotency-Key is under way, or its answer was lost.")]
    FirstRequestOpen,
    #[error(
        "The first request with this Idempotency-Key came with another API key, which alone reads its answer."
    )]
    FirstRequestOfOtherKey,
    #[error("Too many requests {what}; try again in {seconds} s.")]
    TooManyRequests { what: &'static str, seconds: u64 },
    #[error("Too many {what}; try again in {seconds} s{or}.")]
    TooManyTries { what: &'static str, seconds: u64, or: &'static str },
    #[error("{most} requests of the account {account} wait for those before them; try again in 1 s.")]
    TooManyWaiting { account: AccountId, most: usize },
}

impl DomainError for RequestError {
    fn code(&self) -> Code {
        match self {
            Self::TakesNoBody | Self::NoIdempotencyKey | Self::IfMatch(_) | Self::NoCondition => {
                Code::Invalid
            }
            Self::BodyMissing | Self::MalformedJson { .. } | Self::BodyBrokenOff => Code::MalformedJson,
            Self::NulInQuery(_) | Self::Wait | Self::WaitTimeout | Self::IdsMissing => Code::InvalidParameter,
            Self::ForeignPageToken => Code::InvalidPageToken,
            Self::NoResource => Code::NotFound,
            Self::FirstRequestOpen | Self::FirstRequestOfOtherKey => Code::Conflict,
            Self::BodyTooLarge { .. } => Code::TooLarge,
            Self::NotJson => Code::UnsupportedMediaType,
            Self::TooManyRequests { .. } | Self::TooManyTries { .. } | Self::TooManyWaiting { .. } => {
                Code::TooManyRequests
            }
        }
    }
}
