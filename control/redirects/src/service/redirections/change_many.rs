//! Changes of many links by a worker: the same change for all, or each back to what it was.

use std::collections::HashMap;

use shared::{
    availability::Availability,
    id::AccountId,
    redirect::{Redirect, RedirectKey},
    short_url::ShortDomain,
    target::Target,
    time::UnixMillis,
    wire::stream::Rev,
};

use super::{
    KIND,
    chains::{Chains, Next, next_of, nexts_of},
    load::{hide_authors, hosts_of, is_seen, mark_taken_down},
    plan::{key_of, owners, target_fault},
    write::{audit_id, state_of, write_changed},
};
use crate::{
    domain::{
        access::Actor,
        grant::Limit,
        link_patch::LinkPatch,
        permission::{Subject::Redirections, Verb},
        redirection::Redirection,
        target_hosts::TargetHosts,
    },
    error::ServiceError,
    service::access::require,
    store::{Conn, StoreError, Tx, accounts, redirections as table, tenants, withheld},
};

/// A link of a change.
#[derive(Debug, Clone)]
pub struct PlannedChange {
    /// The link as it is.
    pub before: Redirection,
    /// What the change makes of it.
    pub outcome: Outcome,
}

/// What a change makes of a link.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It becomes this.
    Changed(Box<Redirection>),
    /// It is so already.
    Same,
    /// It stays as it is; a sentence says why.
    Refused(String),
}

/// Links as they were before a change, each with the revision that the change gave it.
pub type Former = (Redirection, Rev);

/// What a change makes of some links, and what refuses it for every link. Nothing is written.
///
/// # Errors
/// The actor may not change links.
pub async fn plan_patch(
    conn: &mut Conn,
    actor: &Actor,
    links: Vec<Redirection>,
    patch: &LinkPatch,
    at: UnixMillis,
) -> Result<(Vec<String>, Vec<PlannedChange>), ServiceError> {
    let grant = require(actor, Verb::Update, Redirections)?;
    let account = actor.account;
    let hosts = tenants::find_target_hosts(conn, account).await?;
    let domains = accounts::list_all_domains(conn).await?;
    let ids: Vec<String> = links.iter().map(|link| link.redirect.platform_id.to_string()).collect();
    let owners = owners(conn, account, &ids).await?;
    let keys: Vec<RedirectKey> = links.iter().map(key).collect();
    let urls = hosts_of(patch.targets().map(|(_, target)| target.as_str()));
    let take_downs = withheld::take_downs(conn, &keys.iter().collect::<Vec<_>>(), &urls).await?;
    let mut faults = Vec::new();
    if patch.changes_scopes() && *grant.limit() != Limit::Account {
        faults.push("scopes: only who reaches the whole account changes them.".to_owned());
    }
    for (member, target) in patch.targets() {
        // The host is the same for all: tags stand in path and query only.
        let next = links.first().and_then(|first| next_of(&first.redirect, target));
        faults.extend(target_fault(&hosts, &domains, (member, target), next.as_ref()));
        faults.extend(take_downs.target_fault(target.as_str()).map(|fault| format!("{member} {fault}.")));
    }
    let mut planned = Vec::with_capacity(links.len());
    for (before, key) in links.into_iter().zip(&keys) {
        let outcome = if let Some(take_down) = take_downs.of_link(key) {
            Outcome::Refused(format!("It was taken down: {}", take_down.reason))
        } else if !faults.is_empty() {
            Outcome::Refused(faults.join(" "))
        } else {
            match patch.apply(&before, &grant) {
                Err(fault) => Outcome::Refused(fault),
                Ok(None) => Outcome::Same,
                Ok(Some(mut after)) => {
                    after.redirect.updated_at = at;
                    after.details.updated_by = Some(actor.into());
                    if let Some(owner) = owners.get(after.redirect.platform_id.as_str()) {
                        after.redirect.product_id = owner.product;
                    }
                    Outcome::Changed(Box::new(after))
                }
            }
        };
        planned.push(PlannedChange { before, outcome });
    }
    if patch.targets().next().is_some() {
        refuse_chains(conn, &domains, &mut planned).await?;
    }
    Ok((faults, planned))
}

/// What a change makes of some links, as the actor sees them.
///
/// # Errors
/// As [`plan_patch`].
pub async fn preview_patch(
    conn: &mut Conn,
    actor: &Actor,
    mut links: Vec<Redirection>,
    patch: &LinkPatch,
    at: UnixMillis,
) -> Result<(Vec<String>, Vec<PlannedChange>), ServiceError> {
    let grant = require(actor, Verb::Update, Redirections)?;
    mark_taken_down(conn, &mut links).await?;
    let (faults, mut planned) = plan_patch(conn, actor, links, patch, at).await?;
    for one in &mut planned {
        hide_authors(&grant, &mut one.before);
        if let Outcome::Changed(after) = &mut one.outcome {
            hide_authors(&grant, after);
        }
    }
    Ok((faults, planned))
}

