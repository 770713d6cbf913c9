//! Checks of redirections before they are written: against the store, and against each other.

use std::collections::{HashMap, HashSet};

use shared::{
    id::{AccountId, ProductId, ProjectId, ThngId},
    problem::Code,
    redirect::{Redirect, RedirectKey},
    short_id::ShortId,
    short_url::ShortDomain,
    target::{TagValues, Target},
    time::UnixMillis,
};

use super::load::blocked_hosts;
use crate::{
    domain::{
        access::Actor,
        grant::{Grant, Limit},
        link_details::LinkDetails,
        redirection::{Draft, MAX_CHAIN},
        scopes::Scopes,
        target_hosts::TargetHosts,
    },
    error::ServiceError,
    store::{
        Conn, Tx, accounts, redirections as table,
        resources::{self, Resource},
        scopes, tenants,
    },
};

/// The key by which edges find a short id.
pub(super) fn key_of(domain: &ShortDomain, short_id: &ShortId) -> RedirectKey {
    RedirectKey::new(domain.host.as_str(), &domain.fold(short_id))
}

/// Resources of the account by id.
pub(super) async fn owners(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<HashMap<String, Resource>, ServiceError> {
    // An import is often of one product alone.
    let ids: Vec<String> = ids.iter().collect::<HashSet<_>>().into_iter().cloned().collect();
    let found = resources::list(conn, account, &ids).await?;
    Ok(found.into_iter().map(|resource| (resource.id.to_string(), resource)).collect())
}

/// A redirection that passed every check and has its short id.
pub(super) struct Ready {
    pub folded: Box<str>,
    pub redirect: Redirect,
    pub scopes: Scopes,
    pub details: LinkDetails,
}

pub(super) type Planned = Vec<Result<Ready, (Code, Vec<String>)>>;

/// Checks drafts against the store and against each other, and gives out short ids.
pub(super) async fn plan(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    domain: &ShortDomain,
    items: Vec<Result<Draft, Vec<String>>>,
    candidates: Vec<[u8; 16]>,
    at: UnixMillis,
) -> Result<Planned, ServiceError> {
    let account = actor.account;
    let mut generated = candidates.into_iter().map(ShortId::generate);
    let wanted: Vec<Option<ShortId>> = items
        .iter()
        .map(|item| item.as_ref().ok().and_then(|draft| draft.short_id.clone().or_else(|| generated.next())))
        .collect();
    let spare: Vec<ShortId> = generated.collect();
    let folded: Vec<String> =
        wanted.iter().flatten().chain(&spare).map(|id| domain.fold(id).into()).collect();
    let mut taken: HashSet<String> =
        table::list_taken(tx, domain.host.as_str(), &folded).await?.into_iter().collect();
    let ids: Vec<String> = items.iter().flatten().map(|draft| draft.platform_id.to_string()).collect();
    let mut owners = owners(tx, account, &ids).await?;
    if *grant.limit() != Limit::Account {
        // A resource outside the caller's scope does not exist for it.
        let scopes = scopes::list(tx, account, &ids).await?;
        owners.retain(|id, _| grant.admits(id, scopes.get(id)));
    }
    let domains = accounts::list_all_domains(tx).await?;
    let hosts = tenants::find_target_hosts(tx, account).await?;
    let targets = items.iter().flatten().map(|draft| draft.writable.target.as_str());
    let blocked = blocked_hosts(tx, targets).await?;
    let next = |draft: &Draft, id: &ShortId| {
        let owner = owners.get(draft.platform_id.as_str());
        let (thng, product) = owner.map_or((None, None), |owner| (owner.thng, owner.product));
        draft.writable.target.as_short_url(&TagValues {
            short_id: id.as_str(),
            platform_id: draft.platform_id.as_str(),
            thng_id: thng.as_ref().map(ThngId::as_str),
            product_id: product.as_ref().map(ProductId::as_str),
        })
    };
    let overlay: HashMap<RedirectKey, Next> = items
        .iter()
        .zip(&wanted)
        .filter_map(|(item, id)| {
            let (draft, id) = (item.as_ref().ok()?, id.as_ref()?);
            Some((key_of(domain, id), next(draft, id)))
        })
        .collect();
    let mut spare = spare.into_iter();
    let mut planned = Vec::with_capacity(items.len());
    for (item, id) in items.into_iter().zip(wanted) {
        let (draft, mut id) = match (item, id) {
            (Ok(draft), Some(id)) => (draft, id),
            (Ok(_), None) => return Err(ServiceError::Internal("a draft without a short id".to_owned())),
            (Err(faults), _) => {
                planned.push(Err((Code::Invalid, faults)));
                continue;
            }
        };
        if draft.short_id.is_none() && taken.contains(&*domain.fold(&id)) {
            // One in 10^6 at 10^9 links: another candidate, else the caller repeats.
            id = spare.find(|other| !taken.contains(&*domain.fold(other))).unwrap_or(id);
        }
        let folded = domain.fold(&id);
        let mut faults = Vec::new();
        let owner = owners.get(draft.platform_id.as_str());
        match owner {
            // Spec gap: what an unknown resource in a body answers is not shown; 400, as in a path it is 404.
            None => faults.push(format!("platformId: {} was not found in this account.", draft.platform_id)),
            Some(owner) if draft.resource_type.is_some_and(|kind| kind != owner.kind) => {
                faults.push(format!("type: {} is a {}.", draft.platform_id, owner.kind.as_str()));
            }
            Some(_) => {}
        }
        let is_same =
            |named| ShortDomain::new(domain.scheme, named).is_ok_and(|named| named.host == domain.host);
        if draft.short_domain.as_deref().is_some_and(|named| !is_same(named)) {
            faults.push(format!("shortDomain must be {} in this request.", domain.host));
        }
        let next = next(&draft, &id);
        faults.extend(target_fault(&hosts, &domains, &draft.writable.target, &next));
        let blocked = blocked.target_fault(draft.writable.target.as_str());
        faults.extend(blocked.map(|fault| format!("defaultRedirectUrl {fault}.")));
        let key = RedirectKey::new(domain.host.as_str(), &folded);
        match check_chain(tx, &domains, &overlay, &key, next).await {
            Ok(()) => {}
            Err(ServiceError::Refused { errors, .. }) => faults.extend(errors),
            Err(error) => return Err(error),
        }
        let Some(owner) = owner.filter(|_| faults.is_empty()) else {
            planned.push(Err((Code::Invalid, faults)));
            continue;
        };
        if !taken.insert(folded.to_string()) {
            let text = format!("shortId: {id} is taken on {}.", domain.host);
            planned.push(Err((Code::ShortIdTaken, vec![text])));
            continue;
        }
        let scopes = grant.scopes_of_new(Some(draft.writable.scopes.clone())).unwrap_or_default();
        let redirect = redirect(domain, id, owner, &draft, scopes.project_ids(), at);
        let details = LinkDetails::new(draft.writable.described, actor);
        planned.push(Ok(Ready { folded, redirect, scopes, details }));
    }
    Ok(planned)
}

/// The fault of a target whose host the account does not allow.
///
/// Short domains of this service may have private addresses, as on a machine for development: where such a link
/// leads in the end is checked for itself.
pub(super) fn target_fault(
    hosts: &TargetHosts,
    domains: &[ShortDomain],
    target: &Target,
    next: &Next,
) -> Option<String> {
    let is_ours =
        next.as_ref().is_some_and(|(host, _)| domains.iter().any(|domain| domain.host.as_str() == host));
    let hosts = TargetHosts { private: hosts.private || is_ours, only: hosts.only.clone() };
    hosts.fault(target).map(|fault| format!("defaultRedirectUrl {fault}."))
}

fn redirect(
    domain: &ShortDomain,
    short_id: ShortId,
    owner: &Resource,
    draft: &Draft,
    projects: Box<[ProjectId]>,
    at: UnixMillis,
) -> Redirect {
    Redirect {
        domain: domain.host.clone(),
        short_id,
        resource_type: owner.kind,
        platform_id: draft.platform_id,
        thng_id: owner.thng,
        product_id: owner.product,
        thng_name: owner.thng_name.clone(),
        standing: owner.standing,
        projects,
        target: draft.writable.target.as_str().into(),
        forward_query: draft.writable.forward_query,
        created_at: at,
        updated_at: at,
    }
}

/// Host and first segment of a target with its tags expanded, if it may be a short URL.
pub(super) type Next = Option<(String, String)>;

/// Where a stored redirection leads.
pub(super) fn next_of(redirect: &Redirect) -> Next {
    Target::parse(&redirect.target).ok()?.as_short_url(&TagValues {
        short_id: redirect.short_id.as_str(),
        platform_id: redirect.platform_id.as_str(),
        thng_id: redirect.thng_id.as_ref().map(ThngId::as_str),
        product_id: redirect.product_id.as_ref().map(ProductId::as_str),
    })
}

/// Follows a target through our own short URLs: the chain must not return, nor exceed a few steps.
///
/// `overlay` holds what the same request is about to write.
pub(super) async fn check_chain(
    conn: &mut Conn,
    domains: &[ShortDomain],
    overlay: &HashMap<RedirectKey, Next>,
    start: &RedirectKey,
    mut next: Next,
) -> Result<(), ServiceError> {
    let refuse =
        |text: &str| Err(ServiceError::refused(Code::Invalid, format!("defaultRedirectUrl {text}.")));
    for _ in 0..MAX_CHAIN {
        let Some((host, segment)) = next else { return Ok(()) };
        let Some(domain) = domains.iter().find(|domain| domain.host.as_str() == host) else { return Ok(()) };
        let Ok(short_id) = segment.parse::<ShortId>() else { return Ok(()) };
        let key = key_of(domain, &short_id);
        if key == *start {
            return refuse("leads back to the short URL itself");
        }
        next = match overlay.get(&key) {
            Some(next) => next.clone(),
            None => table::find_any(conn, &key.domain, &key.folded)
                .await?
                .and_then(|item| next_of(&item.redirect)),
        };
    }
    refuse("leads through more than 5 short URLs")
}
