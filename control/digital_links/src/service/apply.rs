//! Writes what differs between the rows of resources and what they should be.

use std::collections::{BTreeMap, HashMap, HashSet};

use catalog::store::resources::{self, Resource};
use kernel::{
    domain::{quota::Quota, scopes::Scopes},
    error::ServiceError,
    store::{Tx, quotas},
};
use redirects::{
    domain::{link_details::LinkDetails, redirection::Redirection},
    service::redirections::{audit_id, state_of},
    store::{log, redirections as table},
};
use shared::{
    id::{AccountId, ResourceId},
    redirect::{Redirect, RedirectKey},
    redirect_status::RedirectStatus,
    short_url::{Host, ShortDomain},
    time::UnixMillis,
    wire::stream::{Change, Event, Rev},
};

use crate::{domain::plan::Planned, error::DigitalLinksError, store::rows};

/// What the audit trail calls them.
const KIND: &str = "redirection";

/// How rows are written.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) account: AccountId,
    /// Whether too many links are refused. Rows that follow from a setting are made all the same, and count.
    pub(super) is_charged: bool,
    pub(super) now: UnixMillis,
}

/// A resource, and the rows that it should have on each domain.
pub(super) struct Wanted {
    pub(super) resource: ResourceId,
    pub(super) scopes: Scopes,
    pub(super) planned: Vec<Planned>,
}

/// A row to be written, its scopes, and what is there before.
type Changed<'a> = (Redirect, &'a Scopes, Option<Redirection>);

/// Makes resources have these rows on these domains and no others; returns how many changed. The transaction holds the lock of
/// the log: so few statements serve all resources together.
pub(super) async fn apply(
    tx: &mut Tx,
    write: Write,
    domains: &[ShortDomain],
    wanted: &[Wanted],
) -> Result<usize, ServiceError> {
    let Write { account, is_charged, now } = write;
    let ids: Vec<String> = wanted.iter().map(|one| one.resource.to_string()).collect();
    let keys = rows::list_keys(tx, account, &ids).await?;
    let with_rows = wanted.iter().filter(|one| !one.planned.is_empty() && !domains.is_empty());
    let with_rows: Vec<String> = with_rows.map(|one| one.resource.to_string()).collect();
    if with_rows.is_empty() && keys.is_empty() {
        return Ok(0);
    }
    let found =
        if with_rows.is_empty() { Vec::new() } else { resources::list(tx, account, &with_rows).await? };
    let owners: HashMap<&str, &Resource> = found.iter().map(|owner| (owner.id.as_str(), owner)).collect();
    let mut stored = load(tx, account, keys).await?;
    let mut written: Vec<Changed<'_>> = Vec::new();
    for one in wanted {
        let Some(owner) = owners.get(one.resource.as_str()) else { continue };
        for (domain, planned) in
            domains.iter().flat_map(|domain| one.planned.iter().map(move |of| (domain, of)))
        {
            let new = redirect(&domain.host, planned, owner, &one.scopes, now);
            let key = (domain.host.to_string(), planned.short_id.to_string());
            let is_own = stored.get(&key).is_some_and(|old| old.redirect.platform_id == one.resource);
            let old = if is_own { stored.remove(&key) } else { None };
            if !old.as_ref().is_some_and(|old| is_same(old, &new, &one.scopes)) {
                written.push((new, &one.scopes, old));
            }
        }
    }
    let removed: Vec<Redirection> = stored.into_values().collect();
    let count = written.len() + removed.len();
    if count == 0 {
        return Ok(0);
    }
    let added = written.iter().filter(|(_, _, old)| old.is_none()).count() as u64;
    if is_charged {
        quotas::charge(tx, account, Quota::Links, added, now).await?;
    } else {
        quotas::add(tx, account, Quota::Links, added, now).await?;
    }
    let mut rev = log::take_revs(tx, count as u64).await?;
    let mut events = Vec::with_capacity(count);
    let made = rows::put(tx, account, &distinct(&written)?, rev).await?;
    for changed in written {
        events.push(note(tx, account, changed, &made, rev)?);
        rev += 1;
    }
    remove(tx, write, removed, rev, &mut events).await?;
    log::append(tx, now.0, &events).await?;
    Ok(count)
}

