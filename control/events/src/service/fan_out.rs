//! Fan-out: moves events from the log to the queues of webhooks and reactions, each event once into each queue.
//!
//! The cursor in the log moves in the transaction that fills the queues, and its row is locked meanwhile. However many
//! processes do this, and whenever one dies, no event is lost or queued twice. Rows of accounts that have many are put off in
//! the same transaction.

mod wanted;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use ::actions::service::lists;
use shared::id::{AccountId, ActionId};

use crate::{
    domain::{
        action::Action,
        event::{Event, Position},
        reaction::Reaction,
        webhook::Webhook,
    },
    error::ServiceError,
    messages::{expand, of_action},
    service::{EventState, reactions::MAX_TASKS, webhooks::queue},
    store::{
        Conn, Ctx, StoreError, Tx,
        deferred_events::{self, Deferred},
        event_log, followers,
        reaction_tasks::{self as tasks, New as Task},
    },
};

use self::wanted::{Shares, Subscribers, Waiting, Wanted};

/// The name of the place; it is older than reactions.
pub const PLACE: &str = "webhooks";

/// Rows of the log per transaction.
const ROWS: u32 = 200;

/// Messages per transaction, shared by the accounts that have new events. An event that nobody gets counts as one, because it
/// is read, too.
const MESSAGES: usize = 500;

/// The same for events that were put off. What is new becomes visible as settled when the transaction is over, so it is short.
const DEFERRED_MESSAGES: usize = 200;

/// Least share of an account in these.
const LEAST: usize = 50;

/// Accounts per transaction whose events were put off.
const ACCOUNTS: u32 = 4;

/// Time after which a transaction serves no further account, so that new events do not wait for it.
const TIME: Duration = Duration::from_millis(10);

/// Whether there is anybody at all that something may be kept for.
pub async fn has_any(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(followers::has_any::<Webhook>(conn).await? || followers::has_any::<Reaction>(conn).await?)
}

/// Shares out once; returns whether there may be more.
///
/// The cursor passes all rows that are read. What exceeds the share of an account is put off, and so is what follows it, so
/// that events of an account stay in order. Then accounts whose events were put off are served in turn, or in the next
/// transaction if this one has new messages. So an account that has few events does not wait for those of others.
///
/// # Errors
/// The database failed; nothing was queued.
pub async fn step(state: &EventState) -> Result<bool, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let Some(after) = event_log::hold_place(&mut tx, PLACE).await? else { return Ok(false) };
    let rows = event_log::list_after(&mut tx, after, None, ROWS).await?;
    let (place, is_full) = (rows.last().map(|(at, _)| *at), rows.len() >= ROWS as usize);
    let mut shares = Shares::default();
    let new = by_account(after, rows);
    if !new.is_empty() {
        queue_new(state, &mut tx, new, &mut shares).await?;
    }
    // While there is more to read, new events come first; those that were put off go on slowly.
    let (accounts, work) = if is_full { (1, LEAST) } else { (ACCOUNTS, DEFERRED_MESSAGES) };
    // Messages of new events do not wait for those that were put off, which go on in every second transaction at least.
    let waits = !shares.messages.is_empty() && !state.webhooks.waited.load(Relaxed);
    state.webhooks.waited.store(waits, Relaxed);
    let is_behind = if waits {
        deferred_events::has_any(&mut tx).await?
    } else {
        queue_deferred(state, &mut tx, (accounts, work), &mut shares).await?
    };
    if place.is_some() || is_behind {
        finish(state, tx, place, shares).await?;
    }
    Ok(is_full || is_behind)
}

/// Rows behind a place, account by account; the first may be one whose items were not all passed.
fn by_account(after: Position, rows: Vec<event_log::Row>) -> BTreeMap<AccountId, Vec<Waiting>> {
    let mut found: BTreeMap<AccountId, Vec<Waiting>> = BTreeMap::new();
    for (at, recorded) in rows {
        let is_begun = (at.xid, at.seq) == (after.xid, after.seq);
        let from = if is_begun { usize::try_from(after.item.saturating_add(1)).ok() } else { Some(0) };
        if let (Some(recorded), Some(from)) = (recorded, from) {
            found.entry(recorded.account).or_default().push(Waiting { at, from, recorded });
        }
    }
    found
}

