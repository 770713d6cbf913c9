//! Creates many redirections from one request, in steps, between which urgent changes can run.

use std::{sync::Arc, time::Instant};

use futures_util::FutureExt;
use kernel::batch_size::AdaptiveBatchSize;
use serde::{Deserialize, Serialize};
use shared::{id::AccountId, redirect::Redirect, short_id::ShortId, wire::stream::Rev};

use super::{
    DomainChoice, Written, insert,
    plan::{Planned, plan},
    resolve_in,
};
use crate::{
    domain::{
        access::Actor,
        grant::Grant,
        permission::{Subject::Redirections, Verb},
        quota::{Exceeded, Quota},
        redirection::{Draft, MAX_BULK},
    },
    error::{DomainError, RedirectsError, ServiceError},
    service::{
        Redirects,
        access::Caller,
        access::require,
        idempotency::{CallersKey, IdempotencyKey, keep, keep_on, replay},
        scopes::project_in_reach,
        user_links,
        user_rules::UserRules,
    },
    store::{Tx, quotas},
    writer::Lane,
};
use shared::time::UnixMillis;

/// What became of one item of a bulk create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", untagged)]
pub enum ItemResult {
    /// The redirection was created.
    #[serde(rename_all = "camelCase")]
    Created {
        /// 201.
        status: u16,
        /// Its short id.
        short_id: ShortId,
        /// Its short URL.
        short_url: String,
    },
    /// The item was refused; the others are not touched by it.
    Refused {
        /// 400, 403 or 409.
        status: u16,
        /// Every fault found.
        errors: Vec<String>,
        /// A number of the table of codes.
        code: u32,
    },
}

impl ItemResult {
    fn refused(error: &RedirectsError) -> Self {
        let code = error.code();
        Self::Refused { status: code.status(), errors: error.faults(), code: code as u32 }
    }
}

// Spec gap: no operation creates many at once; an array as body does.
/// Creates up to 1,000 redirections on one domain; each item succeeds or fails by itself.
///
/// `items` are the drafts, or the faults found while reading them. The results are in their order. If a request names
/// a `project`, all belong to it.
///
/// They are written in steps of some [`STEP_TIME`](kernel::batch_size::STEP_TIME). A failure between two steps
/// keeps what was written before; the same request with its idempotency key continues from there.
///
/// # Errors
/// 400 for a domain that is not the account's or a wrong count, 409 for a foreign idempotency key.
pub async fn create_many(
    state: &Redirects,
    caller: &Caller,
    items: Vec<Result<Draft, Vec<String>>>,
    choice: DomainChoice,
    project: Option<&str>,
    idempotency: Option<IdempotencyKey>,
) -> Result<Written<Vec<ItemResult>>, ServiceError> {
    let grant = require(caller, Verb::Create, Redirections)?;
    let count = items.len();
    if count == 0 || count > MAX_BULK {
        return Err(RedirectsError::ItemCount { most: MAX_BULK, found: count }.into());
    }
    let _place = state.capacity.import(caller)?;
    let mut candidates = Vec::with_capacity(count);
    for _ in 0..count {
        candidates.push(state.random16()?);
    }
    let import = Arc::new(Import {
        actor: caller.actor.clone(),
        grant,
        items,
        candidates,
        choice,
        project: project.map(str::to_owned),
        idempotency: idempotency.map(|key| key.of(caller)),
        at: state.clock.now(),
        batch_size: state.writer.batch_size().clone(),
    });
    let mut done = Done::default();
    while done.results.len() < count {
        let import = import.clone();
        let lane = if done.results.is_empty() { Lane::Bulk } else { Lane::Begun };
        done = state
            .writer
            .submit(&caller.ctx, (caller.account, lane), move |tx| {
                async move { import.step(tx, done).await }.boxed()
            })
            .await?;
    }
    Ok(Written { rev: done.rev, value: done.results })
}

