//! Cases: items that an assessment suspects, for a person to decide on.
//!
//! An item has at most one case of each kind. Believed scans open it and add to its evidence; a person dismisses or
//! confirms it. A dismissed case reopens only on new evidence; a confirmed one stays until a person changes it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{ActionId, CaseId, ProductId, ProjectId, ThngId},
    time::UnixMillis,
};

use super::{
    access::Actor,
    assessment::peak::Level,
    limits::{check_text, integer},
    members::Members,
    page::Position,
};

/// Longest reason of a decision, in characters.
pub const MAX_REASON: usize = 1_024;

/// Most entries of a history; the oldest ones are dropped.
pub const MAX_HISTORY: usize = 50;

/// Most countries and signs of the evidence: there are some 250 countries, and fewer than 20 signs.
const MAX_NAMES: usize = 300;

/// Signs that an inspector saw: each inspection is new evidence.
const INSPECTIONS: [&str; 3] = ["physicalChecks", "watermarkChecks", "markingsChecks"];

shared::words! {
    /// The subject of a case.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum CaseKind {
        /// The item may be a copy.
        Counterfeit = "counterfeit",
        /// The item was seen outside of its markets.
        GrayMarket = "grayMarket",
    } else ()
}

shared::words! {
    /// The states of a case.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum CaseStatus {
        /// Not decided yet, or reopened by new evidence.
        Open = "open",
        /// The evidence so far is dismissed.
        Dismissed = "dismissed",
        /// Confirmed; later scans do not change it.
        Confirmed = "confirmed",
    } else ()
}

/// The evidence of a case: the maximum over its scans since the item was commissioned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The scan that added to it last.
    pub scan: ActionId,
    /// When it happened.
    pub at: UnixMillis,
    /// The greatest points of a duplicate.
    pub points: u32,
    /// Their level.
    pub level: Level,
    /// Names of the signs that were seen.
    pub signs: BTreeSet<String>,
    /// Countries outside of the markets.
    pub countries: BTreeSet<String>,
    /// The reason of that scan's assessment.
    pub reason: String,
    /// The commissioning that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
}

impl Evidence {
    /// Whether it holds all that was found: no more points, no higher level, no sign and no country that is new.
    #[must_use]
    pub fn covers(&self, kind: CaseKind, found: &Self) -> bool {
        self.is_of(found.since)
            && match kind {
                CaseKind::Counterfeit => {
                    let is_inspected = INSPECTIONS.iter().any(|name| found.signs.contains(*name));
                    found.points <= self.points
                        && found.level <= self.level
                        && found.signs.is_subset(&self.signs)
                        && !(is_inspected && found.at > self.at)
                }
                CaseKind::GrayMarket => found.countries.is_subset(&self.countries),
            }
    }

    /// Whether it is not of before a commissioning.
    #[must_use]
    pub fn is_of(&self, since: Option<UnixMillis>) -> bool {
        since.is_none_or(|since| self.since.map_or(self.at >= since, |own| own >= since))
    }

    /// Merges new evidence; evidence from before a new commissioning is dropped.
    fn with(self, found: Self) -> Self {
        if !self.is_of(found.since) {
            return found;
        }
        let join = |mut before: BTreeSet<String>, mut new: BTreeSet<String>| {
            before.append(&mut new);
            before.into_iter().take(MAX_NAMES).collect()
        };
        Self {
            points: self.points.max(found.points),
            level: self.level.max(found.level),
            signs: join(self.signs, found.signs),
            countries: join(self.countries, found.countries),
            ..found
        }
    }
}

/// Who decided: a person or program with a key, or a scan that brought new evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedBy {
    /// The kind of the key as `/access` names it, or `scan`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub id: String,
}

impl DecidedBy {
    /// The caller.
    #[must_use]
    pub fn of(actor: &Actor) -> Self {
        Self { kind: actor.kind.as_actor_type().to_owned(), id: actor.id.clone() }
    }
}

/// A decision: status, person, time, reason and the evidence it was based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The state that the case came into.
    pub status: CaseStatus,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person who decided.
    pub by: DecidedBy,
    /// When.
    pub at: UnixMillis,
    /// The evidence that there was.
    pub evidence: Evidence,
}

/// The details of a case besides its state; stored as one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseDetails {
    /// What speaks for it.
    pub evidence: Evidence,
    /// The current decision; `None` while the case is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Every change of its state, the oldest first, at most [`MAX_HISTORY`].
    #[serde(default)]
    pub history: Vec<Decision>,
}

