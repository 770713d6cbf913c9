//! What requests about accounts, operators, roles and keys are refused for.

use mail::InvalidMail;
use shared::{
    id::{OperatorId, ProjectId},
    problem::Code,
};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about accounts, operators, roles or keys is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum TenantsError {
    #[error("An account has at most {most} operators: remove some.")]
    TooManyOperators { most: usize },
    #[error("conditions: the project {0} was not found in this account.")]
    NoSuchProject(ProjectId),
    #[error("No other owner has a key that works for another day: make another operator owner first.")]
    LastOwner,
    #[error("{member} is too common: take several words, or one that nobody else has.")]
    CommonPassword { member: &'static str },

    #[error("label is required.")]
    LabelMissing,
    #[error("There is no such key that is valid.")]
    NoValidKey,
    #[error("The key was replaced: its end stays.")]
    EndOfReplacedKey,
    #[error("The key was replaced: rotate the one that replaced it.")]
    KeyReplaced,
    #[error("The key has expired: create another.")]
    KeyExpired,
    #[error("The key was revoked.")]
    KeyRevoked,
    #[error(
        "No other key of an owner reaches the whole account from this network for another day: create or rotate a key \
         first."
    )]
    LastOwnerKey,
    #[error(
        "Your own key ends earlier, or may be used from fewer networks: it can make and change no wider one."
    )]
    WiderThanOwnKey,
    #[error(
        "An account has at most {in_account} valid keys of operators, a project {in_project}, and an operator who \
         manages no others' {own}: revoke some."
    )]
    TooManyKeys { in_account: i64, in_project: i64, own: i64 },
    #[error("project: {0} was not found in this account.")]
    ProjectOutOfReach(String),

    #[error("Your roles were changed a moment ago: ask again.")]
    RolesChanged,
    #[error("role: there is no role {0:?} for operators.")]
    NoOperatorRole(String),
    #[error("userRole: there is no role {0:?} for users.")]
    NoUserRole(String),
    #[error(
        "The key {label:?} of the operator {owner} was made by somebody who may do less: rotate or revoke it first."
    )]
    KeyOfLesserMaker { label: String, owner: OperatorId },
    #[error("{why}: {permission}.")]
    BeyondOwnRights { why: &'static str, permission: String },
    #[error("An account makes at most {most} roles: remove some.")]
    TooManyRoles { most: u32 },
    #[error("The role is for users: it has paths.")]
    RoleOfUsers,
    #[error("The role is for operators: its permissions are switched one by one.")]
    RoleOfOperators,
    #[error("{users} operators or applications have the role: give them another one first.")]
    RoleInUse { users: i64 },
    #[error("Every account has the role {0}: it cannot be changed.")]
    BuiltInRole(String),

    #[error("email is required.")]
    EmailMissing,
    #[error("email: this address has access to the account, or is invited.")]
    EmailTaken,
    #[error("email {0}.")]
    Email(InvalidMail),
    #[error("The invitation was accepted.")]
    InvitationAccepted,
    #[error("No invitation that can be accepted has this code.")]
    NoInvitation,
}

impl DomainError for TenantsError {
    fn code(&self) -> Code {
        match self {
            Self::NoSuchProject(_)
            | Self::CommonPassword { .. }
            | Self::LabelMissing
            | Self::NoOperatorRole(_)
            | Self::NoUserRole(_)
            | Self::EmailMissing
            | Self::Email(_) => Code::Invalid,
            Self::ProjectOutOfReach(_) => Code::InvalidParameter,
            Self::NoInvitation => Code::LoginFailed,
            Self::WiderThanOwnKey | Self::RolesChanged | Self::BeyondOwnRights { .. } => Code::Forbidden,
            Self::NoValidKey => Code::NotFound,
            Self::TooManyOperators { .. }
            | Self::LastOwner
            | Self::EndOfReplacedKey
            | Self::KeyReplaced
            | Self::KeyExpired
            | Self::KeyRevoked
            | Self::LastOwnerKey
            | Self::TooManyKeys { .. }
            | Self::KeyOfLesserMaker { .. }
            | Self::TooManyRoles { .. }
            | Self::RoleOfUsers
            | Self::RoleOfOperators
            | Self::RoleInUse { .. }
            | Self::BuiltInRole(_)
            | Self::EmailTaken
            | Self::InvitationAccepted => Code::Conflict,
        }
    }
}
