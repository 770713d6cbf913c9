//! From the log to the queues of webhooks: each event once into each queue that wants it.
//!
//! The place in the log moves in the transaction that fills the queues, and its row is held meanwhile: however
//! many processes share out, and whenever one dies, nothing is left out and nothing comes twice.

use std::collections::BTreeSet;

use crate::{
    domain::{
        event::{Event, Position, Recorded},
        grant::Limit,
    },
    error::ServiceError,
    publish::messages::{Message, expand},
    service::App,
    store::{
        StoreError, Tx, event_log,
        webhook_messages::{self, New},
        webhooks::{self, Receiver},
    },
};

/// The name of the place.
pub const PLACE: &str = "webhooks";

/// Rows of the log that one transaction looks at, and messages after which it ends.
const ROWS: u32 = 200;
const MESSAGES: usize = 1_000;

/// Shares out once; gives whether there may be more.
///
/// # Errors
/// The database failed; nothing was shared out.
pub async fn step(app: &App) -> Result<bool, ServiceError> {
    let mut tx = app.db.begin().await?;
    let Some(after) = event_log::hold_place(&mut tx, PLACE).await? else { return Ok(false) };
    let rows = event_log::list_after(&mut tx, after, None, ROWS).await?;
    let Some((last, _)) = rows.last() else { return Ok(false) };
    let (mut place, is_full) = (*last, rows.len() >= ROWS as usize);
    let accounts: BTreeSet<String> =
        rows.iter().filter_map(|(_, row)| row.as_ref()).map(|row| row.account.to_string()).collect();
    let accounts: Vec<String> = accounts.into_iter().collect();
    let receivers = webhooks::list_receivers(&mut tx, &accounts).await?;
    let (mut new, mut is_cut) = (Vec::new(), false);
    for (at, recorded) in rows {
        let Some(recorded) = recorded.filter(|recorded| !recorded.quiet.notifications) else { continue };
        let wanted: Vec<&Receiver> =
            receivers.iter().filter(|receiver| may_want(receiver, at, &recorded)).collect();
        if wanted.is_empty() {
            continue;
        }
        let is_begun = (at.xid, at.seq) == (after.xid, after.seq);
        let mut next = if is_begun { usize::try_from(after.item.saturating_add(1)).ok() } else { Some(0) };
        while let Some(from) = next {
            let (messages, more) = expand(&mut tx, at, &recorded, from).await?;
            for message in &messages {
                let body = message.body().to_string();
                let into = wanted.iter().filter(|receiver| wants(receiver, message));
                new.extend(into.map(|receiver| New {
                    webhook: receiver.seq,
                    account: recorded.account,
                    message_id: message.id.clone(),
                    kind: message.kind.clone(),
                    body: body.clone(),
                }));
            }
            next = more;
            if let Some(item) = more.filter(|_| new.len() >= MESSAGES) {
                place = Position { item: i64::try_from(item).unwrap_or(i64::MAX - 1) - 1, ..at };
                is_cut = true;
                break;
            }
        }
        if !is_cut && new.len() >= MESSAGES {
            (place, is_cut) = (at, true);
        }
        if is_cut {
            break;
        }
    }
    finish(app, tx, place, &new).await?;
    Ok(is_full || is_cut)
}

/// Moves the place to `head`, as nobody wants what lies before it; gives `false` when somebody else shares out.
///
/// The head must have been known before it was seen that there is no webhook: what was written before one was
/// made is not for it.
///
/// # Errors
/// The database failed.
pub async fn pass(app: &App, head: Position) -> Result<bool, StoreError> {
    let mut tx = app.db.begin().await?;
    if event_log::hold_place(&mut tx, PLACE).await?.is_none() {
        return Ok(false);
    }
    event_log::move_place(&mut tx, PLACE, head).await?;
    tx.commit().await?;
    Ok(true)
}

async fn finish(app: &App, mut tx: Tx, place: Position, new: &[New]) -> Result<(), StoreError> {
    webhook_messages::insert(&mut tx, app.clock.now(), new).await?;
    event_log::move_place(&mut tx, PLACE, place).await?;
    tx.commit().await?;
    if !new.is_empty() {
        app.webhooks.wake.notify_one();
    }
    Ok(())
}

fn may_want(receiver: &Receiver, at: Position, recorded: &Recorded) -> bool {
    let family = match &recorded.event {
        Event::Properties { .. } => "properties",
        Event::Action(_) | Event::Actions { .. } => "action",
        Event::Redirections { .. } => "redirection",
        Event::Job { .. } => "job",
    };
    receiver.account == recorded.account && at > receiver.since && receiver.types.admit_family(family)
}

fn wants(receiver: &Receiver, message: &Message) -> bool {
    let limit = match receiver.project.as_deref().map(str::parse) {
        None => Limit::Account,
        Some(Ok(project)) => Limit::Project(project),
        // What is no project has no events.
        Some(Err(_)) => return false,
    };
    receiver.types.admit(&message.kind)
        && message.is_admitted(&limit)
        && receiver.condition.as_ref().is_none_or(|condition| condition.holds(&message.facts))
}