/// Queues new events, each account up to its share, and puts the others off.
async fn queue_new(
    state: &EventState,
    tx: &mut Tx,
    mut new: BTreeMap<AccountId, Vec<Waiting>>,
    shares: &mut Shares,
) -> Result<(), StoreError> {
    let accounts: Vec<String> = new.keys().map(AccountId::to_string).collect();
    let subscribers = Subscribers::of(tx, &accounts).await?;
    new.retain(|_, rows| {
        rows.retain(|row| subscribers.may_want(row));
        !rows.is_empty()
    });
    let accounts: Vec<String> = new.keys().map(AccountId::to_string).collect();
    if accounts.is_empty() {
        return Ok(());
    }
    let behind = deferred_events::list_behind(tx, &accounts).await?;
    let share = (MESSAGES / accounts.len()).max(LEAST);
    let mut left = Vec::new();
    for (account, rows) in new {
        let share = if behind.contains(&account) || shares.work >= 2 * MESSAGES { 0 } else { share };
        let (done, from) = queue_rows(state, tx, (&rows, &subscribers), share, shares).await?;
        let rest = rows.iter().skip(done).enumerate();
        left.extend(rest.map(|(n, row)| (account, row.at, signed(if n == 0 { from } else { row.from }))));
    }
    shares.counts.deferred += left.len() as u64;
    deferred_events::insert(tx, &left).await
}

/// Queues so many events that were put off, of so many accounts in turn; returns whether there were any.
async fn queue_deferred(
    state: &EventState,
    tx: &mut Tx,
    (most, work): (u32, usize),
    shares: &mut Shares,
) -> Result<bool, StoreError> {
    let turn = &state.webhooks.turn;
    let last = turn.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut accounts = deferred_events::list_accounts(tx, &last, most).await?;
    if accounts.is_empty() && !last.is_empty() {
        accounts = deferred_events::list_accounts(tx, "", most).await?;
    }
    let share = (work / accounts.len().max(1)).max(LEAST);
    let begun = Instant::now();
    for account in &accounts {
        // A row that somebody wants is at least one message.
        let rows = deferred_events::list(tx, *account, u32::try_from(share).unwrap_or(u32::MAX)).await?;
        shares.counts.lost += rows.iter().filter(|row| row.is_gone).count() as u64;
        let (mut over, mut waiting) = (Vec::new(), Vec::new());
        for Deferred { at, from, recorded, .. } in rows {
            match recorded {
                Some(recorded) => {
                    waiting.push(Waiting { at, from: usize::try_from(from).unwrap_or_default(), recorded });
                }
                None => over.push(at.seq),
            }
        }
        let subscribers = Subscribers::of(tx, &[account.to_string()]).await?;
        let (done, from) = queue_rows(state, tx, (&waiting, &subscribers), share, shares).await?;
        over.extend(waiting.iter().take(done).map(|row| row.at.seq));
        shares.counts.resumed += over.len() as u64;
        deferred_events::delete(tx, &over).await?;
        if let Some(row) = waiting.get(done).filter(|row| row.from != from) {
            deferred_events::move_on(tx, row.at.seq, signed(from)).await?;
        }
        *turn.lock().unwrap_or_else(PoisonError::into_inner) = account.to_string();
        if begun.elapsed() >= TIME {
            break;
        }
    }
    Ok(!accounts.is_empty())
}

/// Queues rows of one account in order until its share is used up; returns how many are done, and the item with which the
/// next one goes on.
async fn queue_rows(
    state: &EventState,
    tx: &mut Tx,
    (rows, subscribers): (&[Waiting], &Subscribers),
    share: usize,
    shares: &mut Shares,
) -> Result<(usize, usize), StoreError> {
    let end = shares.work + share;
    let actions = read_actions(state, tx, (rows, subscribers), share).await?;
    for (index, row) in rows.iter().enumerate() {
        let Waiting { at, recorded, .. } = row;
        if shares.work >= end {
            return Ok((index, row.from));
        }
        let wanted = Wanted::of(*at, recorded, subscribers, &mut shares.counts);
        if wanted.is_empty() {
            continue;
        }
        if let Event::Action(event) = &recorded.event
            && let Some(found) = actions.get(&event.id)
        {
            match found {
                Some(action) => wanted.share(&of_action(*at, recorded, action), shares),
                // It was deleted meanwhile.
                None => shares.work += 1,
            }
            continue;
        }
        let mut next = Some(row.from);
        while let Some(from) = next {
            if from > row.from && shares.work >= end {
                return Ok((index, from));
            }
            let (messages, more) = expand(&*state.actions.observers, tx, *at, recorded, from).await?;
            shares.work += usize::from(messages.is_empty());
            for message in &messages {
                wanted.share(message, shares);
            }
            next = more;
        }
    }
    Ok((rows.len(), 0))
}