/// What it takes to give links back what they had. One that was changed since, was taken down, is out of the actor's reach or led
/// where the account allows no target any more is refused. Nothing is written.
///
/// Everything comes back but the count of scans: `updatedAt` and `updatedBy`, too.
///
/// # Errors
/// The actor may not change links.
pub async fn plan_restore(
    conn: &mut Conn,
    actor: &Actor,
    formers: Vec<Former>,
) -> Result<Vec<PlannedChange>, ServiceError> {
    let grant = require(actor, Verb::Update, Redirections)?;
    let hosts = tenants::find_target_hosts(conn, actor.account).await?;
    let domains = accounts::list_all_domains(conn).await?;
    let mut current = reload(conn, actor.account, formers.iter().map(|(link, _)| link)).await?;
    let keys: Vec<RedirectKey> = formers.iter().map(|(link, _)| key(link)).collect();
    let urls = hosts_of(formers.iter().flat_map(|(link, _)| link.redirect.urls()));
    let take_downs = withheld::take_downs(conn, &keys.iter().collect::<Vec<_>>(), &urls).await?;
    let mut planned = Vec::with_capacity(formers.len());
    for ((former, rev), key) in formers.into_iter().zip(&keys) {
        let Some(now) = current.remove(&former.seq) else {
            let outcome = Outcome::Refused("It was deleted since.".to_owned());
            planned.push(PlannedChange { before: former, outcome });
            continue;
        };
        let blocked = || former.redirect.urls().find_map(|url| take_downs.of_target(url));
        let outcome = if now.rev != rev {
            Outcome::Refused("It was changed since.".to_owned())
        } else if !is_seen(&grant, &now) {
            Outcome::Refused("It is in none of your projects.".to_owned())
        } else if let Some(take_down) = take_downs.of_link(key).or_else(blocked) {
            Outcome::Refused(format!("It was taken down, or what it led to: {}", take_down.reason))
        } else if let Some(fault) = former_fault(&former.redirect, &now.redirect, &hosts, &domains) {
            Outcome::Refused(fault)
        } else {
            Outcome::Changed(Box::new(restored(&now, former)))
        };
        planned.push(PlannedChange { before: now, outcome });
    }
    refuse_chains(conn, &domains, &mut planned).await?;
    Ok(planned)
}

/// Why a link may not lead again where it led before; where it leads anyway is not looked at.
fn former_fault(
    former: &Redirect,
    now: &Redirect,
    hosts: &TargetHosts,
    domains: &[ShortDomain],
) -> Option<String> {
    let urls = former.urls().filter(|url| now.urls().all(|other| other != *url));
    urls.filter_map(|url| Target::parse(url).ok()).find_map(|target| {
        let next = next_of(former, &target);
        target_fault(hosts, domains, ("Its former target", &target), next.as_ref())
    })
}

/// A link with what a change may have replaced as it was before.
fn restored(now: &Redirection, former: Redirection) -> Redirection {
    let mut after = now.clone();
    after.redirect.product_id = former.redirect.product_id;
    after.redirect.projects = former.redirect.projects;
    after.redirect.target = former.redirect.target;
    after.redirect.forward_query = former.redirect.forward_query;
    after.redirect.status_code = former.redirect.status_code;
    let availability = now.redirect.availability.as_deref();
    after.redirect.availability = Availability::back_to(former.redirect.availability, availability);
    after.redirect.updated_at = former.redirect.updated_at;
    after.scopes = former.scopes;
    after.details = former.details;
    after
}

/// Links as they are now, by their place; deleted ones are missing.
pub async fn reload(
    conn: &mut Conn,
    account: AccountId,
    links: impl Iterator<Item = &Redirection>,
) -> Result<HashMap<i64, Redirection>, StoreError> {
    let mut by_domain: HashMap<String, Vec<String>> = HashMap::new();
    for link in links {
        let folded = link.domain.fold(&link.redirect.short_id).into_string();
        by_domain.entry(link.redirect.domain.to_string()).or_default().push(folded);
    }
    let mut found = HashMap::new();
    for (domain, folded) in &by_domain {
        let links = table::find_many(conn, domain, folded, account).await?;
        found.extend(links.into_iter().map(|link| (link.seq, link)));
    }
    Ok(found)
}

/// Writes changes within a transaction of the writer, each with its entries of log and audit trail as a single one; gives each
/// link as it was and as it is, with its new revision.
///
/// # Errors
/// The database failed: the transaction is to be given up.
pub async fn write_planned(
    tx: &mut Tx,
    account: AccountId,
    changes: Vec<(Redirection, Redirection)>,
    at: UnixMillis,
) -> Result<Vec<(Redirection, Redirection)>, ServiceError> {
    if changes.is_empty() {
        return Ok(changes);
    }
    let (mut befores, mut changed) = (Vec::with_capacity(changes.len()), Vec::with_capacity(changes.len()));
    for (before, after) in changes {
        let id = audit_id(&after.redirect);
        tx.note(account, (KIND, &id), || {
            let state = |link: &Redirection| state_of(&link.redirect, &link.scopes, &link.details);
            (Some(state(&before)), Some(state(&after)))
        });
        changed.push((key(&after), after));
        befores.push(before);
    }
    write_changed(tx, &mut changed, at).await?;
    Ok(befores.into_iter().zip(changed.into_iter().map(|(_, after)| after)).collect())
}

/// Refuses what would lead back to itself, or through too many short URLs.
async fn refuse_chains(
    conn: &mut Conn,
    domains: &[ShortDomain],
    planned: &mut [PlannedChange],
) -> Result<(), ServiceError> {
    let written: Vec<(RedirectKey, Vec<Next>)> = planned
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Changed(after) => Some((key(after), nexts_of(&after.redirect))),
            Outcome::Same | Outcome::Refused(_) => None,
        })
        .collect();
    let starts: Vec<Next> = written.iter().flat_map(|(_, nexts)| nexts.iter().cloned()).collect();
    let mut chains = Chains::new(domains, written.into_iter());
    chains.load(conn, starts).await?;
    for one in planned {
        let Outcome::Changed(after) = &one.outcome else { continue };
        let start = key(after);
        let checked =
            nexts_of(&after.redirect).into_iter().find_map(|next| chains.check(&start, Some(next)).err());
        if let Some(fault) = checked {
            one.outcome = Outcome::Refused(format!("It {fault}."));
        }
    }
    Ok(())
}

fn key(link: &Redirection) -> RedirectKey {
    key_of(&link.domain, &link.redirect.short_id)
}
