//! Checks of redirections before they are written: against the store, and against each other.

use std::collections::{HashMap, HashSet};

use shared::{
    availability::Availability,
    id::{AccountId, ProductId, ProjectId, ThngId},
    redirect::{Redirect, RedirectKey},
    redirect_status::RedirectStatus,
    short_id::ShortId,
    short_url::{ShortDomain, is_short_url},
    target::{TagValues, Target},
    time::UnixMillis,
};

use super::{
    chains::{Chains, Next},
    load::blocked_hosts,
    resolve::all_domains,
};
use crate::{
    domain::{
        access::Actor,
        grant::{Grant, Limit},
        link_details::LinkDetails,
        redirection::Draft,
        scopes::Scopes,
        target_hosts::TargetHosts,
    },
    error::{CommonError, RedirectsError, ServiceError},
    store::{
        Conn, Tx, redirections as table,
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

pub(super) type Planned = Vec<Result<Ready, RedirectsError>>;

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
    let (hosts, is_unproven) = tenants::find_link_rules(tx, account, domain.host.as_str()).await?;
    if is_unproven {
        return Err(RedirectsError::DomainUnproven(domain.host.to_string()).into());
    }
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
    let domains = all_domains(tx).await?;
    let targets = items.iter().flatten().flat_map(|draft| draft.writable.targets());
    let targets = targets.map(|(_, target)| target.as_str());
    let blocked = blocked_hosts(tx, targets).await?;
    let next = |draft: &Draft, id: &ShortId, target: &Target| {
        let owner = owners.get(draft.platform_id.as_str());
        let (thng, product) = owner.map_or((None, None), |owner| (owner.thng, owner.product));
        target.as_short_url(&TagValues {
            short_id: id.as_str(),
            platform_id: draft.platform_id.as_str(),
            thng_id: thng.as_ref().map(ThngId::as_str),
            product_id: product.as_ref().map(ProductId::as_str),
        })
    };
    let nexts = |draft: &Draft, id: &ShortId| -> Vec<Next> {
        draft.writable.targets().filter_map(|(_, target)| next(draft, id, target)).collect()
    };
    let written = items.iter().zip(&wanted).filter_map(|(item, id)| {
        let (draft, id) = (item.as_ref().ok()?, id.as_ref()?);
        Some((key_of(domain, id), nexts(draft, id)))
    });
    let written: Vec<(RedirectKey, Vec<Next>)> = written.collect();
    let starts = written.iter().flat_map(|(_, nexts)| nexts.iter().cloned()).collect();
    let mut chains = Chains::new(&domains, written.into_iter());
    chains.load(tx, starts).await?;
    let mut spare = spare.into_iter();
    let mut planned = Vec::with_capacity(items.len());
    for (item, id) in items.into_iter().zip(wanted) {
        let (draft, mut id) = match (item, id) {
            (Ok(draft), Some(id)) => (draft, id),
            (Ok(_), None) => return Err(ServiceError::Internal("a draft without a short id".to_owned())),
            (Err(faults), _) => {
                planned.push(Err(CommonError::Faults(faults).into()));
                continue;
            }
        };
        if draft.short_id.is_none() && taken.contains(&*domain.fold(&id)) {
            // One in 10^6 at 10^9 links: another candidate, else the caller repeats.
            id = spare.find(|other| !taken.contains(&*domain.fold(other))).unwrap_or(id);
            chains.load(tx, nexts(&draft, &id)).await?;
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
        let refused = draft.short_id.as_ref().and_then(|id| domain.fault_of(id));
        faults.extend(refused.map(|fault| format!("shortId: {fault}.")));
        let key = RedirectKey::new(domain.host.as_str(), &folded);
        for (member, target) in draft.writable.targets() {
            let next = next(&draft, &id, target);
            faults.extend(target_fault(&hosts, &domains, (member, target), next.as_ref()));
            let blocked = blocked.target_fault(target.as_str());
            faults.extend(blocked.map(|fault| format!("{member} {fault}.")));
            faults.extend(chains.check(&key, next).err().map(|fault| format!("{member} {fault}.")));
        }
        let availability = match draft.writable.availability.apply(None) {
            Ok(availability) => availability,
            Err(fault) => {
                faults.push(format!("{fault}."));
                None
            }
        };
        let Some(owner) = owner.filter(|_| faults.is_empty()) else {
            planned.push(Err(CommonError::Faults(faults).into()));
            continue;
        };
        if !taken.insert(folded.to_string()) {
            planned.push(Err(RedirectsError::ShortIdTaken { short_id: id, host: domain.host.to_string() }));
            continue;
        }
        let scopes = grant.scopes_of_new(Some(draft.writable.scopes.clone())).unwrap_or_default();
        let redirect = redirect((domain, id), owner, &draft, availability, scopes.project_ids(), at);
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
    (member, target): (&str, &Target),
    next: Option<&Next>,
) -> Option<String> {
    let is_ours = next.is_some_and(|(host, path)| is_short_url(domains, (host.as_str(), path.as_str())));
    let hosts = TargetHosts { private: hosts.private || is_ours, only: hosts.only.clone() };
    hosts.fault(target).map(|fault| format!("{member} {fault}."))
}

fn redirect(
    (domain, short_id): (&ShortDomain, ShortId),
    owner: &Resource,
    draft: &Draft,
    availability: Option<Box<Availability>>,
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
        status_code: draft.writable.status_code.or_default(RedirectStatus::default()),
        availability,
        digital_link: None,
        created_at: at,
        updated_at: at,
    }
}