/// The actions of the rows that fit into a share, in one read; `None` for those that are no more.
async fn read_actions(
    state: &EventState,
    tx: &mut Tx,
    (rows, subscribers): (&[Waiting], &Subscribers),
    share: usize,
) -> Result<HashMap<ActionId, Option<Action>>, StoreError> {
    let Some(first) = rows.first().filter(|_| share > 0) else { return Ok(HashMap::new()) };
    let fit = share.div_ceil(subscribers.count(first).max(1));
    let ids = rows.iter().take(fit).filter_map(|row| match &row.recorded.event {
        Event::Action(event) if subscribers.may_want(row) => Some(event.id),
        _ => None,
    });
    let ids: Vec<ActionId> = ids.collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = lists::find_many(&*state.actions.observers, tx, first.recorded.account, &ids).await?;
    let absent = ids.into_iter().map(|id| (id, None));
    Ok(absent.chain(found.into_iter().map(|action| (action.id, Some(action)))).collect())
}

fn signed(item: usize) -> i64 {
    i64::try_from(item).unwrap_or(i64::MAX)
}

/// Moves the cursor to `head`, because there is no subscriber for what lies before it; returns `false` when another
/// process holds the cursor.
///
/// The head must have been read before it was seen that there are no subscribers: a subscriber that is created later
/// does not receive earlier events.
pub async fn pass(state: &EventState, head: Position) -> Result<bool, StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if event_log::hold_place(&mut tx, PLACE).await?.is_none() {
        return Ok(false);
    }
    event_log::move_place(&mut tx, PLACE, head).await?;
    tx.commit().await?;
    Ok(true)
}

async fn finish(
    state: &EventState,
    mut tx: Tx,
    place: Option<Position>,
    shares: Shares,
) -> Result<(), ServiceError> {
    let mut counts = shares.counts;
    let (has_messages, has_tasks) = (!shares.messages.is_empty(), !shares.tasks.is_empty());
    counts.dropped.0 = queue::put(state, &mut tx, shares.messages).await?;
    let mut of_accounts: BTreeMap<AccountId, Vec<Task>> = BTreeMap::new();
    for task in shares.tasks {
        of_accounts.entry(task.account).or_default().push(task);
    }
    for (account, tasks) in of_accounts {
        counts.dropped.1 += put_tasks(state, &mut tx, account, tasks).await?;
    }
    if let Some(place) = place {
        event_log::move_place(&mut tx, PLACE, place).await?;
    }
    tx.commit().await?;
    counts.add_to(state);
    if has_messages {
        state.webhooks.wake.notify_one();
    }
    if has_tasks {
        state.reactions.wake.notify_one();
    }
    Ok(())
}

/// Queues the tasks of an account's reactions, up to the capacity of the queue; returns how many were dropped.
async fn put_tasks(
    state: &EventState,
    tx: &mut Tx,
    account: AccountId,
    mut new: Vec<Task>,
) -> Result<u64, StoreError> {
    let wanted = new.len() as u64;
    let remaining = &state.reactions.remaining;
    let room = match remaining.take(account, wanted, Instant::now()) {
        Some(room) => room,
        None => {
            let waiting = tasks::count(tx, account, MAX_TASKS).await?;
            remaining.note(account, MAX_TASKS.saturating_sub(waiting), wanted, Instant::now())
        }
    };
    let fits = usize::try_from(room).unwrap_or(usize::MAX).min(new.len());
    let mut dropped: BTreeMap<i64, u64> = BTreeMap::new();
    for task in new.drain(fits..) {
        *dropped.entry(task.reaction).or_default() += 1;
    }
    tasks::insert(tx, state.clock.now(), &new).await?;
    for (reaction, count) in &dropped {
        tracing::warn!(%account, reaction, count, "the queue of reactions is full");
        followers::count_dropped::<Reaction>(tx, *reaction, *count).await?;
    }
    Ok(dropped.values().sum())
}
