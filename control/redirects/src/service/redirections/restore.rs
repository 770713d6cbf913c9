//! Brings an earlier state of a redirection back, also of a deleted one.

use futures_util::FutureExt;
use serde_json::Value;
use shared::{problem::Code, wire::stream::Rev};
use tracing::instrument;

use super::{
    DomainChoice, Expected, KIND, LeftOut, Written, all_domains, apply, check_changed, check_take_downs,
    check_targets, hide_authors, history,
    load::{load_any, refuse_digital_link},
    plan::{key_of, owners},
    replace_as, resolve_domain, resolve_in,
    write::{audit_id, gone, state_of, write_as},
};
use crate::{
    domain::{
        event::RedirectionChange,
        grant::{Grant, Limit},
        link_history::Rewind,
        permission::{Subject::Redirections, Verb},
        quota::Quota,
        redirection::{Redirection, Writable},
    },
    error::{RedirectsError, ServiceError},
    service::{
        Redirects,
        access::{Caller, require},
        audit,
    },
    store::{Tx, domain_files, quotas, redirections as table, scopes, tenants},
    writer::Lane,
};

/// Attempts where somebody else changes the redirection between reading and writing.
const ATTEMPTS: usize = 3;

/// Brings back the state of a redirection after the change `version`, as one change. A deleted one is made again under its
/// short id, which nobody else gets.
///
/// # Errors
/// 403 for a public key, 404 for an absent redirection or version, 412 for one that is not as `expected`, 409 for a state that
/// cannot come back, and what a change of the redirection to this state is refused for.
#[instrument(skip_all)]
pub async fn restore(
    state: &Redirects,
    caller: &Caller,
    (choice, short_id): (DomainChoice, &str),
    version: i64,
    expected: &Expected,
) -> Result<Written<Redirection>, ServiceError> {
    let grant = require(caller, Verb::Read, Redirections)?;
    let _ = require(caller, Verb::Update, Redirections)?;
    history::refuse_public(caller)?;
    let mut attempt = 1;
    loop {
        let seen = see(state, caller, &grant, (&choice, short_id), version).await?;
        expected.check(std::slice::from_ref(&seen.link))?;
        refuse_digital_link(std::slice::from_ref(&seen.link))?;
        let done = if seen.is_deleted {
            revive(state, caller, (choice.clone(), short_id.to_owned()), seen).await
        } else {
            let expected = Expected(Some(vec![seen.link.rev]));
            let which = (choice.clone(), vec![short_id.to_owned()]);
            let done = replace_as(state, caller, which, expected, (seen.writable, LeftOut::Goes)).await;
            done.and_then(|done| {
                let value = done.value.into_iter().next().ok_or_else(gone)?;
                Ok(Written { value, rev: done.rev })
            })
        };
        match done {
            Err(error) if attempt < ATTEMPTS && is_overtaken(&error) => attempt += 1,
            done => return done,
        }
    }
}

/// A redirection as it was read, and the state that it shall get.
struct Seen {
    link: Redirection,
    is_deleted: bool,
    writable: Writable,
}

/// Reads a redirection, and goes back through its history.
///
/// The link is read first: an entry that comes between makes the write fail, which is for this revision alone. In the
/// transaction of the write the entries of those before it are not stored yet.
async fn see(
    state: &Redirects,
    caller: &Caller,
    grant: &Grant,
    (choice, short_id): (&DomainChoice, &str),
    version: i64,
) -> Result<Seen, ServiceError> {
    let mut conn = state.db.read().await?;
    let domain = resolve_domain(&mut conn, caller.account, choice, None).await?;
    let (link, is_deleted) = load_any(&mut conn, caller.account, grant, &domain, short_id).await?;
    let now = (!is_deleted).then(|| state_of(&link.redirect, &link.scopes, &link.details));
    let id = audit_id(&link.redirect);
    // A state is made from all entries, those too that wait for their place. A connection is not held while another is asked for.
    drop(conn);
    audit::chain_all(state).await?;
    let mut conn = state.db.read().await?;
    let body: Value = history::state_after(&mut conn, caller.account, &id, Rewind::new(now), version).await?;
    let writable = Writable::parse(&body).map_err(RedirectsError::NoLongerValid)?;
    Ok(Seen { link, is_deleted, writable })
}

