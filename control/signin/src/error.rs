//! What a sign-in, or a change of what an operator signs in with, is refused for.

use shared::problem::Code;

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a sign-in, or a change of what an operator signs in with, is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum SignInFault {
    #[error("Only an operator who is a person signs in.")]
    NoOperator,
    #[error("Only an operator who is a person signs in.")]
    NoPerson,
    #[error(
        "The e-mail address or the password is wrong; if you belong to several accounts, name the account."
    )]
    WrongLogin,
    #[error("The projects of this operator were deleted: ask whoever runs the account for others.")]
    ProjectsDeleted,
    #[error("Nobody is signed in.")]
    NobodySignedIn,
    #[error("This path is reached below /console/api/ only.")]
    OutsideConsole,
    #[error("The session has ended: sign in again.")]
    SessionEnded,
    #[error("The link was used or has expired: start Waymark again.")]
    WrongLink,

    #[error("The account requires a second factor: turn one on first (POST /console/api/totp).")]
    SecondFactorRequired,
    #[error("{}", Code::SecondFactor.text())]
    CodeMissing,
    #[error("The code of the second factor is wrong, or was used.")]
    WrongSecondFactor,
    #[error("code is wrong, or was used.")]
    WrongCode,
    #[error("An authenticator is on: turn it off before you begin another.")]
    AuthenticatorOn,
    #[error("There is no authenticator to confirm: begin one first.")]
    NothingToConfirm,
    #[error("No second factor is on.")]
    NoSecondFactor,
    #[error("The operator was removed.")]
    OperatorRemoved,

    #[error(
        "You have no password yet. The first one comes with an invitation, or by a code that whoever runs the server \
         gets from `operators reset-password`."
    )]
    NoPassword,
    #[error("This operator has no e-mail address, so it cannot sign in.")]
    NoEmail,
    #[error("password is wrong.")]
    WrongPassword,
    #[error("This server sends no mail: whoever runs it gets a code from `operators reset-password`.")]
    NoMail,
    #[error("code is wrong, was used or has expired.")]
    WrongResetCode,

    #[error("There is no role {role:?}: {known}.")]
    NoSuchRole { role: String, known: String },
    #[error("This address has access to the account, or is invited.")]
    EmailTaken,
    #[error("This operator has not accepted the invitation yet: a password may come with that.")]
    InvitationOpen,
}

impl DomainError for SignInFault {
    fn code(&self) -> Code {
        match self {
            Self::WrongCode | Self::WrongPassword | Self::WrongResetCode | Self::NoSuchRole { .. } => {
                Code::Invalid
            }
            Self::WrongLogin | Self::WrongLink => Code::LoginFailed,
            Self::NobodySignedIn => Code::KeyMissing,
            Self::SessionEnded => Code::KeyUnknown,
            Self::CodeMissing | Self::WrongSecondFactor => Code::SecondFactor,
            Self::NoOperator
            | Self::OutsideConsole
            | Self::ProjectsDeleted
            | Self::SecondFactorRequired
            | Self::OperatorRemoved => Code::Forbidden,
            Self::NoMail => Code::NoMail,
            Self::NoPerson
            | Self::AuthenticatorOn
            | Self::NothingToConfirm
            | Self::NoSecondFactor
            | Self::NoPassword
            | Self::NoEmail
            | Self::EmailTaken
            | Self::InvitationOpen => Code::Conflict,
        }
    }
}
