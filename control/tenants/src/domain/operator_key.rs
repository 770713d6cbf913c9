//! Keys of operators: what of them is shown and changed.

use std::net::IpAddr;

use serde_json::Value;
use shared::{entity_tag::EntityTag, id::ProjectId, networks::Networks, time::UnixMillis};

use super::{
    access::ActorKind,
    api_key::{Bounds, KeyId, admits},
    body::{Purpose, millis, text, texts},
    common::updated_at,
    limits::{MAX_NAME, integer},
    members::Members,
    page::Position,
};

/// Longest text of a network.
pub const MAX_NETWORK: usize = 64;

/// How long a key must still work to count as one by which an account is reached.
const LASTING_MS: i64 = 24 * 60 * 60 * 1_000;

/// A key of an operator, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorKey {
    /// Its SHA-256.
    pub hash: [u8; 32],
    /// Order of insertion.
    pub seq: i64,
    /// What it is called.
    pub label: String,
    /// Id of the operator that it acts for.
    pub operator: String,
    /// The project that it is confined to.
    pub project: Option<ProjectId>,
    /// Id of the operator who made it; unknown of one that a command or an older release made.
    pub created_by: Option<String>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
    /// The hour in which it was last used.
    pub last_used_at: Option<UnixMillis>,
    /// When it ceases to work.
    pub expires_at: Option<UnixMillis>,
    /// For how long it was given when that was set, in milliseconds; the key that replaces it lives as long.
    pub life_ms: Option<i64>,
    /// When it was replaced by another.
    pub replaced_at: Option<UnixMillis>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
    /// From where it may be used; empty is everywhere.
    pub networks: Networks,
}

shared::words! {
    /// Whether a key works.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum KeyStatus {
        /// It does.
        Active = "active",
        /// It did until its time was over.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
    }
}

/// The members of a create or update of a key; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChange {
    /// What it is called; required on create.
    pub label: Option<String>,
    /// When it ceases to work; inside, `None` is never.
    pub expires_at: Option<Option<UnixMillis>>,
    /// From where it may be used; replaced as a whole, empty is everywhere.
    pub networks: Option<Networks>,
    /// The project that a new key is confined to.
    pub project: Option<String>,
}

impl KeyChange {
    /// Reads the body of `POST /keys` and `PUT /keys/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose, now: UnixMillis) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if purpose == Purpose::Create && members.raw("label").is_none() {
            members.fault("label is required.");
        }
        let expires_at = millis(&mut members, "expiresAt").map(|at| (at.0 != 0).then_some(at));
        if expires_at.flatten().is_some_and(|at| at <= now) {
            members.fault("expiresAt must lie in the future; 0 means never.");
        }
        let change = Self {
            label: text(&mut members, "label", 1, MAX_NAME),
            expires_at,
            networks: networks(&mut members),
            project: match purpose {
                Purpose::Create => text(&mut members, "project", 1, MAX_NAME),
                Purpose::Update => None,
            },
        };
        members.finish(Some(change))
    }
}

/// Reads how long a key shall work beside the one that replaces it, in milliseconds; not at all if left out.
///
/// # Errors
/// The body or the member is of another type.
pub fn parse_overlap(body: &Value) -> Result<u32, Vec<String>> {
    let mut members = Members::of(body)?;
    let ms = members.typed("overlap", "a whole number of milliseconds from 0", |value| {
        integer(value).and_then(|ms| u32::try_from(ms).ok())
    });
    members.finish(Some(ms.unwrap_or_default()))
}

fn networks(members: &mut Members<'_>) -> Option<Networks> {
    let listed = texts(members, "networks", MAX_NETWORK)?;
    let parsed = Networks::parse(listed.iter().map(String::as_str));
    parsed.map_err(|fault| members.fault(format!("networks: {fault}."))).ok()
}

