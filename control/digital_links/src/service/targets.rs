//! Checks where links lead, by what the account and the platform allow.

use std::collections::HashMap;

use catalog::domain::resource::{Product, Thng};
use kernel::{
    error::{CommonError, ServiceError},
    store::Conn,
};
use redirects::store::withheld;
use shared::{
    digital_link::TypedLink,
    id::AccountId,
    target::Target,
    withheld::{and_parents, host_of},
};
use tenants::store::{accounts, tenants as account_table};

/// The links of a resource with the path of each list.
pub(super) type Lists<'a> = Vec<(String, &'a [TypedLink])>;

pub(super) fn of_product(product: &Product) -> Lists<'_> {
    let digital = &product.details.digital;
    let levels = digital.of_levels().iter().enumerate();
    let levels = levels.map(|(index, level)| (format!("levels[{index}].links"), &*level.links));
    std::iter::once(("links".to_owned(), digital.of_gtin())).chain(levels).collect()
}

pub(super) fn of_thng(thng: &Thng) -> Lists<'_> {
    vec![("links".to_owned(), thng.links())]
}

/// Refuses links to hosts that the account does not allow, to hosts that were taken down, and back to this service: a Digital
/// Link leads to no other link, so there are no loops.
///
/// # Errors
/// 400 that names every one.
pub(super) async fn check(
    conn: &mut Conn,
    account: AccountId,
    lists: &Lists<'_>,
) -> Result<(), ServiceError> {
    let mut links: Vec<(&str, usize, &TypedLink)> = Vec::new();
    for (path, list) in lists {
        links.extend(list.iter().enumerate().map(|(index, link)| (path.as_str(), index, link)));
    }
    if links.is_empty() {
        return Ok(());
    }
    let allowed = account_table::find_target_hosts(conn, account).await?;
    let mut hosts: Vec<String> = Vec::new();
    for (_, _, link) in &links {
        if let Some(host) = host_of(&link.href) {
            hosts.extend(and_parents(&host).map(str::to_owned));
        }
    }
    hosts.sort_unstable();
    hosts.dedup();
    let blocked = withheld::take_downs(conn, &[], &hosts).await?;
    // One look for each host: a request may have a thousand products, and there are many domains.
    let mut ours: HashMap<String, bool> = HashMap::new();
    let mut faults = Vec::new();
    for (path, index, link) in links {
        // The tags stand behind the host.
        let sample = link.href.replace(['{', '}'], "0");
        let Ok(target) = Target::parse(&sample) else {
            faults.push(format!("{path}[{index}].href must be an absolute http or https URL."));
            continue;
        };
        let host = target.host().unwrap_or_default();
        let is_ours = match ours.get(&host) {
            Some(is_ours) => *is_ours,
            None => accounts::find_domain(conn, &host).await?.is_some(),
        };
        ours.insert(host, is_ours);
        let fault = if is_ours {
            Some("must not lead to a short domain of this service".to_owned())
        } else {
            allowed.fault(&target).or_else(|| blocked.target_fault(target.as_str()))
        };
        faults.extend(fault.map(|fault| format!("{path}[{index}].href {fault}.")));
    }
    if faults.is_empty() { Ok(()) } else { Err(CommonError::Faults(faults).into()) }
}
