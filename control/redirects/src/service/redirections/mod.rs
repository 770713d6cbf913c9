//! Redirections: create, read, list, replace, delete, one or many.

mod apply;
mod by_resource;
mod chains;
mod change_many;
mod digital_link;
mod expected;
mod follow;
mod history;
mod import;
mod lists;
mod load;
mod plan;
mod preview;
mod resolve;
mod restore;
mod write;

use futures_util::FutureExt;
use shared::{
    redirect::RedirectKey,
    wire::stream::{Change, Event, Rev},
};

use self::apply::{LeftOut, apply, check_targets};
pub use self::by_resource::{newest, owner};
use self::chains::check_changed;
pub use self::change_many::{
    Former, Outcome, PlannedChange, plan_patch, plan_restore, preview_patch, reload, write_planned,
};
pub use self::digital_link::{digital_link, digital_link_at};
pub use self::expected::Expected;
pub use self::follow::follow_thng;
pub use self::history::history;
pub use self::import::create_in;
pub use self::import::{ItemResult, create_many};
use self::lists::list_as;
pub use self::lists::{Listing, find, list, logo, matching};
pub use self::load::blocked_hosts;
use self::load::{check_take_downs, hide_authors, load_many};
use self::plan::{key_of, owners, plan};
pub use self::preview::{Preview, ShownRule, preview, preview_of, shown_pages};
pub use self::resolve::resolve_domain;
use self::resolve::{all_domains, resolve_in};
pub use self::restore::restore;
pub use self::write::{audit_id, state_of};
use self::write::{event_of, gone, insert, record, write_changed};
use super::{
    Core, Redirects,
    access::{Caller, require},
    capacity::Place,
    idempotency::{IdempotencyKey, keep, replay},
    scopes::project_in_reach,
    user_links,
    user_rules::UserRules,
};
use crate::{
    domain::{
        access::Actor,
        event::RedirectionChange,
        permission::{Subject::Redirections, Verb},
        quota::Quota,
        redirection::{Draft, Redirection, Writable},
    },
    error::ServiceError,
    store::{log, quotas, redirections as table, tenants},
    writer::Lane,
};

/// What the audit trail calls them.
const KIND: &str = "redirection";

/// Most redirections that one urgent request changes: some 10 ms.
const MAX_URGENT: usize = 20;

/// A value with the revision that wrote it, which edges acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written<T> {
    /// The written value.
    pub value: T,
    /// The newest revision of the write.
    pub rev: Rev,
}

/// The short domain that a request means.
#[derive(Debug, Clone, Default)]
pub struct DomainChoice {
    /// `?domain=` or the body's `shortDomain`: must be the account's.
    pub named: Option<String>,
    /// The `Host` of the request: taken when it is one of the account's short domains; it must not be
    /// another account's.
    pub host: Option<String>,
}

