//! What requests about events, webhooks, reactions and live connections are refused for.

use shared::{id::WebhookId, problem::Code};

use crate::domain::{event::Position, topic::TopicFault, webhook::MAX_OVERLAP_MS};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about events, webhooks, reactions or a live connection is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum EventsError {
    #[error("match: you do not see {0}, and may not select by it.")]
    HiddenField(String),
    #[error("Last-Event-ID: events behind {0} are not kept any more; leave it out to hear what happens now.")]
    EventsRemoved(Position),
    #[error("This account has an export as Parquet under way; end it, or try again later.")]
    ParquetUnderWay,
    #[error("after names no action (was it removed?): go on with from=, its createdAt.")]
    ActionRemoved,

    #[error("An account has at most {most} {kind}s; remove one.")]
    TooManyFollowers { kind: &'static str, most: u64 },
    #[error("overlap must be between 0 and {MAX_OVERLAP_MS} milliseconds.")]
    Overlap,
    #[error("name and effect are required.")]
    NameOrEffectMissing,
    #[error("It failed again and again within the platform.")]
    TooManyTries,
    #[error("The webhook {0} is disabled.")]
    WebhookDisabled(WebhookId),
    #[error("The queue of {0} is full.")]
    QueueFull(WebhookId),

    #[error("{0}")]
    Topic(TopicFault),
    #[error("The message is not well-formed JSON at line {line}, column {column}.")]
    MalformedMessage { line: usize, column: usize },
    #[error("Nothing can be published to this topic: it can only be subscribed to.")]
    SubscriptionOnly,
    #[error("No WebSocket can be opened: {0}.")]
    NoWebSocket(String),
}

impl DomainError for EventsError {
    fn code(&self) -> Code {
        match self {
            Self::Overlap | Self::NameOrEffectMissing | Self::TooManyTries | Self::NoWebSocket(_) => {
                Code::Invalid
            }
            Self::MalformedMessage { .. } => Code::MalformedJson,
            Self::Topic(TopicFault::Wildcard | TopicFault::Invalid) => Code::InvalidParameter,
            Self::HiddenField(_) => Code::Forbidden,
            Self::Topic(TopicFault::Unknown) => Code::NoSuchPath,
            Self::SubscriptionOnly => Code::MethodNotAllowed,
            Self::ParquetUnderWay => Code::TooManyRequests,
            Self::EventsRemoved(_)
            | Self::ActionRemoved
            | Self::TooManyFollowers { .. }
            | Self::WebhookDisabled(_)
            | Self::QueueFull(_) => Code::Conflict,
        }
    }
}
