//! What all named resources have in common: members, order and times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use shared::time::UnixMillis;

use super::{page::Position, scopes::Scopes};

/// When a resource counts as updated: later than its creation, never earlier than before.
#[must_use]
pub fn updated_at(now: UnixMillis, created_at: UnixMillis, before: UnixMillis) -> UnixMillis {
    now.max(UnixMillis(created_at.0.saturating_add(1))).max(before)
}

/// The members that products and Thngs have in common; stored as one document.
///
/// As a change, a member that is `None` stays as it is.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Common {
    /// Free text.
    pub description: Option<String>,
    /// Labels.
    pub tags: Option<Vec<String>>,
    /// The caller's own members, without history.
    pub custom_fields: Option<Map<String, Value>>,
    /// Names outside of the platform, by key.
    pub identifiers: Option<BTreeMap<String, String>>,
    /// When it was activated.
    pub activated_at: Option<UnixMillis>,
    /// Who may see it beside operators.
    pub scopes: Option<Scopes>,
}

impl Common {
    /// The members after a change: what it does not say stays.
    #[must_use]
    pub fn merge(self, change: Self) -> Self {
        Self {
            description: change.description.or(self.description),
            tags: change.tags.or(self.tags),
            custom_fields: change.custom_fields.or(self.custom_fields),
            identifiers: change.identifiers.or(self.identifiers),
            activated_at: change.activated_at.or(self.activated_at),
            scopes: change.scopes.or(self.scopes),
        }
    }
}

/// What every stored resource has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Order of insertion.
    pub seq: i64,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
}

impl Stamp {
    /// The stamp of what is made at `now`; the store gives it its place.
    #[must_use]
    pub const fn new(now: UnixMillis) -> Self {
        Self { seq: 0, created_at: now, updated_at: now }
    }

    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { at: self.created_at, seq: self.seq }
    }

    /// The stamp after a change at `now`.
    #[must_use]
    pub fn touch(self, now: UnixMillis) -> Self {
        Self { updated_at: updated_at(now, self.created_at, self.updated_at), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_later_than_the_creation_and_never_goes_back() {
        for (now, created, before, expected) in [
            (100, 100, 100, 101),
            (99, 100, 100, 101),
            (150, 100, 100, 150),
            (120, 100, 150, 150),
            (i64::MAX, 0, 0, i64::MAX),
        ] {
            let at = updated_at(UnixMillis(now), UnixMillis(created), UnixMillis(before));
            assert_eq!(at, UnixMillis(expected), "now {now}, created {created}, before {before}");
        }
    }
}
