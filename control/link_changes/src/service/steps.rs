//! The steps of a change: each is one transaction of the writer that changes links and moves the job on.

use std::{sync::Arc, time::Instant};

pub use background::worker::Stepped;
use futures_util::FutureExt;
use kernel::{
    domain::{access::Actor, event::Event, page::Position},
    store::{Ctx, StoreError, Tx, audit::Principal, events},
};
use redirects::{
    domain::{link_patch::LinkPatch, redirection::Redirection},
    service::redirections::{self, Outcome, PlannedChange},
    store::redirection_lists,
    writer::Lane,
};
use shared::time::UnixMillis;

use super::{
    LinkChangeState,
    links::{self, Part},
};
use crate::{
    domain::change::{Kind, LinkChange, Status},
    error::{LinkChangeError, ServiceError},
    store::{
        change_leases::{self as leases, Claimed},
        conflicts,
        former::{self, FormerLink},
    },
};

/// Links among which a step looks for those of a change, once looking among all of them failed: with a filter that no index serves,
/// and few links that meet it, this may take longer than a statement may. Half as many after each further failure. All later steps
/// look among so many, so that a change reads each link once.
const WINDOW: u32 = 10_000;
const MIN_WINDOW: u32 = 20;

/// What follows the links of a step.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// More links that meet the conditions.
    More,
    /// No others that were created until then; later ones were not looked at.
    Behind(UnixMillis),
    /// No others.
    Nothing,
}

/// Does the next step of a change.
///
/// # Errors
/// The store failed: the step is done again. A refusal is a fault of the change, which cannot be carried out.
pub async fn step(state: &Arc<LinkChangeState>, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let after = match claimed.item.kind {
        Kind::Change => change(state, claimed).await?,
        Kind::Undo => undo(state, claimed).await?,
    };
    let Some(after) = after else { return Ok(Stepped::Lost) };
    claimed.item = after;
    Ok(if claimed.item.status.is_terminal() { Stepped::Settled } else { Stepped::Moved })
}

/// Ends a change that cannot be carried out. What it has changed stays, and can be undone.
pub async fn fail(
    state: &LinkChangeState,
    claimed: &mut Claimed,
    message: String,
) -> Result<Stepped, ServiceError> {
    let change = claimed.item.clone().ended(Status::Failed, Some(message), state.clock.now());
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if !leases::save(&mut tx, claimed, &change, true).await? {
        return Ok(Stepped::Lost);
    }
    record_end(&mut tx, &change, change.stamp.updated_at).await?;
    tx.commit().await?;
    state.readers.wake_events();
    claimed.item = change;
    Ok(Stepped::Settled)
}

/// Changes the next links; `None`, and nothing is changed, when another worker holds the change.
async fn change(state: &Arc<LinkChangeState>, claimed: &Claimed) -> Result<Option<LinkChange>, ServiceError> {
    let now = &claimed.item;
    let selection = links::stored(now)?;
    let patch = now.details.patch.as_ref().map(LinkPatch::parse);
    let Some(Ok(patch)) = patch else { return Err(LinkChangeError::Unreadable.into()) };
    let actor = now.details.maker.actor(now.account);
    let count = size(state);
    let after = now.details.after.map(|(at, seq)| Position { at: UnixMillis(at), seq });
    let mut conn = state.db.read().await?;
    let window = window(claimed.failures, now.details.in_parts);
    let end = match window {
        Some(links) => redirection_lists::created_behind(&mut conn, now.account, after, links).await?,
        None => None,
    };
    let end = end.filter(|end| *end < now.stamp.created_at);
    let part = Part { asked: end.unwrap_or(now.stamp.created_at), after, count, counted: false };
    let page = links::read(&mut conn, &actor, &selection, part).await?;
    drop(conn);
    let rest = match (page.next, end) {
        (Some(_), _) => Rest::More,
        (None, Some(end)) => Rest::Behind(end),
        (None, None) => Rest::Nothing,
    };
    let (at, links) = (state.clock.now(), page.items);
    state
        .redirects
        .writer
        .submit(&ctx_of(now, at), (now.account, lane(now)), {
            let (state, mut claimed) = (Arc::clone(state), claimed.clone());
            claimed.item.details.in_parts = window.is_some();
            move |tx| {
                async move {
                    let begun = Instant::now();
                    let after = change_in(tx, &claimed, &actor, &patch, (links, rest), at).await?;
                    measure(&state, &claimed, after.as_ref(), begun);
                    Ok(after)
                }
                .boxed()
            }
        })
        .await
}

