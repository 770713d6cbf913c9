//! Requests to erase what is stored of a person, and how far they are.

use kernel::domain::{common::Stamp, limits::integer, members::Members, property::MAX_TIME_MS};
use scan_store::{ScanPosition, Sought};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{AccountId, ErasureId, ThngId, UserId},
    time::UnixMillis,
};

use super::network::Network;

/// Most users of one erasure: its row is written again in each step, and 500 ids are 14 kB.
pub const MAX_USERS: usize = 500;

/// The type of those that nobody asks for.
pub const AGE: &str = "age";

/// Whose data is erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// Users of applications: one that a request names, or several that were removed together.
    Users(Vec<UserId>),
    /// Whoever scanned a Thng, or did something with it.
    Thng(ThngId),
    /// Whoever came from a network in a time.
    Network {
        /// The network.
        network: Network,
        /// From this time on.
        from: UnixMillis,
        /// To before this one.
        to: UnixMillis,
    },
    /// Everybody, in what was created in a time: nobody asks for it, it follows from `personalDataDays` of the account.
    Age {
        /// From this time on.
        from: UnixMillis,
        /// To before this one.
        to: UnixMillis,
    },
}

impl Target {
    /// Reads the body of a request: exactly one of `user`, `thng` and `network`, the last one with `from` and `to`.
    ///
    /// # Errors
    /// Every fault, naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let named =
            ["user", "thng", "network"].into_iter().filter(|name| members.raw(name).is_some()).count();
        let user = members.parsed::<UserId>("user");
        let thng = members.parsed::<ThngId>("thng");
        let network = members.parsed::<Network>("network");
        let [from, to] = ["from", "to"].map(|name| time(&mut members, name));
        if named != 1 {
            members.fault("Name exactly one of user, thng and network.");
        }
        let has_network = members.raw("network").is_some();
        for name in ["from", "to"] {
            let is_there = members.raw(name).is_some();
            if has_network && !is_there {
                members.fault(format!("{name} is required with network: milliseconds since 1970."));
            } else if is_there && !has_network {
                members.fault(format!("{name} goes with network alone."));
            }
        }
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            members.fault("to must be later than from.");
        }
        let target = match (user, thng, network.zip(from).zip(to)) {
            (Some(user), ..) => Some(Self::Users(vec![user])),
            (None, Some(thng), _) => Some(Self::Thng(thng)),
            (None, None, Some(((network, from), to))) => Some(Self::Network { network, from, to }),
            (None, None, None) => None,
        };
        members.finish(target)
    }

    /// What it is called in the column `type`, and to filter by.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Users(_) => "user",
            Self::Thng(_) => "thng",
            Self::Network { .. } => "network",
            Self::Age { .. } => AGE,
        }
    }

    /// The scans by edges that it is about. None is of a user: edges know none.
    #[must_use]
    pub fn sought(&self) -> Option<Sought> {
        match *self {
            Self::Users(_) => None,
            Self::Thng(thng) => Some(Sought::Thng(thng)),
            Self::Age { from, to } => Some(Sought::Created { from, to }),
            Self::Network { network, from, to } => {
                let (first, last) = network.ends();
                Some(Sought::Network { first, last, from, to })
            }
        }
    }
}

fn time(members: &mut Members<'_>, name: &str) -> Option<UnixMillis> {
    let read = |value: &Value| integer(value).filter(|at| (0..=MAX_TIME_MS).contains(at));
    members.typed(name, "milliseconds since 1970", read).map(UnixMillis)
}

shared::words! {
    /// How far an erasure is, for whoever asked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Status {
        /// It waits for a worker.
        Enqueued = "ENQUEUED",
        /// It was begun.
        Executing = "EXECUTING",
        /// Everything is erased.
        Completed = "COMPLETED",
    } else ()
}

/// What an erasure works on, in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Actions in the database.
    #[default]
    Actions,
    /// Scans by edges.
    Scans,
    /// Messages of webhooks.
    WebhookMessages,
    /// What reactions are to do.
    ReactionTasks,
    /// Counts of requests for unknown ids.
    UnknownScans,
    /// Texts that scans shared.
    Texts,
    /// Profiles of assessments.
    Profiles,
    /// Nothing is left.
    Done,
}

impl Stage {
    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Actions => Self::Scans,
            Self::Scans => Self::WebhookMessages,
            Self::WebhookMessages => Self::ReactionTasks,
            Self::ReactionTasks => Self::UnknownScans,
            Self::UnknownScans => Self::Texts,
            Self::Texts => Self::Profiles,
            Self::Profiles | Self::Done => Self::Done,
        }
    }
}

