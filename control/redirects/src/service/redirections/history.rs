//! The changes of a redirection, from the audit trail.

use shared::id::AccountId;

use super::{DomainChoice, KIND, load::load_any, resolve_domain, write::audit_id};
use crate::{
    domain::{
        access::Actor,
        audit::Entry,
        grant::Limit,
        link_history::{LinkChange, Rewind},
        listing::ListRequest,
        page::Page,
        permission::{Subject::Redirections, Verb},
        redirection::Redirection,
    },
    error::{CommonError, RedirectsError, ServiceError},
    service::{Redirects, access::require, audit},
    store::{Conn, StoreError, audit_trail, listing::Selection},
};

/// Entries that are read at once on the way back: at most 3 MiB.
const STEP: i64 = 100;

/// Most changes that are taken back for one request: some 10 ms on either engine.
pub(super) const MAX_STEPS: usize = 1_000;

/// The changes of a redirection, also of a deleted one. What public keys do leaves no entry.
///
/// # Errors
/// 403 for a public key, 404 when it is absent or another account's.
pub async fn history(
    state: &Redirects,
    actor: &Actor,
    choice: DomainChoice,
    short_id: &str,
    request: &ListRequest,
) -> Result<Page<LinkChange>, ServiceError> {
    let grant = require(actor, Verb::Read, Redirections)?;
    refuse_public(actor)?;
    let mut conn = state.db.read().await?;
    let domain = resolve_domain(&mut conn, actor.account, &choice, None).await?;
    let (link, _) = load_any(&mut conn, actor.account, &grant, &domain, short_id).await?;
    drop(conn);
    audit::chain_if_possible(state).await;
    let mut conn = state.db.read().await?;
    let found = list(&mut conn, &link, request).await?;
    // As with the authors of a redirection: others need not know the operators of the account.
    let shows_actor = *grant.limit() == Limit::Account;
    let items = found.items.into_iter().map(|entry| LinkChange::of(entry, shows_actor)).collect();
    Ok(Page { items, next: found.next, total: found.total })
}

/// Refuses public keys. Anybody can have one: it would tell what a link was before it was corrected or deleted, and a user of an
/// application could make a link again that an operator has deleted.
pub(super) fn refuse_public(actor: &Actor) -> Result<(), CommonError> {
    if actor.kind.is_public() { Err(CommonError::KeyKind(actor.kind)) } else { Ok(()) }
}

async fn list(conn: &mut Conn, link: &Redirection, request: &ListRequest) -> Result<Page<Entry>, StoreError> {
    let id = audit_id(&link.redirect);
    let within = [("resource", KIND), ("resourceId", id.as_str())];
    let selection = Selection { account: link.account, limit: &Limit::Account, request, within: &within };
    audit_trail::list(conn, &selection).await
}

/// Goes back from what a redirection is now to just after the change `version`; gives the body that brings that state back.
///
/// # Errors
/// 404 for a version that is not in its history, 409 for a state that is not known any more.
pub(super) async fn state_after(
    conn: &mut Conn,
    account: AccountId,
    id: &str,
    mut rewind: Rewind,
    version: i64,
) -> Result<serde_json::Value, ServiceError> {
    let (mut before, mut steps) = (i64::MAX, 0);
    loop {
        let entries = audit_trail::list_of_resource(conn, account, (KIND, id), before, STEP).await?;
        for entry in &entries {
            if entry.seq == version {
                return Ok(rewind.after(entry).map_err(RedirectsError::NoState)?);
            }
            if entry.seq < version {
                return Err(ServiceError::not_found("version", version));
            }
            rewind = rewind.undo(entry);
        }
        steps += entries.len();
        match entries.last() {
            None => return Err(ServiceError::not_found("version", version)),
            Some(_) if steps >= MAX_STEPS => {
                return Err(RedirectsError::TooManySteps { most: MAX_STEPS }.into());
            }
            Some(last) => before = last.seq,
        }
    }
}
