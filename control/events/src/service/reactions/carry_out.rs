//! Carries out queued reactions: each task once, in the transaction that removes it from the queue.
//!
//! A task that is refused, because its Thng is gone or its value is invalid, is rolled back alone and recorded with its
//! reaction. One on which the database fails rolls back the whole batch, and is retried alone from then on.

use std::{collections::BTreeMap, time::Duration};

use shared::id::AccountId;

use super::{actor_of, may_call};
use crate::{
    domain::{
        access::Actor,
        property::{NewPoint, Owner, PropertyKey},
        quota::Quota,
        reaction::ResolvedEffect,
        webhook::{Status, Webhook},
    },
    error::{CommonError, EventsError, ServiceError},
    service::{EventState, action_creation::alone, properties, webhooks::queue},
    store::{
        Ctx, Tx, documents, quotas,
        reaction_tasks::{self as tasks, Task},
        reactions::{self as table, CameOf},
        webhook_messages::New,
    },
};

/// Tasks of one transaction: about 20 ms of the one writer of SQLite.
const BATCH: u32 = 32;

/// Tries of a task that the database fails on, each after a longer pause: some minutes together.
const MAX_TRIES: i64 = 12;

/// Shortest and longest pause of an account whose task the database failed on.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Longest reason that is kept.
const MAX_REASON: usize = 1_000;

/// One batch of one account; returns whether there was something to do.
///
/// # Errors
/// The database failed; nothing was done.
pub async fn run_batch(state: &EventState) -> Result<bool, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let Some(account) = tasks::take_turn(&mut tx).await? else { return Ok(false) };
    let next = tasks::list_next(&mut tx, account, BATCH).await?;
    // A task that failed before runs alone, so that its failure does not affect others.
    let alone = next.iter().position(|task| task.attempts > 0);
    // Two tasks in one transaction could lock the use of the quota and then a Thng; a commissioning locks the Thng and then
    // the use: a deadlock.
    let is_limited = !quotas::list_limited(&mut tx, Quota::EventsPerDay, &[account]).await?.is_empty();
    let count = match alone {
        _ if is_limited => 1,
        Some(0) => 1,
        Some(before) => before,
        None => next.len(),
    };
    let next = &next[..count.min(next.len())];
    let mut came: BTreeMap<i64, CameOf> = BTreeMap::new();
    for task in next {
        match carry_out(state, &mut tx, account, task).await {
            Ok(()) if task.by.is_none() => {}
            Ok(()) => came.entry(task.reaction).or_default().done += 1,
            Err(ServiceError::Refused { errors, .. }) => {
                let came = came.entry(task.reaction).or_default();
                came.failed += 1;
                let reason: String = errors.join(" ").chars().take(MAX_REASON).collect();
                came.failure = Some((task.event.clone(), reason));
            }
            Err(error) => {
                drop(tx);
                return put_off(state, account, task, &error).await.map(|()| true);
            }
        }
    }
    let done: Vec<i64> = next.iter().map(|task| task.seq).collect();
    tasks::delete(&mut tx, &done).await?;
    let now = state.clock.now();
    for (reaction, came) in &came {
        table::note(&mut tx, *reaction, now.0, came).await?;
    }
    tx.commit().await?;
    state.readers.wake_events();
    state.webhooks.wake.notify_one();
    let metrics = &state.reactions.metrics;
    for task in next.iter().filter(|task| task.by.is_some()) {
        let delay = now.0.saturating_sub(task.created_at.0).max(0);
        metrics.delay_seconds.observe(delay as f64 / 1_000.0);
    }
    metrics.done.inc_by(came.values().map(|came| came.done.unsigned_abs()).sum());
    metrics.failed.inc_by(came.values().map(|came| came.failed.unsigned_abs()).sum());
    Ok(true)
}

async fn put_off(
    state: &EventState,
    account: AccountId,
    task: &Task,
    error: &ServiceError,
) -> Result<(), ServiceError> {
    tracing::warn!(%error, %account, attempts = task.attempts, "a reaction is retried later");
    state.reactions.metrics.put_off.inc();
    let doublings = u32::try_from(task.attempts.clamp(0, 10)).unwrap_or_default();
    let pause = (MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE);
    let mut tx = state.db.begin(&Ctx::default()).await?;
    tasks::put_off(&mut tx, account, task.seq, pause).await?;
    Ok(tx.commit().await?)
}

/// Executes one task; a refused task is rolled back.
async fn carry_out(
    state: &EventState,
    tx: &mut Tx,
    account: AccountId,
    task: &Task,
) -> Result<(), ServiceError> {
    // Its reaction is gone, or does nothing any more.
    let Some((reaction, project)) = task.by else { return Ok(()) };
    if task.attempts >= MAX_TRIES {
        return Err(EventsError::TooManyTries.into());
    }
    let Some(deed) = &task.deed else {
        return Err(ServiceError::Internal("a task of another release".to_owned()));
    };
    let actor = actor_of(account, reaction, project);
    tx.savepoint().await?;
    let shared = tx.set_ctx(Ctx::default().with_cause(task.cause.clone()));
    let done = carry_out_deed(state, tx, &actor, task, deed).await;
    tx.set_ctx(shared);
    match &done {
        Ok(()) => tx.release_savepoint().await?,
        Err(ServiceError::Refused { .. }) => {
            tx.rewind_to_savepoint().await?;
            tx.release_savepoint().await?;
        }
        // The whole batch is rolled back.
        Err(ServiceError::Store(_) | ServiceError::Full(_) | ServiceError::Internal(_)) => {}
    }
    done
}

async fn carry_out_deed(
    state: &EventState,
    tx: &mut Tx,
    actor: &Actor,
    task: &Task,
    deed: &ResolvedEffect,
) -> Result<(), ServiceError> {
    match deed {
        ResolvedEffect::Webhook { webhook, body } => {
            let found: Option<Webhook> = documents::find(tx, actor.account, *webhook).await?;
            let found = found.filter(|found| may_call(actor.project, found));
            let found = found.ok_or_else(|| ServiceError::not_found("webhook", webhook))?;
            if found.status == Status::Disabled {
                return Err(EventsError::WebhookDisabled(*webhook).into());
            }
            let message = New {
                webhook: found.stamp.seq,
                account: actor.account,
                message_id: format!("{}_{}", task.event, actor.id),
                kind: crate::domain::event_filter::REACTION.to_owned(),
                body: body.clone(),
            };
            if queue::put(state, tx, vec![message]).await? > 0 {
                return Err(EventsError::QueueFull(*webhook).into());
            }
            Ok(())
        }
        ResolvedEffect::ThngProperty { thng, key, value } => {
            let point =
                NewPoint { key: PropertyKey::stored(key.clone()), value: value.clone(), timestamp: None };
            properties::write_within(state, tx, actor, (Owner::Thng, thng), vec![point]).await
        }
        ResolvedEffect::ProductProperty { product, key, value } => {
            let point =
                NewPoint { key: PropertyKey::stored(key.clone()), value: value.clone(), timestamp: None };
            properties::write_within(state, tx, actor, (Owner::Product, product), vec![point]).await
        }
        ResolvedEffect::Action { action } => {
            let draft = ResolvedEffect::draft(action).map_err(CommonError::Faults)?;
            alone::create(&state.actions, tx, actor, &draft).await.map(|_| ())
        }
        ResolvedEffect::Impossible { fault } => Err(CommonError::Faults(vec![fault.clone()]).into()),
    }
}
