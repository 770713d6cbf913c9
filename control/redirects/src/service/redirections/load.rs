//! Reads redirections for the caller, and what was taken down of them.

use std::collections::{HashMap, HashSet};

use shared::{
    id::AccountId,
    redirect::RedirectKey,
    short_id::ShortId,
    short_url::ShortDomain,
    withheld::{and_parents, host_of},
};

use super::{DomainChoice, plan::key_of, resolve_in};
use crate::{
    domain::{
        grant::{Grant, Limit},
        redirection::{Redirection, Writable},
        withheld::TakeDowns,
    },
    error::{CommonError, RedirectsError, ServiceError},
    store::{Conn, StoreError, Tx, redirections as table, withheld},
};

/// A redirection of the account that the caller sees.
pub(super) async fn load(
    conn: &mut Conn,
    account: AccountId,
    grant: &Grant,
    domain: &ShortDomain,
    short_id: &str,
) -> Result<Redirection, ServiceError> {
    let absent = || ServiceError::not_found("redirection", short_id);
    let parsed: ShortId = short_id.parse().map_err(|_| absent())?;
    let found = table::find(conn, domain.host.as_str(), &domain.fold(&parsed), account).await?;
    found.filter(|item| is_seen(grant, item)).ok_or_else(absent)
}

/// A redirection of the account that the caller sees, or what is left of a deleted one; then `true`.
pub(super) async fn load_any(
    conn: &mut Conn,
    account: AccountId,
    grant: &Grant,
    domain: &ShortDomain,
    short_id: &str,
) -> Result<(Redirection, bool), ServiceError> {
    let absent = || ServiceError::not_found("redirection", short_id);
    let parsed: ShortId = short_id.parse().map_err(|_| absent())?;
    let (host, folded) = (domain.host.as_str(), domain.fold(&parsed));
    let (found, is_deleted) = match table::find(conn, host, &folded, account).await? {
        Some(found) => (Some(found), false),
        None => (table::find_deleted(conn, host, &folded, account).await?, true),
    };
    let found = found.filter(|item| is_seen(grant, item)).ok_or_else(absent)?;
    Ok((found, is_deleted))
}

/// Whether a redirection is visible to a caller. A short id may be any text, so it never counts as the caller's own
/// id.
pub(super) fn is_seen(grant: &Grant, item: &Redirection) -> bool {
    grant.admits("", Some(&item.scopes))
}

/// Leaves out who wrote a redirection, unless the caller reads the whole account: others need not know its operators.
pub(super) fn hide_authors(grant: &Grant, item: &mut Redirection) {
    match grant.limit() {
        Limit::Account => {}
        Limit::Projects(_) | Limit::User(_) | Limit::Itself(_) => {
            item.details.created_by = None;
            item.details.updated_by = None;
        }
    }
}

/// Refuses to change a Digital Link by itself: it is made of its product or Thng.
pub(super) fn refuse_digital_link(items: &[Redirection]) -> Result<(), RedirectsError> {
    let found = items.iter().find(|item| item.redirect.short_id.is_digital_link());
    found.map_or(Ok(()), |item| Err(RedirectsError::DigitalLink(item.redirect.short_id.clone())))
}