/// One step of a change within a transaction of the writer.
async fn change_in(
    tx: &mut Tx,
    claimed: &Claimed,
    actor: &Actor,
    patch: &LinkPatch,
    (links, rest): (Vec<Redirection>, Rest),
    at: UnixMillis,
) -> Result<Option<LinkChange>, ServiceError> {
    if !leases::hold(tx, claimed).await? {
        return Ok(None);
    }
    let mut next = claimed.item.clone();
    let mut current = redirections::reload(tx, next.account, links.iter()).await?;
    let (mut same, mut is_cut) = (Vec::with_capacity(links.len()), false);
    for link in links {
        let found = current.remove(&link.seq);
        if found.as_ref().is_some_and(|found| found.rev != link.rev) {
            // Somebody changed it since it was read: whether it meets the conditions is looked at again.
            is_cut = true;
            break;
        }
        next.details.after = Some((link.redirect.created_at.0, link.seq));
        // One that is missing was deleted.
        same.extend(found);
    }
    let (_, planned) = redirections::plan_patch(tx, actor, same, patch, at).await?;
    let written = write(tx, &mut next, planned, at).await?;
    former::insert(tx, next.stamp.seq, &written).await?;
    let is_over = match rest {
        Rest::More => false,
        Rest::Behind(_) | Rest::Nothing if is_cut => false,
        Rest::Behind(end) => {
            // Whatever the filter, all links up to this time were looked at.
            next.details.after = Some((end.0, i64::MAX));
            false
        }
        Rest::Nothing => true,
    };
    finish(tx, claimed, next, is_over, at).await
}

/// Restores the next links; `None`, and nothing is changed, when another worker holds the undo.
async fn undo(state: &Arc<LinkChangeState>, claimed: &Claimed) -> Result<Option<LinkChange>, ServiceError> {
    let now = &claimed.item;
    let Some(of) = now.details.of_seq else { return Err(LinkChangeError::Unreadable.into()) };
    let (actor, count, at) = (now.details.maker.actor(now.account), size(state), state.clock.now());
    state
        .redirects
        .writer
        .submit(&ctx_of(now, at), (now.account, lane(now)), {
            let (state, claimed) = (Arc::clone(state), claimed.clone());
            move |tx| {
                async move {
                    let begun = Instant::now();
                    let after = undo_in(tx, &claimed, &actor, (of, count), at).await?;
                    measure(&state, &claimed, after.as_ref(), begun);
                    Ok(after)
                }
                .boxed()
            }
        })
        .await
}

/// One step of an undo within a transaction of the writer.
async fn undo_in(
    tx: &mut Tx,
    claimed: &Claimed,
    actor: &Actor,
    (of, count): (i64, u32),
    at: UnixMillis,
) -> Result<Option<LinkChange>, ServiceError> {
    if !leases::hold(tx, claimed).await? {
        return Ok(None);
    }
    let mut next = claimed.item.clone();
    let after = next.details.after.map_or(0, |(_, link)| link);
    let formers = former::list(tx, of, after, count).await?;
    let is_last = formers.len() < count as usize;
    if let Some(last) = formers.last() {
        next.details.after = Some((0, last.link.seq));
    }
    let wanted = formers.iter().map(|former| (former.link.clone(), former.rev)).collect();
    let planned = redirections::plan_restore(tx, actor, wanted).await?;
    let written = write(tx, &mut next, planned, at).await?;
    let restored: Vec<i64> = written.iter().map(|(_, link)| link.seq).collect();
    former::delete(tx, of, &restored).await?;
    former::follow(tx, &followed(&formers, &written)).await?;
    finish(tx, claimed, next, is_last, at).await
}

/// Restored links: their places, their revisions before the change that was undone, and those of now.
fn followed(formers: &[FormerLink], written: &[(Redirection, Redirection)]) -> Vec<(i64, u64, u64)> {
    let before = |link: i64| formers.iter().find(|former| former.link.seq == link);
    written.iter().filter_map(|(_, link)| Some((link.seq, before(link.seq)?.rev_before, link.rev))).collect()
}

