//! Writes what differs between the rows of a resource and what they should be.

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

/// Whose rows they are.
pub(super) struct Rows {
    pub(super) account: AccountId,
    pub(super) resource: ResourceId,
    pub(super) scopes: Scopes,
    /// Whether too many links are refused. Rows that follow from a setting are made all the same, and count.
    pub(super) is_charged: bool,
    pub(super) now: UnixMillis,
}

/// Makes a resource have these rows on these domains and no others; returns how many changed. The transaction holds the lock of
/// the log.
pub(super) async fn apply(
    tx: &mut Tx,
    rows: Rows,
    domains: &[ShortDomain],
    planned: Vec<Planned>,
) -> Result<usize, ServiceError> {
    let id = rows.resource.to_string();
    let keys = rows::list_keys(tx, rows.account, &id).await?;
    let owner = if planned.is_empty() || domains.is_empty() {
        None
    } else {
        resources::list(tx, rows.account, std::slice::from_ref(&id)).await?.pop()
    };
    let wanted: Vec<(&Host, &Planned)> = domains
        .iter()
        .filter(|_| owner.is_some())
        .flat_map(|domain| planned.iter().map(move |one| (&domain.host, one)))
        .collect();
    if wanted.is_empty() && keys.is_empty() {
        return Ok(0);
    }
    let mut stored = load(tx, rows.account, keys).await?;
    let mut written: Vec<(Redirect, Option<Redirection>)> = Vec::new();
    if let Some(owner) = owner {
        for (host, one) in wanted {
            let new = redirect(host, one, &owner, &rows);
            let old = stored.remove(&(host.to_string(), one.short_id.to_string()));
            if !old.as_ref().is_some_and(|old| is_same(old, &new, &rows.scopes)) {
                written.push((new, old));
            }
        }
    }
    let removed: Vec<Redirection> = stored.into_values().collect();
    let count = written.len() + removed.len();
    if count == 0 {
        return Ok(0);
    }
    let added = written.iter().filter(|(_, old)| old.is_none()).count() as u64;
    if rows.is_charged {
        quotas::charge(tx, rows.account, Quota::Links, added, rows.now).await?;
    } else {
        quotas::add(tx, rows.account, Quota::Links, added, rows.now).await?;
    }
    let mut rev = log::take_revs(tx, count as u64).await?;
    let mut events = Vec::with_capacity(count);
    let new: Vec<&Redirect> = written.iter().map(|(new, _)| new).collect();
    let made = rows::put(tx, rows.account, (&new, &rows.scopes), rev).await?;
    for (new, old) in written {
        events.push(note(tx, &rows, (new, old), &made, rev)?);
        rev += 1;
    }
    remove(tx, &rows, removed, rev, &mut events).await?;
    log::append(tx, rows.now.0, &events).await?;
    Ok(count)
}

/// The rows that a resource has, by domain and short id.
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

fn redirect(host: &Host, one: &Planned, owner: &Resource, rows: &Rows) -> Redirect {
    Redirect {
        domain: host.clone(),
        short_id: one.short_id.clone(),
        resource_type: owner.kind,
        platform_id: rows.resource,
        thng_id: owner.thng,
        product_id: owner.product,
        thng_name: owner.thng_name.clone(),
        standing: owner.standing,
        projects: rows.scopes.project_ids(),
        target: one.target.as_str().into(),
        forward_query: true,
        status_code: RedirectStatus::default(),
        availability: None,
        digital_link: Some(Box::new(one.set.clone())),
        created_at: rows.now,
        updated_at: rows.now,
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
    rows: &Rows,
    (mut new, old): (Redirect, Option<Redirection>),
    made: &rows::Made,
    rev: Rev,
) -> Result<Event, DigitalLinksError> {
    let (host, short_id) = (new.domain.to_string(), new.short_id.to_string());
    let path = format!("/{short_id}");
    let Some(created_at) = made.get(&(host.clone(), short_id)) else {
        return Err(DigitalLinksError::Taken { host, path });
    };
    new.created_at = UnixMillis(*created_at);
    tx.note(rows.account, (KIND, &audit_id(&new)), || {
        let before = old.map(|old| state_of(&old.redirect, &old.scopes, &old.details));
        (before, Some(state_of(&new, &rows.scopes, &LinkDetails::default())))
    });
    let key = RedirectKey::new(new.domain.as_str(), new.short_id.as_str());
    Ok(Event { rev, change: Change::Redirect(key, Some(new.into())) })
}

/// Turns rows into tombstones, from a revision on.
async fn remove(
    tx: &mut Tx,
    rows: &Rows,
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
        table::delete(tx, host.as_str(), &keys, &seqs, rows.now).await?;
        rows::delete_sets(tx, rows.account, &seqs).await?;
        for (folded, rev) in &keys {
            let key = RedirectKey::new(host.as_str(), folded);
            events.push(Event { rev: *rev, change: Change::Redirect(key, None) });
        }
        rev += keys.len() as u64;
    }
    quotas::release(tx, rows.account, Quota::Links, removed.len() as u64);
    for item in &removed {
        let before = || state_of(&item.redirect, &item.scopes, &item.details);
        tx.note(rows.account, (KIND, &audit_id(&item.redirect)), || (Some(before()), None));
    }
    Ok(())
}