/// Whether the redirection was deleted, made again or changed since it was read.
fn is_overtaken(error: &ServiceError) -> bool {
    matches!(error.code(), Code::ChangedMeanwhile | Code::NotFound)
}

/// Makes a deleted redirection again.
async fn revive(
    state: &Redirects,
    caller: &Caller,
    (choice, short_id): (DomainChoice, String),
    seen: Seen,
) -> Result<Written<Redirection>, ServiceError> {
    let grant = require(caller, Verb::Create, Redirections)?;
    let _place = state.capacity.change(caller)?;
    let (account, at, actor) = (caller.account, state.clock.now(), caller.actor.clone());
    let (rev, writable): (Rev, Writable) = (seen.link.rev, seen.writable);
    state
        .writer
        .submit(&caller.ctx, (account, Lane::Urgent), move |tx| {
            async move {
                let domain = resolve_in(tx, account, &choice, None).await?;
                let (mut item, is_deleted) = load_any(tx, account, &grant, &domain, &short_id).await?;
                if !is_deleted || item.rev != rev {
                    return Err(RedirectsError::ChangedMeanwhile.into());
                }
                // As for a new link.
                if domain_files::is_unproven(tx, account, &domain.host).await? {
                    return Err(RedirectsError::DomainUnproven(domain.host.to_string()).into());
                }
                check_take_downs(tx, std::slice::from_ref(&item), &writable).await?;
                belong(tx, &grant, &mut item).await?;
                let hosts = tenants::find_target_hosts(tx, account).await?;
                let domains = all_domains(tx).await?;
                apply(&mut item, (&writable, LeftOut::Goes), (&grant, &actor), at)?;
                check_targets(&item.redirect, &writable, &hosts, &domains)?;
                let key = key_of(&domain, &item.redirect.short_id);
                let mut changed = [(key, item)];
                check_changed(tx, &domains, &changed, &writable).await?;
                quotas::charge(tx, account, Quota::Links, 1, at).await?;
                for (key, item) in &changed {
                    if table::revive(tx, &key.domain, &key.folded, account).await? != 1 {
                        return Err(gone());
                    }
                    tx.note(account, (KIND, &audit_id(&item.redirect)), || {
                        (None, Some(state_of(&item.redirect, &item.scopes, &item.details)))
                    });
                }
                let rev = write_as(tx, RedirectionChange::Created, &mut changed, at).await?;
                let [(_, mut value)] = changed;
                hide_authors(&grant, &mut value);
                Ok(Written { value, rev })
            }
            .boxed()
        })
        .await
}

/// Takes what a redirection knows of its resource from there.
///
/// # Errors
/// 409 where the caller sees no such resource any more.
async fn belong(tx: &mut Tx, grant: &Grant, item: &mut Redirection) -> Result<(), ServiceError> {
    let id = item.redirect.platform_id.to_string();
    let mut found = owners(tx, item.account, std::slice::from_ref(&id)).await?;
    let is_seen = match grant.limit() {
        Limit::Account => true,
        Limit::Projects(_) | Limit::User(_) | Limit::Itself(_) => {
            let scopes = scopes::list(tx, item.account, std::slice::from_ref(&id)).await?;
            grant.admits(&id, scopes.get(&id))
        }
    };
    let owner = found.remove(&id).filter(|owner| is_seen && owner.kind == item.redirect.resource_type);
    let owner =
        owner.ok_or_else(|| RedirectsError::OwnerGone { kind: item.redirect.resource_type.as_str(), id })?;
    item.redirect.thng_id = owner.thng;
    item.redirect.product_id = owner.product;
    item.redirect.thng_name = owner.thng_name;
    item.redirect.standing = owner.standing;
    Ok(())
}