/// Creates redirections of one domain within a transaction of the writer: all of them, or none. They are in the order of the
/// drafts.
///
/// # Errors
/// One is refused, or the database failed: the transaction is to be given up.
pub async fn create_in(
    tx: &mut Tx,
    actor: &Actor,
    drafts: Vec<Draft>,
    candidates: Vec<[u8; 16]>,
    at: UnixMillis,
) -> Result<Vec<Redirect>, ServiceError> {
    let grant = require(actor, Verb::Create, Redirections)?;
    let choice =
        DomainChoice { named: drafts.first().and_then(|draft| draft.short_domain.clone()), host: None };
    let domain = resolve_in(tx, actor.account, &choice, None).await?;
    let items = drafts.into_iter().map(Ok).collect();
    let planned = plan(tx, actor, &grant, &domain, items, candidates, at).await?;
    let ready = planned.into_iter().collect::<Result<Vec<_>, _>>()?;
    quotas::charge(tx, actor.account, Quota::Links, ready.len() as u64, at).await?;
    insert(tx, actor.account, &domain, &ready.iter().collect::<Vec<_>>(), at).await?;
    Ok(ready.into_iter().map(|item| item.redirect).collect())
}

/// Refuses the last of those that are ready, where the account may not have all of them, and counts the others.
async fn refuse_above_quota(
    tx: &mut Tx,
    account: AccountId,
    planned: &mut Planned,
    at: UnixMillis,
) -> Result<(), ServiceError> {
    let wanted = planned.iter().filter(|item| item.is_ok()).count() as u64;
    let (granted, exceeded) = quotas::charge_some(tx, account, Quota::Links, wanted, at).await?;
    let Some(exceeded) = exceeded.map(|exceeded| Exceeded { wanted: 1, ..exceeded }) else { return Ok(()) };
    let granted = usize::try_from(granted).unwrap_or(usize::MAX);
    for item in planned.iter_mut().filter(|item| item.is_ok()).skip(granted) {
        *item = Err(exceeded.into());
    }
    Ok(())
}

/// What of an import is written.
#[derive(Debug, Default)]
struct Done {
    /// The newest revision of it.
    rev: Rev,
    /// Of the first items.
    results: Vec<ItemResult>,
}

struct Import {
    actor: Actor,
    grant: Grant,
    items: Vec<Result<Draft, Vec<String>>>,
    candidates: Vec<[u8; 16]>,
    choice: DomainChoice,
    project: Option<String>,
    idempotency: Option<CallersKey>,
    at: UnixMillis,
    batch_size: Arc<AdaptiveBatchSize>,
}

impl Import {
    /// Writes the items that follow those that are `done`, as many as fit into the time of a step.
    async fn step(&self, tx: &mut Tx, mut done: Done) -> Result<Done, ServiceError> {
        let (account, at, key) = (self.actor.account, self.at, self.idempotency.as_ref());
        // Progress of this request, or of an interrupted one with the same key.
        let kept = replay::<(Rev, Vec<ItemResult>)>(tx, account, key, at).await?;
        let is_begun = kept.is_some();
        if let Some((rev, results)) = kept {
            done = Done { rev, results };
        }
        let from = done.results.len();
        if from >= self.items.len() {
            return Ok(done);
        }
        if let Some(rules) = UserRules::load(tx, &self.actor).await? {
            let drafts = self.items.iter().enumerate();
            let drafts =
                drafts.filter_map(|(index, item)| Some((format!("[{index}]."), item.as_ref().ok()?)));
            user_links::check_drafts(&rules, drafts)?;
        }
        let begun = Instant::now();
        let to = self.items.len().min(from + self.batch_size.step());
        let domain = resolve_in(tx, account, &self.choice, None).await?;
        let mut items = self.items[from..to].to_vec();
        if let Some(text) = &self.project {
            let project = project_in_reach(tx, &self.actor, &self.grant, text).await?;
            for draft in items.iter_mut().flatten() {
                draft.writable.scopes.add_project(project);
            }
        }
        let candidates = self.candidates[from..to].to_vec();
        let mut planned = plan(tx, &self.actor, &self.grant, &domain, items, candidates, at).await?;
        refuse_above_quota(tx, account, &mut planned, at).await?;
        let ready: Vec<_> = planned.iter().filter_map(|item| item.as_ref().ok()).collect();
        (done.rev, _) = insert(tx, account, &domain, &ready, at).await?;
        done.results.extend(planned.into_iter().map(|item| match item {
            Ok(ready) => ItemResult::Created {
                status: 201,
                short_url: domain.short_url(&ready.redirect.short_id),
                short_id: ready.redirect.short_id,
            },
            Err(error) => ItemResult::refused(&error),
        }));
        let kept = (done.rev, &done.results);
        if is_begun {
            keep_on(tx, account, key, &kept).await?;
        } else {
            keep(tx, account, key, &kept, at).await?;
        }
        self.batch_size.took(to - from, begun.elapsed());
        Ok(done)
    }
}
