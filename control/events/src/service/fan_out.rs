//! Fan-out: moves events from the log to the queues of webhooks and reactions, each event once into each queue.
//!
//! The cursor in the log moves in the transaction that fills the queues, and its row is locked meanwhile. However many
//! processes do this, and whenever one dies, no event is lost or queued twice.

use std::{collections::BTreeMap, collections::BTreeSet, time::Instant};

use shared::id::AccountId;

use crate::{
    domain::{
        event::{Cause, Event, Position, Recorded},
        grant::Limit,
        reaction::Reaction,
        webhook::Webhook,
    },
    error::ServiceError,
    messages::{Message, expand},
    service::{EventState, reactions::MAX_TASKS, webhooks::queue},
    store::{
        Conn, Ctx, StoreError, Tx, event_log,
        followers::{self, Follower, Following},
        reaction_tasks::{self as tasks, New as Task},
        webhook_messages::New,
    },
};

/// The name of the place; it is older than reactions.
pub const PLACE: &str = "webhooks";

/// Rows of the log per transaction, and messages after which it ends.
const ROWS: u32 = 200;
const MESSAGES: usize = 1_000;

/// Whether there is anybody at all that something may be kept for.
pub async fn has_any(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(followers::has_any::<Webhook>(conn).await? || followers::has_any::<Reaction>(conn).await?)
}

/// Shares out once; returns whether there may be more.
///
/// # Errors
/// The database failed; nothing was queued.
pub async fn step(state: &EventState) -> Result<bool, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let Some(after) = event_log::hold_place(&mut tx, PLACE).await? else { return Ok(false) };
    let rows = event_log::list_after(&mut tx, after, None, ROWS).await?;
    let Some((last, _)) = rows.last() else { return Ok(false) };
    let (mut place, is_full) = (*last, rows.len() >= ROWS as usize);
    let accounts: BTreeSet<String> =
        rows.iter().filter_map(|(_, row)| row.as_ref()).map(|row| row.account.to_string()).collect();
    let accounts: Vec<String> = accounts.into_iter().collect();
    let receivers = followers::list::<Webhook>(&mut tx, &accounts).await?;
    let reacting = followers::list::<Reaction>(&mut tx, &accounts).await?;
    let (mut shares, mut is_cut) = (Shares::default(), false);
    for (at, recorded) in rows {
        let Some(recorded) = recorded else { continue };
        let wanted = Wanted::of(state, at, &recorded, &receivers, &reacting);
        if wanted.is_empty() {
            continue;
        }
        let is_begun = (at.xid, at.seq) == (after.xid, after.seq);
        let mut next = if is_begun { usize::try_from(after.item.saturating_add(1)).ok() } else { Some(0) };
        while let Some(from) = next {
            let (messages, more) = expand(&*state.actions.observers, &mut tx, at, &recorded, from).await?;
            for message in &messages {
                wanted.share(message, &mut shares);
            }
            next = more;
            if let Some(item) = more.filter(|_| shares.is_full()) {
                place = Position { item: i64::try_from(item).unwrap_or(i64::MAX - 1) - 1, ..at };
                is_cut = true;
                break;
            }
        }
        if !is_cut && shares.is_full() {
            (place, is_cut) = (at, true);
        }
        if is_cut {
            break;
        }
    }
    finish(state, tx, place, shares).await?;
    Ok(is_full || is_cut)
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

async fn finish(state: &EventState, mut tx: Tx, place: Position, shares: Shares) -> Result<(), ServiceError> {
    let (has_messages, has_tasks) = (!shares.messages.is_empty(), !shares.tasks.is_empty());
    queue::put(state, &mut tx, shares.messages).await?;
    let mut of_accounts: BTreeMap<AccountId, Vec<Task>> = BTreeMap::new();
    for task in shares.tasks {
        of_accounts.entry(task.account).or_default().push(task);
    }
    for (account, tasks) in of_accounts {
        put_tasks(state, &mut tx, account, tasks).await?;
    }
    event_log::move_place(&mut tx, PLACE, place).await?;
    tx.commit().await?;
    if has_messages {
        state.webhooks.wake.notify_one();
    }
    if has_tasks {
        state.reactions.wake.notify_one();
    }
    Ok(())
}