/// Rows that were changed, or removed in the case of `unknownScans`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Actions in the database.
    pub actions: u64,
    /// Scans by edges.
    pub scans: u64,
    /// Messages of webhooks that were still stored.
    pub webhook_messages: u64,
    /// Tasks of reactions that waited.
    pub reaction_tasks: u64,
    /// Counts of requests for unknown ids.
    pub unknown_scans: u64,
    /// Profiles of assessments that are made again.
    pub profiles: u64,
    /// Scans that verdicts of items remembered.
    pub standings: u64,
    /// What finders wrote.
    pub reports: u64,
}

impl Counts {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self {
            actions,
            scans,
            webhook_messages,
            reaction_tasks,
            unknown_scans,
            profiles,
            standings,
            reports,
        } = *self;
        actions + scans + webhook_messages + reaction_tasks + unknown_scans + profiles + standings + reports
    }
}

/// Scans that are to be changed: written down before they are, so that they are counted once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The last one of them.
    pub end: ScanPosition,
    /// How many there are.
    pub scans: u64,
    /// The Thngs that they are of.
    pub thngs: Vec<ThngId>,
}

/// Where an erasure is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// What it works on.
    pub stage: Stage,
    /// The last row that is done; nothing at the begin of a stage.
    pub after: Option<ScanPosition>,
    /// Scans that are under way.
    pub pending: Option<Pending>,
    /// The last result of an assessment that is done, where the scans that results are of are looked at: before these are changed.
    pub results: Option<ScanPosition>,
    /// Whether all results are done.
    pub are_results_done: bool,
    /// The last Thng whose profile was looked at in this pass.
    pub thng: Option<ThngId>,
    /// Profiles of this pass that could not be made again.
    pub failed: u64,
}

/// The members of an erasure that are stored as one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Whose data is erased.
    pub target: Target,
    /// Id of the operator who asked; nobody where users were removed.
    pub requested_by: Option<String>,
    /// When a worker began.
    pub begun_at: Option<UnixMillis>,
    /// When it ended.
    pub completed_at: Option<UnixMillis>,
    /// What was changed.
    pub counts: Counts,
    /// Profiles that could not be made again in the last pass; they are tried again.
    #[serde(default)]
    pub profiles_failed: u64,
    /// Where it is.
    pub place: Place,
}

impl Details {
    /// Of an erasure that was not begun.
    #[must_use]
    pub fn new(target: Target, requested_by: Option<String>) -> Self {
        let (counts, place) = (Counts::default(), Place::default());
        let profiles_failed = 0;
        Self { target, requested_by, begun_at: None, completed_at: None, counts, profiles_failed, place }
    }
}

/// A request to erase, and its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Its id.
    pub id: ErasureId,
    /// Whose data is looked through.
    pub account: AccountId,
    /// Order and times.
    pub stamp: Stamp,
    /// How far it is.
    pub status: Status,
    /// Everything else.
    pub details: Details,
}

impl Erasure {
    /// It after a step up to a row, or to the end of its stage.
    #[must_use]
    pub fn moved(mut self, after: Option<ScanPosition>, now: UnixMillis) -> Self {
        self.details.place.pending = None;
        self.details.place.after = after;
        if after.is_none() {
            self.details.place.stage = self.details.place.stage.next();
        }
        self.touched(now)
    }

    /// It after a step on results of assessments up to one, or after all.
    #[must_use]
    pub fn after_results(mut self, last: Option<ScanPosition>, now: UnixMillis) -> Self {
        let place = &mut self.details.place;
        (place.results, place.are_results_done) = (last, last.is_none());
        self.touched(now)
    }

    /// It after profiles of items up to a Thng were looked at, some of which could not be made again.
    #[must_use]
    pub fn after_profiles(mut self, last: ThngId, failed: u64, now: UnixMillis) -> Self {
        let place = &mut self.details.place;
        (place.thng, place.failed) = (Some(last), place.failed + failed);
        self.details.profiles_failed = self.details.profiles_failed.max(place.failed);
        self.touched(now)
    }

    /// It after a pass over all profiles: at its end, or before another pass where some could not be made again.
    #[must_use]
    pub fn after_all_profiles(mut self, now: UnixMillis) -> Self {
        let place = &mut self.details.place;
        let failed = std::mem::take(&mut place.failed);
        place.thng = None;
        self.details.profiles_failed = failed;
        if failed == 0 { self.moved(None, now) } else { self.touched(now) }
    }

    /// It after something was written down of it.
    #[must_use]
    pub fn touched(mut self, now: UnixMillis) -> Self {
        self.stamp = self.stamp.touch(now);
        self.details.begun_at.get_or_insert(now);
        self.status = Status::Executing;
        if self.details.place.stage == Stage::Done {
            self.status = Status::Completed;
            self.details.completed_at.get_or_insert(now);
        }
        self
    }
}

#[cfg(test)]
mod tests;
