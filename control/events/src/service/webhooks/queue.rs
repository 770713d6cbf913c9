//! Puts events into the queues of webhooks, up to their capacity.

use std::{collections::BTreeMap, time::Instant};

use crate::{
    domain::webhook::Webhook,
    service::EventState,
    store::{
        StoreError, Tx, followers,
        webhook_messages::{self as messages, New},
    },
};

/// Most waiting messages of one webhook: what a job of 100,000 actions causes. Later ones are dropped, so that a
/// receiver that recovers gets everything from where it was.
const MAX_WAITING: u64 = 100_000;

/// Puts messages into the queues of their webhooks; returns how many were dropped because a queue was full, for
/// the counter once it is committed.
pub async fn put(state: &EventState, tx: &mut Tx, new: Vec<New>) -> Result<u64, StoreError> {
    let mut wanted: BTreeMap<i64, u64> = BTreeMap::new();
    for message in &new {
        *wanted.entry(message.webhook).or_default() += 1;
    }
    let mut remaining: BTreeMap<i64, u64> = BTreeMap::new();
    for (webhook, wanted) in &wanted {
        remaining.insert(*webhook, room(state, tx, *webhook, *wanted).await?);
    }
    let mut dropped: BTreeMap<i64, u64> = BTreeMap::new();
    let mut fits = |message: &New| {
        let room = remaining.entry(message.webhook).or_default();
        if *room == 0 {
            *dropped.entry(message.webhook).or_default() += 1;
            return false;
        }
        *room -= 1;
        true
    };
    let new: Vec<New> = new.into_iter().filter(|message| fits(message)).collect();
    messages::insert(tx, state.clock.now(), &new).await?;
    for (webhook, count) in &dropped {
        tracing::warn!(webhook, count, "the queue of a webhook is full");
        followers::count_dropped::<Webhook>(tx, *webhook, *count).await?;
    }
    Ok(dropped.values().sum())
}

async fn room(state: &EventState, tx: &mut Tx, webhook: i64, wanted: u64) -> Result<u64, StoreError> {
    let remaining = &state.webhooks.remaining;
    if let Some(room) = remaining.take(webhook, wanted, Instant::now()) {
        return Ok(room);
    }
    let waiting = messages::count_waiting(tx, webhook, MAX_WAITING).await?;
    Ok(remaining.note(webhook, MAX_WAITING.saturating_sub(waiting), wanted, Instant::now()))
}