/// The rows to be written, which no two resources share.
fn distinct<'a>(written: &'a [Changed<'_>]) -> Result<Vec<(&'a Redirect, &'a Scopes)>, DigitalLinksError> {
    let mut keys = HashSet::with_capacity(written.len());
    let mut rows = Vec::with_capacity(written.len());
    for (new, scopes, _) in written {
        if !keys.insert((new.domain.as_str(), new.short_id.as_str())) {
            return Err(taken(new));
        }
        rows.push((new, *scopes));
    }
    Ok(rows)
}

fn taken(new: &Redirect) -> DigitalLinksError {
    DigitalLinksError::Taken { host: new.domain.to_string(), path: format!("/{}", new.short_id) }
}

/// The rows of these keys, by domain and short id.
async fn load(
    tx: &mut Tx,
    account: AccountId,
    keys: Vec<(String, String)>,
) -> Result<HashMap<(String, String), Redirection>, ServiceError> {
    let mut by_domain: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (domain, folded) in keys {
        by_domain.entry(domain).or_default().push(folded);
    }
    let mut stored = HashMap::new();
    for (domain, folded) in by_domain {
        for item in table::find_many(tx, &domain, &folded, account).await? {
            stored.insert((domain.clone(), item.redirect.short_id.to_string()), item);
        }
    }
    Ok(stored)
}

fn redirect(host: &Host, one: &Planned, owner: &Resource, scopes: &Scopes, now: UnixMillis) -> Redirect {
    Redirect {
        domain: host.clone(),
        short_id: one.short_id.clone(),
        resource_type: owner.kind,
        platform_id: owner.id,
        thng_id: owner.thng,
        product_id: owner.product,
        thng_name: owner.thng_name.clone(),
        standing: owner.standing,
        projects: scopes.project_ids(),
        target: one.target.as_str().into(),
        forward_query: true,
        status_code: RedirectStatus::default(),
        availability: None,
        digital_link: Some(Box::new(one.set.clone())),
        created_at: now,
        updated_at: now,
    }
}

/// Whether a row is as it should be, but for its times.
fn is_same(old: &Redirection, new: &Redirect, scopes: &Scopes) -> bool {
    let Redirect { created_at, updated_at, .. } = old.redirect;
    old.scopes == *scopes && old.redirect == Redirect { created_at, updated_at, ..new.clone() }
}

/// Notes a row that was written for the audit trail, with what was there before; gives its event.
fn note(
    tx: &mut Tx,
    account: AccountId,
    (mut new, scopes, old): Changed<'_>,
    made: &rows::Made,
    rev: Rev,
) -> Result<Event, DigitalLinksError> {
    let Some(created_at) = made.get(&(new.domain.to_string(), new.short_id.to_string())) else {
        return Err(taken(&new));
    };
    new.created_at = UnixMillis(*created_at);
    tx.note(account, (KIND, &audit_id(&new)), || {
        let before = old.map(|old| state_of(&old.redirect, &old.scopes, &old.details));
        (before, Some(state_of(&new, scopes, &LinkDetails::default())))
    });
    let key = RedirectKey::new(new.domain.as_str(), new.short_id.as_str());
    Ok(Event { rev, change: Change::Redirect(key, Some(new.into())) })
}

/// Turns rows into tombstones, from a revision on.
async fn remove(
    tx: &mut Tx,
    Write { account, now, .. }: Write,
    removed: Vec<Redirection>,
    mut rev: Rev,
    events: &mut Vec<Event>,
) -> Result<(), ServiceError> {
    let domains: HashSet<Host> = removed.iter().map(|item| item.redirect.domain.clone()).collect();
    for host in domains {
        let items: Vec<&Redirection> = removed.iter().filter(|item| item.redirect.domain == host).collect();
        let keys: Vec<(&str, Rev)> =
            items.iter().map(|item| item.redirect.short_id.as_str()).zip(rev..).collect();
        let seqs: Vec<i64> = items.iter().map(|item| item.seq).collect();
        table::delete(tx, host.as_str(), &keys, &seqs, now).await?;
        rows::delete_sets(tx, account, &seqs).await?;
        for (folded, rev) in &keys {
            let key = RedirectKey::new(host.as_str(), folded);
            events.push(Event { rev: *rev, change: Change::Redirect(key, None) });
        }
        rev += keys.len() as u64;
    }
    quotas::release(tx, account, Quota::Links, removed.len() as u64);
    for item in &removed {
        let before = || state_of(&item.redirect, &item.scopes, &item.details);
        tx.note(account, (KIND, &audit_id(&item.redirect)), || (Some(before()), None));
    }
    Ok(())
}