/// Queues the tasks of an account's reactions, up to the capacity of the queue.
async fn put_tasks(
    state: &EventState,
    tx: &mut Tx,
    account: AccountId,
    mut new: Vec<Task>,
) -> Result<(), StoreError> {
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
    for (reaction, count) in dropped {
        tracing::warn!(%account, reaction, count, "the queue of reactions is full");
        state.reactions.metrics.dropped.inc_by(count);
        followers::count_dropped::<Reaction>(tx, reaction, count).await?;
    }
    Ok(())
}

/// What goes into the queues.
#[derive(Default)]
struct Shares {
    messages: Vec<New>,
    tasks: Vec<Task>,
}

impl Shares {
    const fn is_full(&self) -> bool {
        self.messages.len() + self.tasks.len() >= MESSAGES
    }
}

/// Subscribers that may want the events of a row.
struct Wanted<'a> {
    recorded: &'a Recorded,
    receivers: Vec<&'a Following<Webhook>>,
    reacting: Vec<(&'a Following<Reaction>, Cause)>,
}

impl<'a> Wanted<'a> {
    fn of(
        state: &EventState,
        at: Position,
        recorded: &'a Recorded,
        receivers: &'a [Following<Webhook>],
        reacting: &'a [Following<Reaction>],
    ) -> Self {
        let receivers = receivers.iter().filter(|one| may_want(at, recorded, one));
        let reacting = reacting.iter().filter(|one| may_want(at, recorded, one));
        let caused = reacting.filter(|_| !recorded.quiet.reactions).filter_map(|one| {
            let cause = recorded.cause.by(one.id);
            if cause.is_none() {
                state.reactions.metrics.cut.inc();
            }
            Some((one, cause?))
        });
        Self {
            recorded,
            receivers: receivers.filter(|_| !recorded.quiet.notifications).collect(),
            reacting: caused.collect(),
        }
    }

    const fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.reacting.is_empty()
    }

    fn share(&self, message: &Message, shares: &mut Shares) {
        let wanting: Vec<_> = self.receivers.iter().filter(|receiver| wants(message, receiver)).collect();
        let reacting: Vec<_> =
            self.reacting.iter().filter(|(reaction, _)| wants(message, reaction)).collect();
        if wanting.is_empty() && reacting.is_empty() {
            return;
        }
        let event = message.body();
        let body = event.to_string();
        shares.messages.extend(wanting.into_iter().map(|receiver| New {
            webhook: receiver.seq,
            account: self.recorded.account,
            message_id: message.id.clone(),
            kind: message.kind.clone(),
            body: body.clone(),
        }));
        shares.tasks.extend(reacting.into_iter().map(|(reaction, cause)| Task {
            account: self.recorded.account,
            reaction: reaction.seq,
            event: message.id.clone(),
            cause: cause.clone(),
            deed: reaction.details.effect.about(reaction.id, &reaction.name, &message.facts, &event),
        }));
    }
}

const fn family(event: &Event) -> &'static str {
    match event {
        Event::Properties { .. } => "properties",
        Event::Action(_) | Event::Actions { .. } => "action",
        Event::Redirections { .. } => "redirection",
        Event::Job { .. } => "job",
        Event::PrintOrder { .. } => "printOrder",
        Event::ShortDomain(..) | Event::Certificate(..) => "shortDomain",
        Event::LinkChange { .. } => "linkChange",
    }
}

/// Whether a subscriber may want the events of a row, decided before it is expanded.
fn may_want<F: Follower>(at: Position, recorded: &Recorded, by: &Following<F>) -> bool {
    by.account == recorded.account && at > by.since && by.types.admit_family(family(&recorded.event))
}

fn wants<F: Follower>(message: &Message, by: &Following<F>) -> bool {
    let limit = match by.project.as_deref().map(str::parse) {
        None => Limit::Account,
        Some(Ok(project)) => Limit::Projects(vec![project]),
        // An invalid project id matches no events.
        Some(Err(_)) => return false,
    };
    by.types.admit(&message.kind)
        && message.is_admitted(&limit)
        && by.condition.as_ref().is_none_or(|condition| condition.holds(&message.facts))
}
