//! Batcher: assessments that arrive at the same time are written in one transaction, so they share one fsync.
//!
//! Each is judged under the lock of its item, with the greatest points stored at that time. So results and item
//! statuses are the same as if the assessments had run one after another.

use crate::service::access::Caller;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    iter,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, CaseId, ThngId},
    problem::Code,
};

use super::{facts::Gathered, result, standing};
use crate::{
    domain::{
        action::Action,
        assessment::{
            Facts, assess,
            document::judged_by,
            packed::{self, JudgedBy},
            trigger::Request,
        },
        quota::Quota,
    },
    error::ServiceError,
    service::{
        Core,
        action_creation::created,
        batcher::{Batcher, of_all},
        redirections::follow_thng,
    },
    store::{
        Ctx, Db, StoreError,
        actions::{self, NewAction},
        assessment_contexts,
        audit::Entry,
        item_standings::{self, Kept},
        quotas,
    },
};

/// Concurrent batches; a second one would make both smaller.
const LANES: usize = 1;

/// Concurrent batches if one waits for an item that another transaction holds.
const PG_MOST_LANES: usize = 4;

/// Most contexts that are known to be stored; past it all are forgotten, and each is written once more.
const MAX_KNOWN: usize = 1_024;

/// An assessment in the queue.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) caller: Caller,
    pub(super) request: Request,
    pub(super) gathered: Gathered,
    /// Id of the result.
    pub(super) id: ActionId,
    /// Ids of the cases that it may open.
    pub(super) cases: [CaseId; 2],
}

type Answer = Result<Action, ServiceError>;

/// Handle of the assessments that wait; cheap to clone.
#[derive(Clone)]
pub struct AssessmentGroups {
    batcher: Batcher<Waiting, Answer>,
    /// Of accounts with a quota of events: their batches may wait for the use of the account, those of others do not.
    limited: Batcher<Waiting, Answer>,
    groups: Arc<Groups>,
}

shared::opaque!(AssessmentGroups);

struct Groups {
    core: Arc<Core>,
    /// Contexts that are stored; they never go.
    known: Mutex<HashSet<(AccountId, String)>>,
    /// Accounts that had a quota of events when they were last written for. It only says with whom they share a batch.
    limited: Mutex<HashSet<AccountId>>,
}

impl AssessmentGroups {
    /// A batcher for the database of `core`, which tells the readers of its writes.
    #[must_use]
    pub fn new(core: Arc<Core>) -> Self {
        let most_lanes = match core.db {
            Db::Pg(_) => PG_MOST_LANES,
            Db::Sqlite { .. } => LANES,
        };
        let groups = Arc::new(Groups { core, known: Mutex::default(), limited: Mutex::default() });
        // One assessment per item and batch: the second one uses the result of the first.
        let item = |waiting: &Waiting| waiting.gathered.thng.as_ref().map(|thng| thng.id.to_string());
        let batcher = || {
            let work = groups.clone();
            Batcher::in_turn(
                (LANES, most_lanes),
                |waiting: &Waiting| waiting.caller.account,
                item,
                Box::new(move |all| {
                    let groups = work.clone();
                    Box::pin(async move { groups.write(all).await })
                }),
            )
        };
        Self { batcher: batcher(), limited: batcher(), groups }
    }

    /// Assesses and stores, batched with concurrent requests; returns after the commit.
    ///
    /// Requests by a connection that also subscribes, or by a reaction, are not batched, because their events carry
    /// their origin.
    pub(super) async fn submit(&self, waiting: Waiting) -> Answer {
        if waiting.caller.ctx.marks_events() {
            let mut answers = self.groups.write(vec![waiting]).await;
            return answers.pop().unwrap_or_else(|| Err(unanswered()));
        }
        let is_limited = self.groups.limited().contains(&waiting.caller.account);
        let batcher = if is_limited { &self.limited } else { &self.batcher };
        batcher.submit(waiting).await?
    }
}

fn unanswered() -> ServiceError {
    ServiceError::Internal("an assessment without an answer".to_owned())
}

/// The answers of a group on which the database failed.
fn fail(count: usize, error: &ServiceError) -> Vec<Answer> {
    let each = || match error {
        ServiceError::Store(error) => Err(of_all(error).into()),
        _ => Err(ServiceError::Internal("a group of assessments was not written".to_owned())),
    };
    iter::repeat_with(each).take(count).collect()
}

