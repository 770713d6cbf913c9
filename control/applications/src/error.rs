//! What requests about applications and their users are refused for.

use mail::InvalidMail;
use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about an application or a user of it is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum ApplicationsError {
    #[error("email: a user of this project has this address.")]
    EmailTaken,
    #[error("email {0}.")]
    Email(InvalidMail),
    #[error("This server sends no mail, so {so}: whoever runs it sets WAYMARK_SMTP_URL.")]
    NoMail { so: &'static str },
    #[error("Users are made with the key of an application.")]
    NoApplication,
    #[error("activationCode is wrong, was used or has expired.")]
    WrongActivationCode,
    #[error("The user {0} was not found, or the code is wrong, was used or has expired.")]
    WrongUserOrCode(String),
    #[error("The e-mail address or the password is wrong.")]
    WrongLogin,
    #[error("code is wrong, was used or has expired.")]
    WrongResetCode,
    #[error("A user changes its password with its own key.")]
    ForeignKey,
    #[error("password is wrong.")]
    WrongPassword,
}

impl DomainError for ApplicationsError {
    fn code(&self) -> Code {
        match self {
            Self::Email(_) | Self::WrongActivationCode | Self::WrongResetCode | Self::WrongPassword => {
                Code::Invalid
            }
            Self::WrongLogin => Code::LoginFailed,
            Self::NoApplication | Self::ForeignKey => Code::Forbidden,
            Self::WrongUserOrCode(_) => Code::NotFound,
            Self::EmailTaken => Code::Conflict,
            Self::NoMail { .. } => Code::NoMail,
        }
    }
}
