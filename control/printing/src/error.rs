//! What requests about print orders are refused for.

use shared::{
    id::{JobId, ProductId, ThngId},
    problem::Code,
};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about a print order is refused for, or why an order fails.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum PrintingError {
    #[error("The source of the order cannot be read any more.")]
    UnreadableSource,
    #[error("{member}: the account has no short domain.")]
    NoShortDomain { member: &'static str },
    #[error("{member}: {host} is not a short domain of this account.")]
    ForeignDomain { member: &'static str, host: String },
    #[error("{member} finds no redirection.")]
    NothingFound { member: &'static str },
    #[error("{member} finds {count} redirections; an order has at most {most} codes.")]
    TooManyCodes { member: &'static str, count: u64, most: u64 },
    #[error("source.serials.product: the product {0} was not found.")]
    NoProduct(ProductId),
    #[error("source.serials.product has no GTIN: it needs the identifier gs1:01.")]
    NoGtin,
    #[error("{0}.")]
    CannotDraw(print::PrintError),

    #[error("source.serials.start: orders have given out the numbers below {next}.")]
    NumbersTaken { next: u64 },
    #[error("source.serials: the last number would be {last}, which is too long behind this prefix.")]
    NumberTooLong { last: u64 },
    #[error(
        "source.serials: the thng {thng} of this product has the serial {serial} already; give another start."
    )]
    SerialTaken { thng: ThngId, serial: String },
    #[error("{most} print orders are under way; wait until one has ended.")]
    TooManyOrders { most: u64 },
    #[error("The print order {0} has ended.")]
    Ended(JobId),
    #[error("The print order {id} has not ended: it is {status}. Cancel it first.")]
    NotEnded { id: JobId, status: &'static str },
    #[error("What is left of the print order {0} is being removed; try again.")]
    BeingRemoved(JobId),
    #[error("The print order {id} has no files: it is {status}.")]
    NoFiles { id: JobId, status: &'static str },
    #[error("The files of the print order {0} were removed: their time is over.")]
    FilesRemoved(JobId),
    #[error("The print order {0} cannot be printed again: its files were removed. Order its codes anew.")]
    CannotReprint(JobId),
}

impl DomainError for PrintingError {
    fn code(&self) -> Code {
        match self {
            Self::UnreadableSource
            | Self::NoShortDomain { .. }
            | Self::ForeignDomain { .. }
            | Self::NothingFound { .. }
            | Self::TooManyCodes { .. }
            | Self::NoProduct(_)
            | Self::NoGtin => Code::Invalid,
            Self::CannotDraw(_) => Code::CannotRender,
            Self::FilesRemoved(_) => Code::NotFound,
            Self::NumbersTaken { .. }
            | Self::NumberTooLong { .. }
            | Self::SerialTaken { .. }
            | Self::Ended(_)
            | Self::NotEnded { .. }
            | Self::BeingRemoved(_)
            | Self::NoFiles { .. }
            | Self::CannotReprint(_) => Code::Conflict,
            Self::TooManyOrders { .. } => Code::TooManyRequests,
        }
    }
}