/// Creates one redirection, which belongs to `project` where a request names one.
///
/// # Errors
/// 400 for a domain or resource that is not the account's and for loops, 409 when the short id is taken or
/// the idempotency key belongs to another request.
pub async fn create(
    state: &Redirects,
    caller: &Caller,
    mut draft: Draft,
    choice: DomainChoice,
    project: Option<&str>,
    idempotency: Option<IdempotencyKey>,
) -> Result<Written<Redirection>, ServiceError> {
    let grant = require(caller, Verb::Create, Redirections)?;
    let _place = state.capacity.change(caller)?;
    let (actor, project) = (caller.actor.clone(), project.map(str::to_owned));
    let candidates = vec![state.random16()?, state.random16()?];
    let (account, at) = (caller.account, state.clock.now());
    let idempotency = idempotency.map(|key| key.of(&actor));
    state
        .writer
        .submit(&caller.ctx, (account, Lane::Urgent), move |tx| {
            async move {
                if let Some(mut kept) = replay::<Redirection>(tx, account, idempotency.as_ref(), at).await? {
                    hide_authors(&grant, &mut kept);
                    return Ok(Written { rev: kept.rev, value: kept });
                }
                if let Some(rules) = UserRules::load(tx, &actor).await? {
                    user_links::check_drafts(&rules, [(String::new(), &draft)].into_iter())?;
                }
                let domain = resolve_in(tx, account, &choice, draft.short_domain.as_deref()).await?;
                if let Some(text) = &project {
                    let project = project_in_reach(tx, &actor, &grant, text).await?;
                    draft.writable.scopes.add_project(project);
                }
                let items = vec![Ok(draft)];
                let mut planned = plan(tx, &actor, &grant, &domain, items, candidates, at).await?;
                let missing = || ServiceError::Internal("a draft was not planned".to_owned());
                let ready = planned.pop().ok_or_else(missing)??;
                quotas::charge(tx, account, Quota::Links, 1, at).await?;
                let (rev, mut made) = insert(tx, account, &domain, &[&ready], at).await?;
                let missing = || ServiceError::Internal("a created redirection is gone".to_owned());
                let mut value = made.pop().ok_or_else(missing)?;
                keep(tx, account, idempotency.as_ref(), &value, at).await?;
                hide_authors(&grant, &mut value);
                Ok(Written { value, rev })
            }
            .boxed()
        })
        .await
}

/// Replaces what redirections lead to, whatever state they are in; all of them or none.
///
/// # Errors
/// As [`replace_if`], without 412.
pub async fn replace(
    state: &Redirects,
    caller: &Caller,
    choice: DomainChoice,
    short_ids: Vec<String>,
    writable: Writable,
) -> Result<Written<Vec<Redirection>>, ServiceError> {
    replace_if(state, caller, (choice, short_ids), Expected::default(), writable).await
}

/// Replaces what redirections lead to; all of them or none.
///
/// # Errors
/// 404 that names every absent one, 412 for one that is not as `expected`, 409 for one that was taken down, 400 for loops
/// and blocked hosts.
pub async fn replace_if(
    state: &Redirects,
    caller: &Caller,
    which: (DomainChoice, Vec<String>),
    expected: Expected,
    writable: Writable,
) -> Result<Written<Vec<Redirection>>, ServiceError> {
    replace_as(state, caller, which, expected, (writable, LeftOut::Stays)).await
}

/// [`replace_if`], where descriptive fields that are left out may also go.
async fn replace_as(
    state: &Redirects,
    caller: &Caller,
    (choice, short_ids): (DomainChoice, Vec<String>),
    expected: Expected,
    (writable, left_out): (Writable, LeftOut),
) -> Result<Written<Vec<Redirection>>, ServiceError> {
    let grant = require(caller, Verb::Update, Redirections)?;
    let _place = place(state, caller, &short_ids)?;
    let (account, at, actor) = (caller.account, state.clock.now(), caller.actor.clone());
    state
        .writer
        .submit(&caller.ctx, (account, lane(&short_ids)), move |tx| {
            async move {
                let (domain, found) = load_many(tx, account, &grant, &choice, &short_ids).await?;
                expected.check(&found)?;
                if let Some(rules) = UserRules::load(tx, &actor).await? {
                    user_links::check_target(&rules, &writable)?;
                }
                check_take_downs(tx, &found, &writable).await?;
                let hosts = tenants::find_target_hosts(tx, account).await?;
                let domains = all_domains(tx).await?;
                let ids: Vec<String> = found.iter().map(|r| r.redirect.platform_id.to_string()).collect();
                let owners = owners(tx, account, &ids).await?;
                let mut changed = Vec::with_capacity(found.len());
                for mut item in found {
                    let key = key_of(&domain, &item.redirect.short_id);
                    let state = |item: &Redirection| state_of(&item.redirect, &item.scopes, &item.details);
                    let (id, before) = (audit_id(&item.redirect), tx.is_audited().then(|| state(&item)));
                    apply(&mut item, (&writable, left_out), (&grant, &actor), at)?;
                    if let Some(owner) = owners.get(item.redirect.platform_id.as_str()) {
                        item.redirect.product_id = owner.product;
                    }
                    check_targets(&item.redirect, &writable, &hosts, &domains)?;
                    tx.note(account, (KIND, &id), || (before, Some(state(&item))));
                    changed.push((key, item));
                }
                check_changed(tx, &domains, &changed, &writable).await?;
                let rev = write_changed(tx, &mut changed, at).await?;
                let mut value: Vec<_> = changed.into_iter().map(|(_, item)| item).collect();
                value.iter_mut().for_each(|item| hide_authors(&grant, item));
                Ok(Written { rev, value })
            }
            .boxed()
        })
        .await
}