/// Loads each of some redirections that are to be changed once; every absent one is named.
///
/// # Errors
/// 404, or 409 for a Digital Link.
pub(super) async fn load_many(
    tx: &mut Tx,
    account: AccountId,
    grant: &Grant,
    choice: &DomainChoice,
    short_ids: &[String],
) -> Result<(ShortDomain, Vec<Redirection>), ServiceError> {
    let domain = resolve_in(tx, account, choice, None).await?;
    let fold = |text: &String| text.parse::<ShortId>().ok().map(|id| domain.fold(&id).into_string());
    let wanted: Vec<Option<String>> = short_ids.iter().map(fold).collect();
    let folded: Vec<String> = wanted.iter().flatten().cloned().collect();
    let stored = table::find_many(tx, domain.host.as_str(), &folded, account).await?;
    let mut stored: HashMap<Box<str>, Redirection> = stored
        .into_iter()
        .filter(|item| is_seen(grant, item))
        .map(|item| (domain.fold(&item.redirect.short_id), item))
        .collect();
    let (mut found, mut absent, mut seen) = (Vec::with_capacity(stored.len()), Vec::new(), HashSet::new());
    for (short_id, folded) in short_ids.iter().zip(wanted) {
        match folded.as_deref().and_then(|folded| stored.remove(folded)) {
            Some(item) => found.push(item),
            None if folded.as_ref().is_some_and(|folded| seen.contains(folded)) => continue,
            None => absent.push(short_id),
        }
        seen.extend(folded);
    }
    if absent.is_empty() {
        refuse_digital_link(&found)?;
        Ok((domain, found))
    } else {
        let fault = |short_id: &&String| format!("The redirection {short_id} was not found.");
        Err(CommonError::Absent(absent.iter().map(fault).collect()).into())
    }
}

/// The take-downs of the hosts that some targets lead to.
pub async fn blocked_hosts<'a>(
    conn: &mut Conn,
    targets: impl Iterator<Item = &'a str>,
) -> Result<TakeDowns, StoreError> {
    withheld::take_downs(conn, &[], &hosts_of(targets)).await
}

/// Hosts of which a take-down concerns some URLs.
pub(super) fn hosts_of<'a>(targets: impl Iterator<Item = &'a str>) -> Vec<String> {
    let hosts: HashSet<_> = targets.filter_map(host_of).collect();
    let all: HashSet<&str> = hosts.iter().flat_map(|host| and_parents(host)).collect();
    all.into_iter().map(str::to_owned).collect()
}

/// Adds to redirections why nobody is led to their target, or else to their ended page.
pub(super) async fn mark_taken_down(conn: &mut Conn, items: &mut [Redirection]) -> Result<(), StoreError> {
    let keys: Vec<RedirectKey> =
        items.iter().map(|item| key_of(&item.domain, &item.redirect.short_id)).collect();
    let hosts = hosts_of(items.iter().flat_map(|item| item.redirect.urls()));
    let found = withheld::take_downs(conn, &keys.iter().collect::<Vec<_>>(), &hosts).await?;
    for (item, key) in items.iter_mut().zip(&keys) {
        let of_url = || item.redirect.urls().find_map(|url| found.of_target(url));
        item.taken_down = found.of_link(key).or_else(of_url).cloned();
    }
    Ok(())
}

/// Refuses a change of links that were taken down, and a target whose host was.
///
/// # Errors
/// 409 that names every such link, 400 for the target.
pub(super) async fn check_take_downs(
    conn: &mut Conn,
    links: &[Redirection],
    writable: &Writable,
) -> Result<(), ServiceError> {
    let keys: Vec<RedirectKey> =
        links.iter().map(|item| key_of(&item.domain, &item.redirect.short_id)).collect();
    let hosts = hosts_of(writable.targets().map(|(_, target)| target.as_str()));
    let found = withheld::take_downs(conn, &keys.iter().collect::<Vec<_>>(), &hosts).await?;
    let fault = |(item, key): (&Redirection, &RedirectKey)| {
        let why = &found.of_link(key)?.reason;
        Some(format!("The redirection {} was taken down: {why}", item.redirect.short_id))
    };
    let errors: Vec<String> = links.iter().zip(&keys).filter_map(fault).collect();
    if !errors.is_empty() {
        return Err(RedirectsError::TakenDown(errors).into());
    }
    let faults = writable
        .targets()
        .filter_map(|(member, target)| Some(format!("{member} {}.", found.target_fault(target.as_str())?)));
    let errors: Vec<String> = faults.collect();
    if errors.is_empty() { Ok(()) } else { Err(CommonError::Faults(errors).into()) }
}