/// Writes what becomes of links, notes what does not, and counts both; gives the written links before and after.
async fn write(
    tx: &mut Tx,
    next: &mut LinkChange,
    planned: Vec<PlannedChange>,
    at: UnixMillis,
) -> Result<Vec<(Redirection, Redirection)>, ServiceError> {
    let (mut changed, mut refused) = (Vec::with_capacity(planned.len()), Vec::new());
    next.details.done += planned.len() as u64;
    for PlannedChange { before, outcome } in planned {
        match outcome {
            Outcome::Changed(after) => changed.push((before, *after)),
            Outcome::Same => next.details.unchanged += 1,
            Outcome::Refused(reason) => {
                let redirect = &before.redirect;
                refused.push((redirect.domain.to_string(), redirect.short_id.to_string(), reason));
            }
        }
    }
    next.details.changed += changed.len() as u64;
    let listed_before = next.listed();
    next.details.conflicts += refused.len() as u64;
    refused.truncate(usize::try_from(next.listed() - listed_before).unwrap_or(usize::MAX));
    let written = redirections::write_planned(tx, next.account, changed, at).await?;
    conflicts::insert(tx, next.account, next.id, &refused, at).await?;
    Ok(written)
}

/// Stores a change after a step; `None`, and the step is to be given up, when another worker holds it.
async fn finish(
    tx: &mut Tx,
    claimed: &Claimed,
    next: LinkChange,
    is_over: bool,
    at: UnixMillis,
) -> Result<Option<LinkChange>, ServiceError> {
    let next = if is_over { next.ended(Status::Complete, None, at) } else { next.running(at) };
    if !leases::save(tx, claimed, &next, is_over).await? {
        // The row has been held since the begin of the step.
        return Err(ServiceError::Internal("a change of links was lost within a step".to_owned()));
    }
    if is_over {
        record_end(tx, &next, at).await?;
    }
    Ok(Some(next))
}

/// Records the end of a change as an event.
pub(super) async fn record_end(tx: &mut Tx, change: &LinkChange, at: UnixMillis) -> Result<(), StoreError> {
    let event = Event::LinkChange { id: change.id, status: change.status.as_str().to_owned() };
    events::record(tx, at, &[(change.account, event)]).await
}

/// Records what a step cost within the transaction of the writer: what it read before, and how long it waited for its turn, hold
/// up nobody.
fn measure(state: &LinkChangeState, claimed: &Claimed, after: Option<&LinkChange>, begun: Instant) {
    let Some(after) = after else { return };
    let links = after.details.done.saturating_sub(claimed.item.details.done);
    state.batch_size.took(usize::try_from(links).unwrap_or(usize::MAX), begun.elapsed());
}

/// Among how many links a step looks; `None` is all of them. The claim itself is the first failure; `in_parts`: looking among all
/// was another one.
fn window(failures: u64, in_parts: bool) -> Option<u32> {
    let failures = failures.saturating_add(u64::from(in_parts));
    let halvings = u32::try_from(failures.checked_sub(2)?).unwrap_or(u32::MAX).min(16);
    Some((WINDOW >> halvings).max(MIN_WINDOW))
}

/// Links of the next step: fewer beside urgent changes.
fn size(state: &LinkChangeState) -> u32 {
    state.batch_size.set_short(state.redirects.writer.batch_size().is_short());
    u32::try_from(state.batch_size.step()).unwrap_or(u32::MAX)
}

/// A change that has begun waits for room.
fn lane(change: &LinkChange) -> Lane {
    if change.details.done == 0 { Lane::Bulk } else { Lane::Begun }
}

/// The steps are noted in the audit trail as those of whoever asked, by the request that asked.
fn ctx_of(change: &LinkChange, at: UnixMillis) -> Ctx {
    let maker = &change.details.maker;
    Ctx::default().with_principal(Principal {
        at,
        kind: maker.actor_kind().as_str(),
        id: Some(maker.id.clone()),
        key: maker.key.clone(),
        network: maker.network.clone(),
        request: maker.request.clone(),
        operation: maker.operation.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_looks_among_all_links_until_that_failed() {
        for (failures, in_parts, links) in [
            (1, false, None),
            (2, false, Some(WINDOW)),
            (1, true, Some(WINDOW)),
            (2, true, Some(WINDOW / 2)),
            (u64::MAX, true, Some(MIN_WINDOW)),
        ] {
            assert_eq!(window(failures, in_parts), links, "{failures}, {in_parts}");
        }
    }
}
