//! Accounts and their operators.

use serde_json::{Map, Value};
use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{access::UserRights, common::updated_at, target_hosts::TargetHosts};

/// An account: the tenant that everything else belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Its name.
    pub name: String,
    /// Whether it may use the enterprise parts.
    pub enterprise: bool,
    /// What users of its applications may do.
    pub user_rights: UserRights,
    /// The custom fields that a Thing may write with its own key.
    pub thng_writable_custom_fields: Vec<String>,
    /// Which hosts targets may have.
    pub targets: TargetHosts,
    /// The caller's own members.
    pub custom_fields: Option<Map<String, Value>>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
}

/// The members of an update of an account; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccountChange {
    /// Its name.
    pub name: Option<String>,
    /// What users of its applications may do.
    pub user_rights: Option<UserRights>,
    /// The custom fields that a Thing may write with its own key, replaced as a whole.
    pub thng_writable_custom_fields: Option<Vec<String>>,
    /// Whether targets may lead to private addresses.
    pub private_targets: Option<bool>,
    /// The only hosts that targets may have, replaced as a whole; empty is any.
    pub target_hosts: Option<Vec<String>>,
    /// The caller's own members, replaced as a whole.
    pub custom_fields: Option<Map<String, Value>>,
}

impl Account {
    /// The account after a change at `now`.
    #[must_use]
    pub fn apply(self, change: AccountChange, now: UnixMillis) -> Self {
        Self {
            name: change.name.unwrap_or(self.name),
            user_rights: change.user_rights.unwrap_or(self.user_rights),
            thng_writable_custom_fields: change
                .thng_writable_custom_fields
                .unwrap_or(self.thng_writable_custom_fields),
            targets: TargetHosts {
                private: change.private_targets.unwrap_or(self.targets.private),
                only: change.target_hosts.unwrap_or(self.targets.only),
            },
            custom_fields: change.custom_fields.or(self.custom_fields),
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }
}

/// A person or program that works in an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// Its id.
    pub id: OperatorId,
    /// Its account.
    pub account: AccountId,
    /// Address it is known by; not changed through the API.
    pub email: String,
    /// First name.
    pub first_name: String,
    /// Last name.
    pub last_name: String,
    /// What its access to the account is called; every operator may do the same.
    pub role: String,
    /// The caller's own members.
    pub custom_fields: Option<Map<String, Value>>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
}

/// The members of an update of an operator; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorChange {
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// The caller's own members, replaced as a whole.
    pub custom_fields: Option<Map<String, Value>>,
}

impl Operator {
    /// The operator after a change at `now`.
    #[must_use]
    pub fn apply(self, change: OperatorChange, now: UnixMillis) -> Self {
        Self {
            first_name: change.first_name.unwrap_or(self.first_name),
            last_name: change.last_name.unwrap_or(self.last_name),
            custom_fields: change.custom_fields.or(self.custom_fields),
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }
}

// Spec gap: roles are not shown. A role is stored and returned, but decides nothing.
/// The default role of an operator.
pub const DEFAULT_ROLE: &str = "admin";

/// The members of an update of an access; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessChange {
    /// The role.
    pub role: Option<String>,
}

impl Operator {
    /// The operator after a change of its access at `now`.
    #[must_use]
    pub fn apply_access(self, change: AccessChange, now: UnixMillis) -> Self {
        Self {
            role: change.role.unwrap_or(self.role),
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }
}