/// The part of a case that scans and decisions change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseState {
    /// Its id.
    pub id: CaseId,
    /// Its state.
    pub status: CaseStatus,
    /// Grows with each change.
    pub version: i64,
    /// Everything else.
    pub details: CaseDetails,
}

impl CaseState {
    /// A case that evidence opens.
    #[must_use]
    pub const fn open(id: CaseId, evidence: Evidence) -> Self {
        let details = CaseDetails { evidence, decision: None, history: Vec::new() };
        Self { id, status: CaseStatus::Open, version: 1, details }
    }

    /// The case after a person decided at `now`.
    #[must_use]
    pub fn decide(mut self, asked: &DecisionRequest, by: DecidedBy, now: UnixMillis) -> Self {
        let evidence = self.details.evidence.clone();
        let (status, reason) = (asked.status, asked.reason.clone());
        self.enter(Decision { status, reason, by, at: now, evidence });
        self
    }

    /// The case after an assessment at `now` found something; `None` if it adds nothing.
    ///
    /// Evidence that a dismissal covers adds nothing; other evidence reopens the case.
    #[must_use]
    pub fn meets(mut self, kind: CaseKind, found: Evidence, now: UnixMillis) -> Option<Self> {
        let dismissed = self.details.decision.as_ref().filter(|_| self.status == CaseStatus::Dismissed);
        let is_reopened = dismissed.is_some_and(|decision| !decision.evidence.covers(kind, &found));
        if !is_reopened && self.details.evidence.covers(kind, &found) {
            return None;
        }
        let scan = found.scan;
        self.details.evidence = self.details.evidence.with(found);
        if is_reopened {
            self.enter(Decision {
                status: CaseStatus::Open,
                reason: Some("New evidence came after the case was dismissed.".to_owned()),
                by: DecidedBy { kind: "scan".to_owned(), id: scan.to_string() },
                at: now,
                evidence: self.details.evidence.clone(),
            });
        } else {
            self.version += 1;
        }
        Some(self)
    }

    fn enter(&mut self, decision: Decision) {
        self.status = decision.status;
        self.version += 1;
        let history = &mut self.details.history;
        history.push(decision.clone());
        let over = history.len().saturating_sub(MAX_HISTORY);
        history.drain(..over);
        self.details.decision = Some(decision).filter(|decision| decision.status != CaseStatus::Open);
    }
}

/// A case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its id, state and evidence.
    pub state: CaseState,
    /// Order of insertion.
    pub seq: i64,
    /// The first project of its Thng when it was opened.
    pub project: Option<ProjectId>,
    /// The Thng.
    pub thng: ThngId,
    /// The Thng's product when the case was opened.
    pub product: Option<ProductId>,
    /// Its kind.
    pub kind: CaseKind,
    /// When it was opened first.
    pub created_at: UnixMillis,
    /// When it changed last.
    pub updated_at: UnixMillis,
    /// How many finders wrote about the item.
    pub reports: i64,
}

impl Case {
    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { at: self.created_at, seq: self.seq }
    }
}

/// A decision: the body of `PUT /authentication/cases/:id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The new state.
    pub status: CaseStatus,
    /// Why; only to open a case again needs none.
    pub reason: Option<String>,
    /// Whether the Thng gets the tag `display`.
    pub is_display: bool,
    /// The version that the caller saw, if it cares.
    pub version: Option<i64>,
}

impl DecisionRequest {
    /// Reads the body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if members.raw("status").is_none() {
            members.fault("status is required.");
        }
        let status = members.typed("status", "open, dismissed or confirmed", |value| {
            value.as_str()?.parse::<CaseStatus>().ok()
        });
        let reason = members.text("reason");
        if let Some(reason) = reason {
            if let Err(fault) = check_text(reason, 1, MAX_REASON) {
                members.fault(format!("reason {fault}."));
            }
        } else if members.raw("reason").is_none() && status.is_some_and(|status| status != CaseStatus::Open) {
            members.fault("reason is required, unless the case is opened again.");
        }
        let is_display = members.boolean("display").unwrap_or_default();
        if is_display && status.is_some_and(|status| status != CaseStatus::Dismissed) {
            members.fault("display goes with the status dismissed only.");
        }
        let version = members.typed("version", "a whole number of 1 or more", |value| {
            integer(value).filter(|version| *version >= 1)
        });
        let reason = reason.map(str::to_owned);
        members.finish(status.map(|status| Self { status, reason, is_display, version }))
    }
}

#[cfg(test)]
mod tests;
