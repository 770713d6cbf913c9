//! Changes: read, approved and cancelled by operators.

use kernel::{
    domain::{access::Actor, grant::Limit, limits::shorten, listing::ListRequest, page::Page, subject::Verb},
    service::access::Caller,
    store::{Conn, listing::Selection},
};
use serde_json::json;
use shared::id::JobId;
use tracing::instrument;

use super::{LinkChangeState, accept, links, require_operator, steps};
use crate::{
    domain::change::{Kind, LinkChange, Status},
    error::{LinkChangeError, ServiceError},
    store::{
        changes as table,
        conflicts::{self, Conflict},
    },
};

/// What the audit trail calls them.
pub(super) const KIND: &str = "linkChange";

/// Lists changes. Operators who are confined to projects see their own, made within these.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    state: &LinkChangeState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<LinkChange>, ServiceError> {
    let grant = require_operator(actor, Verb::List)?;
    let name = actor.own_name();
    let own = [(table::MADE_BY, name.as_str())];
    let within: &[(&'static str, &str)] = if *grant.limit() == Limit::Account { &[] } else { &own };
    let selection = Selection { account: actor.account, limit: &Limit::Account, request, within };
    let mut conn = state.db.read().await?;
    let mut page = table::list(&mut conn, &selection).await?;
    page.items.retain(|change| is_seen(actor, change));
    Ok(page)
}

/// Reads a change.
///
/// # Errors
/// There is none.
#[instrument(skip_all)]
pub async fn read(state: &LinkChangeState, actor: &Actor, id: &str) -> Result<LinkChange, ServiceError> {
    let _ = require_operator(actor, Verb::Read)?;
    let mut conn = state.db.read().await?;
    find_in(&mut conn, actor, id).await
}

/// The links that a change left as they are, oldest first or newest first.
///
/// # Errors
/// There is no such change.
#[instrument(skip_all)]
pub async fn list_conflicts(
    state: &LinkChangeState,
    actor: &Actor,
    id: &str,
    request: &ListRequest,
) -> Result<Page<Conflict>, ServiceError> {
    let _ = require_operator(actor, Verb::Read)?;
    let mut conn = state.db.read().await?;
    let change = find_in(&mut conn, actor, id).await?;
    let within = [(conflicts::OF, change.id.as_str())];
    let selection = Selection { account: actor.account, limit: &Limit::Account, request, within: &within };
    Ok(conflicts::list(&mut conn, &selection).await?)
}

/// Lets a change begin that waits for a second operator.
///
/// # Errors
/// It does not exist (404), waits for nobody (409), is the caller's own (403), or is not what it was asked for any more: another
/// number of links is found than was expected, or more than were counted, or a link of a strict undo was changed (409).
#[instrument(skip_all)]
pub async fn approve(state: &LinkChangeState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require_operator(caller, Verb::Update)?;
    let _place = state.capacity.write(caller)?;
    let mut conn = state.db.read().await?;
    let mut change = find_in(&mut conn, caller, id).await?;
    if change.status != Status::AwaitingApproval {
        return Err(LinkChangeError::NotWaiting { id: change.id, status: change.status.as_str() }.into());
    }
    if change.details.maker.id == caller.id {
        return Err(LinkChangeError::OwnChange(change.id).into());
    }
    match change.kind {
        Kind::Change => {
            let found = links::count(&mut conn, &change).await?;
            // Whoever approves has seen how many there were.
            let (expected, is_other) = match change.details.expect {
                Some(expected) => (expected, found != expected),
                None => (change.details.links, found > change.details.links),
            };
            if is_other {
                return Err(LinkChangeError::OtherCount { expected, found }.into());
            }
        }
        Kind::Undo => {}
    }
    drop(conn);
    let mut tx = state.db.begin(&caller.ctx).await?;
    if let (true, Some(of)) = (change.details.strict, change.details.of_seq) {
        accept::refuse_changed(&mut tx, of).await?;
    }
    change.details.approved_by = Some(caller.id.clone());
    change.stamp = change.stamp.touch(state.clock.now());
    if !table::approve(&mut tx, &change).await? {
        // Somebody else approved or cancelled it.
        return Err(LinkChangeError::NotWaiting { id: change.id, status: "not as it was read" }.into());
    }
    tx.note(caller.account, (KIND, change.id.as_str()), || {
        let before = json!({"status": Status::AwaitingApproval.as_str()});
        (Some(before), Some(json!({"status": Status::Waiting.as_str(), "approvedBy": caller.id})))
    });
    tx.commit().await?;
    state.wake.notify_one();
    Ok(())
}

/// Ends a change; what it has changed stays, and can be undone.
///
/// # Errors
/// It does not exist (404) or has ended (409).
#[instrument(skip_all)]
pub async fn cancel(state: &LinkChangeState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require_operator(caller, Verb::Update)?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    let change = find_in(&mut tx, caller, id).await?;
    let now = change.stamp.touch(state.clock.now()).updated_at;
    if !table::cancel(&mut tx, &change, now).await? {
        return Err(LinkChangeError::Ended(change.id).into());
    }
    let ended = LinkChange { status: Status::Cancelled, ..change.clone() };
    steps::record_end(&mut tx, &ended, now).await?;
    tx.note(caller.account, (KIND, change.id.as_str()), || {
        let status = |status: Status| Some(json!({"status": status.as_str()}));
        (status(change.status), status(Status::Cancelled))
    });
    tx.commit().await?;
    state.readers.wake_events();
    Ok(())
}

/// A change of the caller's account that it sees.
pub(super) async fn find_in(conn: &mut Conn, actor: &Actor, id: &str) -> Result<LinkChange, ServiceError> {
    let not_found = || ServiceError::not_found("change of links", shorten(id));
    let parsed: JobId = id.parse().map_err(|_| not_found())?;
    let found = table::find(conn, actor.account, parsed).await?;
    found.filter(|change| is_seen(actor, change)).ok_or_else(not_found)
}

/// Whether a change exists for a caller. Who is confined to projects sees its own, but for those that it asked for when it
/// reached more: they name links of others, and undoing them would move links out of its projects.
fn is_seen(actor: &Actor, change: &LinkChange) -> bool {
    let Some(reached) = actor.projects() else { return true };
    let projects = &change.details.maker.projects;
    change.made_by == actor.own_name()
        && !projects.is_empty()
        && projects.iter().all(|project| reached.contains(project))
}
