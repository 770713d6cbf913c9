//! Accounts.

use serde_json::{Map, Value};
use shared::{entity_tag::EntityTag, id::AccountId, personal_data::PersonalData, time::UnixMillis};

use super::{
    access::UserRights, common::updated_at, target_hosts::TargetHosts, user_registration::UserRegistration,
};

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
    /// How users of its applications register.
    pub user_registration: UserRegistration,
    /// Whether operators sign in by the provider of identities.
    pub provider_sign_in: bool,
    /// Whether an operator who signs in by a password needs a second factor.
    pub second_factor_required: bool,
    /// Whether a second operator must approve a change of many links.
    pub approve_bulk_changes: bool,
    /// The custom fields that a Thing may write with its own key.
    pub thng_writable_custom_fields: Vec<String>,
    /// Which hosts targets may have.
    pub targets: TargetHosts,
    /// Days that its scans by edges are kept.
    pub scan_retention_days: u16,
    /// How much it keeps of the people behind scans and other actions.
    pub personal_data: PersonalData,
    /// Days after which what is left of people is cut; `None` is never.
    pub personal_data_days: Option<u16>,
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
    /// How users of its applications register.
    pub user_registration: Option<UserRegistration>,
    /// Whether operators sign in by the provider of identities.
    pub provider_sign_in: Option<bool>,
    /// Whether an operator who signs in by a password needs a second factor.
    pub second_factor_required: Option<bool>,
    /// Whether a second operator must approve a change of many links.
    pub approve_bulk_changes: Option<bool>,
    /// The custom fields that a Thing may write with its own key, replaced as a whole.
    pub thng_writable_custom_fields: Option<Vec<String>>,
    /// Whether targets may lead to private addresses.
    pub private_targets: Option<bool>,
    /// The only hosts that targets may have, replaced as a whole; empty is any.
    pub target_hosts: Option<Vec<String>>,
    /// Days that its scans by edges are kept.
    pub scan_retention_days: Option<u16>,
    /// How much it keeps of the people behind scans and other actions.
    pub personal_data: Option<PersonalData>,
    /// Days after which what is left of people is cut; `Some(None)` is never.
    pub personal_data_days: Option<Option<u16>>,
    /// The caller's own members, replaced as a whole.
    pub custom_fields: Option<Map<String, Value>>,
}

impl Account {
    /// Names the state that it is in.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        EntityTag::of_members(self)
    }

    /// The account after a change at `now`.
    #[must_use]
    pub fn apply(self, change: AccountChange, now: UnixMillis) -> Self {
        Self {
            name: change.name.unwrap_or(self.name),
            user_rights: change.user_rights.unwrap_or(self.user_rights),
            user_registration: change.user_registration.unwrap_or(self.user_registration),
            provider_sign_in: change.provider_sign_in.unwrap_or(self.provider_sign_in),
            second_factor_required: change.second_factor_required.unwrap_or(self.second_factor_required),
            approve_bulk_changes: change.approve_bulk_changes.unwrap_or(self.approve_bulk_changes),
            thng_writable_custom_fields: change
                .thng_writable_custom_fields
                .unwrap_or(self.thng_writable_custom_fields),
            targets: TargetHosts {
                private: change.private_targets.unwrap_or(self.targets.private),
                only: change.target_hosts.unwrap_or(self.targets.only),
            },
            scan_retention_days: change.scan_retention_days.unwrap_or(self.scan_retention_days),
            personal_data: change.personal_data.unwrap_or(self.personal_data),
            personal_data_days: change.personal_data_days.unwrap_or(self.personal_data_days),
            custom_fields: change.custom_fields.or(self.custom_fields),
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }
}
