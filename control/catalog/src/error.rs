//! What requests about Thngs, products, collections, places, properties and files are refused for.

use shared::{
    id::{FileId, ProductId},
    identifier::Identifier,
    problem::Code,
};

use crate::domain::collection::CannotNest;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about a Thng, product, collection, place, property or file is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum CatalogError {
    #[error("identifiers: {identifier} belongs to the {kind} {other} already.")]
    IdentifierTaken { identifier: Identifier, kind: &'static str, other: String },
    #[error("identifiers.gs1:01 must be a GTIN of 8, 12, 13 or 14 digits with its check digit, not {0:?}.")]
    NoGtin(String),
    #[error("{0} need a Digital Link: identifiers.gs1:01 {1}.")]
    NoDigitalLink(&'static str, &'static str),
    #[error("gtinAliases: the product has {most} former GTINs already; send those that are to be kept.")]
    TooManyAliases { most: usize },
    #[error(
        "gtinAliases and levels must make at most {most} Digital Links on a short domain, not {found}: one for each GTIN at each level."
    )]
    TooManyRecords { most: usize, found: usize },
    #[error("{}", .0.join(" "))]
    NotForThisKey(Vec<String>),
    #[error("product: the product {0} does not exist.")]
    NoSuchProduct(ProductId),
    #[error("collections: {0}.")]
    Nesting(CannotNest),
    #[error("The property {0} is read-only.")]
    ReadOnlyProperty(String),
    #[error("The file {0} has no content yet.")]
    NoContent(FileId),
    #[error("A file must have at most {most} bytes.")]
    FileTooLarge { most: u64 },
    #[error("The body came too slowly.")]
    UploadTooSlow,
    #[error("The body broke off.")]
    UploadBrokenOff,
    #[error("The signature does not fit, or its time has passed.")]
    WrongSignature,
    #[error("The key {0}.")]
    PropertyKey(String),
}

impl DomainError for CatalogError {
    fn code(&self) -> Code {
        match self {
            Self::NoGtin(_)
            | Self::NoDigitalLink(..)
            | Self::TooManyAliases { .. }
            | Self::TooManyRecords { .. }
            | Self::NoSuchProduct(_)
            | Self::UploadTooSlow
            | Self::UploadBrokenOff
            | Self::PropertyKey(_) => Code::Invalid,
            Self::NotForThisKey(_) | Self::ReadOnlyProperty(_) | Self::WrongSignature => Code::Forbidden,
            Self::NoContent(_) => Code::NotFound,
            Self::IdentifierTaken { .. } | Self::Nesting(_) => Code::Conflict,
            Self::FileTooLarge { .. } => Code::TooLarge,
        }
    }

    fn faults(&self) -> Vec<String> {
        match self {
            Self::NotForThisKey(faults) => faults.clone(),
            one => vec![one.to_string()],
        }
    }
}