impl OperatorKey {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId::of(&self.hash)
    }

    /// Its kind, as it is stored.
    #[must_use]
    pub const fn kind(&self) -> ActorKind {
        if self.project.is_some() { ActorKind::ProjectOperator } else { ActorKind::Operator }
    }

    /// How long it is valid, and from where.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { expires_at: self.expires_at, networks: self.networks.clone() }
    }

    /// Its place in lists.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { at: self.created_at, seq: self.seq }
    }

    /// Whether it works.
    #[must_use]
    pub fn status(&self, now: UnixMillis) -> KeyStatus {
        if self.revoked_at.is_some() {
            KeyStatus::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            KeyStatus::Expired
        } else {
            KeyStatus::Active
        }
    }

    /// Whether it is for the whole account, and for another day at least.
    #[must_use]
    pub fn lasts(&self, now: UnixMillis) -> bool {
        self.project.is_none()
            && self.revoked_at.is_none()
            && self.expires_at.is_none_or(|at| at.0 - now.0 >= LASTING_MS)
    }

    /// Whether it is so from an address.
    #[must_use]
    pub fn is_lasting(&self, client: Option<IpAddr>, now: UnixMillis) -> bool {
        self.lasts(now) && admits(&self.networks, client)
    }

    /// The key after a change at `now`.
    #[must_use]
    pub fn apply(self, change: KeyChange, now: UnixMillis) -> Self {
        Self {
            label: change.label.unwrap_or(self.label),
            expires_at: change.expires_at.unwrap_or(self.expires_at),
            life_ms: change.expires_at.map_or(self.life_ms, |at| at.map(|at| at.0 - now.0)),
            networks: change.networks.unwrap_or(self.networks),
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }

    /// Names the state that it is in. That it was used is no change.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        EntityTag::of_members(&Self { last_used_at: None, ..self.clone() })
    }

    /// The key that replaces it: for as long a life, with the same label, networks and project.
    #[must_use]
    pub fn successor(&self, hash: [u8; 32], created_by: String, now: UnixMillis) -> Self {
        Self {
            hash,
            seq: 0,
            created_by: Some(created_by),
            created_at: now,
            updated_at: now,
            last_used_at: None,
            expires_at: self.life_ms.map(|life| UnixMillis(now.0.saturating_add(life))),
            replaced_at: None,
            revoked_at: None,
            ..self.clone()
        }
    }

    /// The key after it was replaced: it ends at `ends_at`, if not before.
    #[must_use]
    pub fn replaced(self, ends_at: UnixMillis, now: UnixMillis) -> Self {
        let updated_at = updated_at(now, self.created_at, self.updated_at);
        if ends_at <= now {
            return Self { revoked_at: Some(now), replaced_at: Some(now), updated_at, ..self };
        }
        let expires_at = self.expires_at.map_or(ends_at, |at| at.min(ends_at));
        Self { expires_at: Some(expires_at), replaced_at: Some(now), updated_at, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000_000);

    fn key(expires_at: Option<i64>, networks: &str) -> OperatorKey {
        OperatorKey {
            hash: [1; 32],
            seq: 1,
            label: "one".to_owned(),
            operator: "o".to_owned(),
            project: None,
            created_by: None,
            created_at: UnixMillis(900_000),
            updated_at: UnixMillis(900_000),
            last_used_at: None,
            expires_at: expires_at.map(UnixMillis),
            life_ms: expires_at.map(|at| at - 900_000),
            replaced_at: None,
            revoked_at: None,
            networks: networks.parse().unwrap(),
        }
    }

    #[test]
    fn bodies_are_read_and_every_fault_is_named() {
        let read = |body: Value, purpose| KeyChange::parse(&body, purpose, NOW);
        let body = json!({"label": "ci", "expiresAt": 2_000_000, "networks": ["10.1.2.3/8"], "project": "P"});
        let change = read(body, Purpose::Create).unwrap();
        assert_eq!(
            (change.label.as_deref(), change.expires_at),
            (Some("ci"), Some(Some(UnixMillis(2_000_000))))
        );
        assert_eq!(change.networks.map(|networks| networks.to_string()).as_deref(), Some("10.0.0.0/8"));
        let change = read(json!({"expiresAt": 0, "networks": [], "project": "P"}), Purpose::Update).unwrap();
        assert_eq!((change.expires_at, change.project), (Some(None), None));
        assert_eq!(read(json!({"expiresAt": null}), Purpose::Update), Ok(KeyChange::default()));
        let faults = read(json!({"expiresAt": 1_000_000, "networks": ["x"]}), Purpose::Create).unwrap_err();
        assert_eq!(
            faults,
            [
                "label is required.",
                "expiresAt must lie in the future; 0 means never.",
                "networks: \"x\" is neither an address nor a network such as 10.0.0.0/8.",
            ]
        );
        for (body, expected) in [
            (json!({}), Some(0)),
            (json!({"overlap": 60_000}), Some(60_000)),
            (json!({"overlap": -1}), None),
            (json!({"overlap": 1.5}), None),
            (json!({"overlap": "60"}), None),
            (json!([]), None),
        ] {
            assert_eq!(parse_overlap(&body).ok(), expected, "{body}");
        }
    }

    #[test]
    fn a_rotated_key_ends_and_its_successor_lives_as_long() {
        let old = key(Some(1_500_000), "10.0.0.0/8");
        let next = old.successor([2; 32], "me".to_owned(), NOW);
        assert_eq!(next.expires_at, Some(UnixMillis(1_600_000)), "as long as the first");
        assert_eq!((next.networks.clone(), next.created_by.as_deref()), (old.networks.clone(), Some("me")));
        for (ends_at, expires_at, status) in [
            (1_000_000, 1_500_000, KeyStatus::Revoked),
            (1_200_000, 1_200_000, KeyStatus::Active),
            (9_000_000, 1_500_000, KeyStatus::Active),
        ] {
            let replaced = old.clone().replaced(UnixMillis(ends_at), NOW);
            assert_eq!(replaced.expires_at, Some(UnixMillis(expires_at)), "{ends_at}");
            assert_eq!(replaced.status(NOW), status, "{ends_at}");
        }
        assert_eq!(
            key(None, "").replaced(UnixMillis(1_200_000), NOW).status(UnixMillis(1_200_000)),
            KeyStatus::Expired
        );
        // The life counts from when its end was set, not from the creation of the key; an overlap is no life.
        let change = KeyChange { expires_at: Some(Some(UnixMillis(NOW.0 + 50))), ..KeyChange::default() };
        let bounded = key(None, "").apply(change, NOW);
        assert_eq!(
            bounded.successor([2; 32], "me".to_owned(), UnixMillis(2_000_000)).expires_at,
            Some(UnixMillis(2_000_050))
        );
        let replaced = key(None, "").replaced(UnixMillis(1_200_000), NOW);
        assert_eq!((replaced.life_ms, replaced.replaced_at), (None, Some(NOW)));
    }

    #[test]
    fn a_key_is_lasting_for_a_day_where_the_client_is() {
        let client = Some("10.1.1.1".parse().unwrap());
        for (expires_at, networks, expected) in [
            (None, "", true),
            (Some(NOW.0 + LASTING_MS), "10.0.0.0/8", true),
            (Some(NOW.0 + LASTING_MS - 1), "", false),
            (None, "192.0.2.0/24", false),
        ] {
            assert_eq!(
                key(expires_at, networks).is_lasting(client, NOW),
                expected,
                "{expires_at:?} {networks}"
            );
        }
        let confined = OperatorKey { project: Some(ProjectId::new(1, [1; 16])), ..key(None, "") };
        assert!(!confined.is_lasting(client, NOW));
    }
}
