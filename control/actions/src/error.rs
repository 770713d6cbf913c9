//! What requests about actions and their types are refused for.

use shared::{
    id::{PlaceId, ProductId},
    problem::Code,
};

use crate::domain::access::ActorKind;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about actions or their types is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum ActionsError {
    #[error("type is required.")]
    TypeMissing,
    #[error("type: there is no type {0}.")]
    NoSuchType(String),
    #[error("type: {0} are written by their own operations only.")]
    TypeOfOperations(String),
    #[error("A key of the kind {} may not write actions of the type {name}.", .kind.as_str())]
    TypeOfOthers { kind: ActorKind, name: String },
    #[error("product: the thng is an instance of {0}.")]
    OtherProduct(ProductId),
    #[error("location.place: the place {0} does not exist.")]
    NoSuchPlace(PlaceId),
    #[error("identifiers: no thng or product has them.")]
    IdentifiersUnknown,
    #[error("The identifiers belong to several {kind}s; use an id instead.")]
    IdentifiersOfSeveral { kind: &'static str },
    #[error("filter: you do not see {0}, and may not filter by it.")]
    HiddenField(String),

    #[error("An account has at most {most} types of actions of its own.")]
    TooManyTypes { most: i64 },
    #[error("The action type {0} exists already.")]
    TypeExists(String),
    #[error("The action type {0} is built in: it cannot be changed or removed.")]
    BuiltInType(String),
}

impl DomainError for ActionsError {
    fn code(&self) -> Code {
        match self {
            Self::TypeMissing
            | Self::NoSuchType(_)
            | Self::TypeOfOperations(_)
            | Self::OtherProduct(_)
            | Self::NoSuchPlace(_)
            | Self::IdentifiersUnknown => Code::Invalid,
            Self::TypeOfOthers { .. } | Self::HiddenField(_) | Self::BuiltInType(_) => Code::Forbidden,
            Self::IdentifiersOfSeveral { .. } | Self::TooManyTypes { .. } | Self::TypeExists(_) => {
                Code::Conflict
            }
        }
    }
}