impl Groups {
    /// Writes assessments of any accounts; the answers are in the order of the requests.
    async fn write(&self, all: Vec<Waiting>) -> Vec<Answer> {
        let accounts: BTreeSet<AccountId> = all.iter().map(|waiting| waiting.caller.account).collect();
        let accounts: Vec<AccountId> = accounts.into_iter().collect();
        let limited = match self.list_limited(&accounts).await {
            Ok(limited) => limited,
            Err(error) => return fail(all.len(), &error.into()),
        };
        {
            let mut known = self.limited();
            known.retain(|account| !accounts.contains(account));
            known.extend(&limited);
        }
        // Accounts with a quota are written one by one: neither what is refused nor the lock on their use concerns others.
        let mut groups: BTreeMap<Option<AccountId>, Vec<(usize, Waiting)>> = BTreeMap::new();
        for (place, waiting) in all.into_iter().enumerate() {
            let account = Some(waiting.caller.account).filter(|account| limited.contains(account));
            groups.entry(account).or_default().push((place, waiting));
        }
        let mut answers = Vec::new();
        for group in groups.into_values() {
            let (places, waiting): (Vec<usize>, Vec<Waiting>) = group.into_iter().unzip();
            answers.extend(places.into_iter().zip(self.write_group(&waiting).await));
        }
        answers.sort_unstable_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn list_limited(&self, accounts: &[AccountId]) -> Result<Vec<AccountId>, StoreError> {
        quotas::list_limited(&mut self.core.db.read().await?, Quota::EventsPerDay, accounts).await
    }

    async fn write_group(&self, all: &[Waiting]) -> Vec<Answer> {
        match self.write_once(all).await {
            Ok(actions) => actions.into_iter().map(Ok).collect(),
            Err(error) if all.len() == 1 => vec![Err(error)],
            // Only an account with a quota is refused so, and it is alone in its group.
            Err(ServiceError::Refused { code: Code::DailyQuotaUsedUp, errors }) => {
                let refused = |_: &Waiting| {
                    Err(ServiceError::Refused { code: Code::DailyQuotaUsedUp, errors: errors.clone() })
                };
                let fits = match self.count_room(all).await {
                    Ok(room) => usize::try_from(room).unwrap_or(usize::MAX).min(all.len() - 1),
                    Err(error) => return fail(all.len(), &error.into()),
                };
                let (first, rest) = all.split_at(fits);
                let mut answers = Vec::new();
                if !first.is_empty() {
                    answers = Box::pin(self.write_group(first)).await;
                }
                answers.extend(rest.iter().map(refused));
                answers
            }
            // What one of them cannot be written with is no fault of the others.
            Err(
                ServiceError::Store(StoreError::Sql(_) | StoreError::Row(_) | StoreError::Unique(_))
                | ServiceError::Refused { .. },
            ) => {
                let mut answers = Vec::with_capacity(all.len());
                for waiting in all {
                    let alone = self.write_once(std::slice::from_ref(waiting)).await;
                    answers.push(alone.and_then(|mut actions| actions.pop().ok_or_else(unanswered)));
                }
                answers
            }
            Err(error) => {
                tracing::error!(%error, assessments = all.len(), "a group of assessments was not written");
                fail(all.len(), &error)
            }
        }
    }

    /// How many more events the account of a group may have today.
    async fn count_room(&self, all: &[Waiting]) -> Result<u64, StoreError> {
        let Some(first) = all.first() else { return Ok(0) };
        let mut conn = self.core.db.read().await?;
        let now = self.core.clock.now();
        let found = quotas::find(&mut conn, first.caller.account, Quota::EventsPerDay, now).await?;
        Ok(found.map_or(u64::MAX, |found| found.limit.saturating_sub(found.used)))
    }

    fn limited(&self) -> MutexGuard<'_, HashSet<AccountId>> {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, HashSet<(AccountId, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All or nothing; returns the actions as they are answered.
    async fn write_once(&self, all: &[Waiting]) -> Result<Vec<Action>, ServiceError> {
        let ctx = match all {
            [one] => one.caller.ctx.clone(),
            _ => Ctx::default(),
        };
        let mut tx = self.core.db.begin(&ctx).await?;
        let items: Vec<_> = all.iter().filter_map(Waiting::item).collect();
        let kept = item_standings::lock(&mut tx, &items).await?;
        // A client that saw an earlier result sends its request after this, and so gets a later time.
        let now = self.core.clock.now();
        let mut judged = Vec::with_capacity(all.len());
        let mut results: Vec<(NewAction, Option<Value>)> = Vec::with_capacity(all.len());
        let mut contexts = Vec::new();
        for waiting in all {
            let Waiting { request, gathered, .. } = waiting;
            let before = waiting.item().and_then(|item| kept.get(&item));
            // A person may have decided since the facts were read.
            let decided = before.map(Kept::decided).unwrap_or_default();
            let peak = before.and_then(|before| before.peak);
            let found = assess(&Facts { peak, decided: &decided, ..gathered.facts(request.kind) });
            let action = result(waiting, &found, now);
            let by = JudgedBy::new(judged_by(&gathered.settings, &gathered.markets));
            let whole = action.doc.as_object();
            let short = whole.and_then(|whole| packed::pack(whole, &by, gathered.scan.as_ref()));
            if short.is_some() {
                let context = (action.account, by.id.clone());
                if !self.known().contains(&context) && !contexts.contains(&context) {
                    assessment_contexts::keep(&mut tx, action.account, &by).await?;
                    contexts.push(context);
                }
            }
            results.push((action, short.map(Value::Object)));
            judged.push((before, found));
        }
        actions::insert_results(&mut tx, now, &results).await?;
        let entries = all.iter().zip(&results).filter_map(|(waiting, (action, _))| {
            let state = (None, Some(actions::state_of(action)));
            let of = (actions::KIND, action.id.to_string());
            Some(Entry::new(waiting.caller.ctx.principal()?, action.account, (of.0, &of.1), state))
        });
        tx.add_entries(entries);
        let mut is_followed = false;
        for (waiting, (before, found)) in all.iter().zip(&judged) {
            let Waiting { caller: actor, gathered, .. } = waiting;
            // One that is gone by now has no standing.
            let Some((thng, before)) = gathered.thng.as_ref().zip(*before) else { continue };
            let is_new = standing::advance(&mut tx, waiting, thng, found, before, now).await?;
            is_followed |=
                is_new && follow_thng(&mut tx, actor.account, thng.id, thng.product, true, now).await?;
        }
        tx.commit().await?;
        if !contexts.is_empty() {
            let mut known = self.known();
            if known.len() + contexts.len() > MAX_KNOWN {
                known.clear();
            }
            known.extend(contexts);
        }
        self.core.readers.wake_events();
        if is_followed {
            self.core.readers.wake_edges();
        }
        Ok(results.into_iter().map(|(action, _)| created(action, now)).collect())
    }
}

impl Waiting {
    fn item(&self) -> Option<(AccountId, ThngId)> {
        self.gathered.thng.as_ref().map(|thng| (self.caller.account, thng.id))
    }
}
