//! What requests about redirections, their rules and tasks are refused for.

use qr::QrError;
use shared::{
    id::{InvalidId, ResourceId},
    problem::Code,
    short_id::ShortId,
};

use crate::domain::{
    availability::EndsTooEarly, link_history::NoState, quota::Exceeded, redirection::MAX_CHAIN,
};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about redirections, their rules or tasks is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum RedirectsError {
    #[error(transparent)]
    Common(#[from] CommonError),
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error("ids is not a parameter of this list; read a redirection by its short id.")]
    IdsOfList,
    #[error("ids must name 1 to {most} short ids, comma-separated.")]
    IdCount { most: usize },
    #[error("{name}: {fault}.")]
    NoId { name: &'static str, fault: InvalidId },
    #[error("{0}")]
    CannotRender(QrError),
    #[error("The account has no short domain.")]
    NoShortDomain,
    #[error("shortDomain: {0} is not a short domain of this account.")]
    ForeignDomain(String),
    #[error(
        "{0} is not proven any more: no links can be made on it until its TXT record or file is found again."
    )]
    DomainUnproven(String),
    #[error("shortId: {short_id} is taken on {host}.")]
    ShortIdTaken { short_id: ShortId, host: String },
    #[error("The array must hold 1 to {most} redirections, not {found}.")]
    ItemCount { most: usize, found: usize },
    #[error("{member} {fault}.")]
    Chain { member: &'static str, fault: ChainFault },
    #[error("{fault} of {short_id}.")]
    Availability { fault: EndsTooEarly, short_id: ShortId },
    #[error("{0} is a Digital Link: change the links of its product or Thng.")]
    DigitalLink(ShortId),
    #[error("{0} is a Digital Link: POST /products/{{id}}/links/preview says where it leads.")]
    PreviewOfDigitalLink(ShortId),
    #[error("payload: there is no Digital Link of it: {0}.")]
    NoDigitalLink(&'static str),
    #[error("It was changed since it was read: read it again.")]
    ChangedMeanwhile,
    #[error("{}", .0.join(" "))]
    TakenDown(Vec<String>),
    #[error("{0}.")]
    NoState(NoState),
    #[error("version: more than {most} changes came since then; restore a newer version first.")]
    TooManySteps { most: usize },
    #[error("{}", .0.join(" "))]
    NoLongerValid(Vec<String>),
    #[error("platformId: the {kind} {id}, to which the link belonged, is gone.")]
    OwnerGone { kind: &'static str, id: String },
    #[error("Only Thngs and products have this path.")]
    NoThngOrProduct,
    #[error("The resource {0} has no redirection.")]
    NoRedirection(ResourceId),
    #[error("rules: all rules of the account take at most {most} bytes, not {found}.")]
    RulesTooLarge { most: usize, found: usize },
    #[error(
        "The pages of all domains take at most {most} bytes together: take a smaller logo, or fewer texts."
    )]
    NoRoomForPages { most: i64 },
    #[error("{most} tasks are under way; wait until one has ended.")]
    TooManyTasks { most: u64 },
    #[error("inputParameters.shortDomain: the account has no short domain.")]
    NoDomainOfTask,
    #[error("inputParameters.shortDomain: {0} is not a short domain of this account.")]
    ForeignDomainOfTask(String),
}

/// Why a target that is a short URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum ChainFault {
    #[error("leads back to the short URL itself")]
    Loop,
    #[error("leads through more than {} short URLs", MAX_CHAIN)]
    TooLong,
}

impl DomainError for RedirectsError {
    fn code(&self) -> Code {
        match self {
            Self::Common(error) => error.code(),
            Self::Exceeded(error) => error.code(),
            Self::ForeignDomain(_)
            | Self::ItemCount { .. }
            | Self::Chain { .. }
            | Self::Availability { .. }
            | Self::RulesTooLarge { .. }
            | Self::NoDomainOfTask
            | Self::ForeignDomainOfTask(_) => Code::Invalid,
            Self::IdsOfList | Self::IdCount { .. } | Self::NoId { .. } => Code::InvalidParameter,
            Self::NoRedirection(_) => Code::NotFound,
            Self::NoThngOrProduct => Code::NoSuchPath,
            Self::NoShortDomain
            | Self::DomainUnproven(_)
            | Self::TakenDown(_)
            | Self::DigitalLink(_)
            | Self::PreviewOfDigitalLink(_)
            | Self::NoRoomForPages { .. }
            | Self::NoState(_)
            | Self::TooManySteps { .. }
            | Self::NoLongerValid(_)
            | Self::OwnerGone { .. } => Code::Conflict,
            Self::ShortIdTaken { .. } => Code::ShortIdTaken,
            Self::ChangedMeanwhile => Code::ChangedMeanwhile,
            Self::CannotRender(_) | Self::NoDigitalLink(_) => Code::CannotRender,
            Self::TooManyTasks { .. } => Code::TooManyRequests,
        }
    }

    fn faults(&self) -> Vec<String> {
        match self {
            Self::Common(error) => error.faults(),
            Self::TakenDown(faults) | Self::NoLongerValid(faults) => faults.clone(),
            one => vec![one.to_string()],
        }
    }
}
