//! What a change makes of one redirection, before it is written.

use shared::{redirect::Redirect, short_url::ShortDomain, time::UnixMillis};

use super::{chains::next_of, plan::target_fault};
use crate::{
    domain::{
        access::Actor,
        grant::Grant,
        redirection::{Redirection, Writable},
        target_hosts::TargetHosts,
    },
    error::{CommonError, RedirectsError},
};

/// What a change does with the descriptive fields that it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// They stay: clients of the contract do not know them.
    Stays,
    /// They go: the change is a whole state.
    Goes,
}

/// Applies a change by a caller to a redirection.
///
/// # Errors
/// The redirection would end before it begins.
pub(super) fn apply(
    item: &mut Redirection,
    (writable, left_out): (&Writable, LeftOut),
    (grant, actor): (&Grant, &Actor),
    at: UnixMillis,
) -> Result<(), RedirectsError> {
    item.redirect.target = writable.target.as_str().into();
    item.redirect.forward_query = writable.forward_query;
    item.redirect.status_code = writable.status_code.or_default(item.redirect.status_code);
    let availability = writable.availability.apply(item.redirect.availability.as_deref());
    item.redirect.availability = availability
        .map_err(|fault| RedirectsError::Availability { fault, short_id: item.redirect.short_id.clone() })?;
    if let Some(scopes) = grant.scopes_of_change(Some(writable.scopes.clone())) {
        item.scopes = scopes;
    }
    item.redirect.projects = item.scopes.project_ids();
    item.redirect.updated_at = at;
    let (details, described) = (std::mem::take(&mut item.details), writable.described.clone());
    item.details = match left_out {
        LeftOut::Stays => details.change(described, actor),
        LeftOut::Goes => details.replace(described, actor),
    };
    Ok(())
}

/// Checks that the account allows the hosts of every target of a change.
///
/// # Errors
/// 400 for the first that it does not.
pub(super) fn check_targets(
    redirect: &Redirect,
    writable: &Writable,
    hosts: &TargetHosts,
    domains: &[ShortDomain],
) -> Result<(), CommonError> {
    for (member, target) in writable.targets() {
        let next = next_of(redirect, target);
        if let Some(fault) = target_fault(hosts, domains, (member, target), next.as_ref()) {
            return Err(CommonError::Faults(vec![fault]));
        }
    }
    Ok(())
}