// Spec gap: what a deleted short id answers, and whether it comes back, is not shown: 404, and never.
/// Deletes redirections, whatever state they are in, all of them or none; their short ids are never given out again.
///
/// # Errors
/// As [`delete_if`], without 412.
pub async fn delete(
    state: &Redirects,
    caller: &Caller,
    choice: DomainChoice,
    short_ids: Vec<String>,
) -> Result<Written<usize>, ServiceError> {
    delete_if(state, caller, (choice, short_ids), Expected::default()).await
}

/// Deletes redirections, all of them or none; their short ids are never given out again.
///
/// # Errors
/// 404 that names every absent one, 412 for one that is not as `expected`.
pub async fn delete_if(
    state: &Redirects,
    caller: &Caller,
    (choice, short_ids): (DomainChoice, Vec<String>),
    expected: Expected,
) -> Result<Written<usize>, ServiceError> {
    let grant = require(caller, Verb::Delete, Redirections)?;
    let _place = place(state, caller, &short_ids)?;
    let (account, at) = (caller.account, state.clock.now());
    state
        .writer
        .submit(&caller.ctx, (account, lane(&short_ids)), move |tx| {
            async move {
                let (domain, found) = load_many(tx, account, &grant, &choice, &short_ids).await?;
                expected.check(&found)?;
                let first = log::take_revs(tx, found.len() as u64).await?;
                let keys: Vec<RedirectKey> =
                    found.iter().map(|item| key_of(&domain, &item.redirect.short_id)).collect();
                let tombstones: Vec<(&str, Rev)> = keys.iter().map(|key| &*key.folded).zip(first..).collect();
                let seqs: Vec<i64> = found.iter().map(|item| item.seq).collect();
                if table::delete(tx, domain.host.as_str(), &tombstones, &seqs, at).await?
                    != found.len() as u64
                {
                    return Err(gone());
                }
                quotas::release(tx, account, Quota::Links, found.len() as u64);
                let changes: Vec<Event> = (first..)
                    .zip(keys)
                    .map(|(rev, key)| Event { rev, change: Change::Redirect(key, None) })
                    .collect();
                log::append(tx, at.0, &changes).await?;
                for item in &found {
                    let before = || state_of(&item.redirect, &item.scopes, &item.details);
                    tx.note(account, (KIND, &audit_id(&item.redirect)), || (Some(before()), None));
                }
                let items = found.iter().map(|item| event_of(&item.redirect, &item.details, &item.scopes));
                record(tx, account, RedirectionChange::Deleted, items, at).await?;
                Ok(Written { value: found.len(), rev: first + found.len() as u64 - 1 })
            }
            .boxed()
        })
        .await
}

/// A few changes are somebody's press; many hold up the others for as long as a chunk of an import.
fn lane(short_ids: &[String]) -> Lane {
    if short_ids.len() <= MAX_URGENT { Lane::Urgent } else { Lane::Bulk }
}

/// The place of such a change.
fn place(core: &Core, actor: &Actor, short_ids: &[String]) -> Result<Place, ServiceError> {
    match lane(short_ids) {
        Lane::Urgent => core.capacity.change(actor),
        Lane::Bulk | Lane::Begun => core.capacity.import(actor),
    }
}
