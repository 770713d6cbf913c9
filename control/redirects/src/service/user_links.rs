//! What an application lets its users link to.

use super::user_rules::{UserRules, forbid};
use crate::{
    domain::redirection::{Draft, Writable},
    error::ServiceError,
};

/// Refuses redirections that the application does not allow; checks all of a request.
pub(super) fn check_drafts<'a>(
    rules: &UserRules,
    drafts: impl Iterator<Item = (String, &'a Draft)>,
) -> Result<(), ServiceError> {
    check_links(rules)?;
    let mut faults = Vec::new();
    for (prefix, draft) in drafts {
        if draft.short_id.is_some() {
            faults.push(format!("{prefix}shortId: the application's users may not choose it."));
        }
        faults.extend(target_faults(rules, &draft.writable).map(|fault| format!("{prefix}{fault}")));
    }
    forbid(faults)
}

/// Refuses a target that the application does not allow.
pub(super) fn check_target(rules: &UserRules, writable: &Writable) -> Result<(), ServiceError> {
    check_links(rules)?;
    forbid(target_faults(rules, writable).collect())
}

/// The faults of a redirection's targets.
fn target_faults(rules: &UserRules, writable: &Writable) -> impl Iterator<Item = String> {
    writable.targets().filter_map(|(member, target)| {
        let host = target.host().unwrap_or_default();
        (!rules.redirect_hosts().contains(&host))
            .then(|| format!("{member}: the application's users may not link to the host {host}."))
    })
}

fn check_links(rules: &UserRules) -> Result<(), ServiceError> {
    if rules.redirect_hosts().is_empty() {
        let fault = "The application lists no redirectHosts: its users have no redirections.";
        return forbid(vec![fault.to_owned()]);
    }
    Ok(())
}
