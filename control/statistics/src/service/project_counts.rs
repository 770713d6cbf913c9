//! Scans of a demo in the statistics, which no edge reported, and their removal.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kernel::{
    domain::{
        limits::shorten,
        permission::{Subject::Accounts, Verb},
        role::{self, ADMIN},
    },
    service::access::{Caller, require},
};
use redirects::store::{accounts, redirections};
use serde_json::json;
use shared::{
    id::{AccountId, ProductId, ProjectId},
    time::UnixMillis,
};
use tracing::instrument;

use super::StatisticsState;
use crate::{
    domain::{
        counted_scan::CountedScan,
        demo,
        project::Project,
        reported_scan::{MAX_AHEAD_MS, ReportedScan},
        resource::Product,
        retention::Kept,
        roll_ups::add_up,
    },
    error::{CommonError, ServiceError, StatisticsError},
    store::{Conn, documents, project_counts, roll_up_writes},
};

/// What the audit trail calls them.
const KIND: &str = "scanCounts";

/// Counts scans of a demo; returns how many.
///
/// # Errors
/// The key is not of an owner or an admin, there is no such project, no demo made it, a scan is of a product or link that is
/// not the demo's, or more than a day ahead.
#[instrument(skip_all, fields(entries = scans.len()))]
pub async fn add(
    state: &StatisticsState,
    caller: &Caller,
    project: &str,
    scans: &[ReportedScan],
) -> Result<u64, ServiceError> {
    let project = find(state, caller, project).await?;
    let _place = state.capacity.write(caller)?;
    let now = state.clock.now();
    check_scans(&mut state.db.read().await?, (caller.account, project), scans, now).await?;
    let counted: Vec<CountedScan> = scans.iter().map(|one| one.counted(caller.account, project)).collect();
    let rows: Vec<(&CountedScan, bool)> =
        counted.iter().zip(scans).map(|(scan, one)| (scan, one.is_new_device)).collect();
    let count: u64 = scans.iter().map(|one| u64::from(one.count())).sum();
    let mut tx = state.db.begin(&caller.ctx).await?;
    roll_up_writes::take_turn(&mut tx, &BTreeSet::from([caller.account])).await?;
    roll_up_writes::add(&mut tx, &add_up(&rows, Kept::at(now))).await?;
    tx.note(caller.account, (KIND, project.as_str()), || (None, Some(json!({"scans": count}))));
    tx.commit().await?;
    Ok(count)
}

/// Takes all counts of the project of a demo out of the statistics, a day of UTC in each transaction: a removal that was cut
/// short goes on when it is asked for again.
///
/// # Errors
/// The key is not of an owner or an admin, there is no such project, or no demo made it.
#[instrument(skip_all)]
pub async fn remove(state: &StatisticsState, caller: &Caller, project: &str) -> Result<(), ServiceError> {
    let project = find(state, caller, project).await?;
    let _place = state.capacity.write(caller)?;
    let account = caller.account;
    let mut is_noted = false;
    loop {
        let mut tx = state.db.begin(&caller.ctx).await?;
        roll_up_writes::take_turn(&mut tx, &BTreeSet::from([account])).await?;
        if !is_noted {
            let scans = project_counts::total(&mut tx, account, project).await?;
            tx.note(account, (KIND, project.as_str()), || (Some(json!({"scans": scans})), None));
            is_noted = true;
        }
        let day = project_counts::find_first_day(&mut tx, account, project).await?;
        if let Some(day) = day {
            project_counts::remove_day(&mut tx, account, project, day).await?;
        }
        tx.commit().await?;
        if day.is_none() {
            return Ok(());
        }
    }
}

/// The project of a demo, for callers who may change its counts: statistics rest on them, so nobody adds to those of other
/// projects, whatever its role.
async fn find(state: &StatisticsState, caller: &Caller, id: &str) -> Result<ProjectId, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    // Roles that an account has made may hold this permission, too.
    let may_all = role::permissions_of(ADMIN).is_some_and(|all| caller.permissions.cover(&all));
    if !may_all {
        return Err(StatisticsError::CountsOfDemo.into());
    }
    let not_found = || ServiceError::not_found("project", shorten(id));
    let parsed: ProjectId = id.parse().map_err(|_| not_found())?;
    let mut conn = state.db.read().await?;
    let found: Option<Project> = documents::find(&mut conn, caller.account, parsed).await?;
    let project = found.ok_or_else(not_found)?;
    if project.details.is_demo { Ok(project.id) } else { Err(StatisticsError::NoDemo(project.id).into()) }
}

/// Refuses scans of products and links that are not the demo's, and those that are still to come.
async fn check_scans(
    conn: &mut Conn,
    (account, project): (AccountId, ProjectId),
    scans: &[ReportedScan],
    now: UnixMillis,
) -> Result<(), ServiceError> {
    let named: BTreeSet<String> =
        scans.iter().filter_map(ReportedScan::product).map(|id| id.to_string()).collect();
    let named: Vec<String> = named.into_iter().collect();
    let found: Vec<Product> = documents::find_many(conn, account, &named).await?;
    let products: HashSet<ProductId> = found
        .iter()
        .filter(|product| {
            let common = &product.details.common;
            let (tags, fields) = (common.tags.as_deref(), common.custom_fields.as_ref());
            common.scopes.as_ref().is_some_and(|scopes| demo::is_resource(project, scopes, tags, fields))
        })
        .map(|product| product.id)
        .collect();
    // A statement for each domain, and none for hosts that the account does not have.
    let domains = accounts::list_domains(conn, account).await?;
    let is_own = |host: &str| domains.iter().any(|domain| domain.host.as_str() == host);
    let mut by_host: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let named = scans.iter().filter_map(|scan| scan.link().split_once('/'));
    for (host, short_id) in named.filter(|(host, _)| is_own(host)) {
        // As a domain keeps it that tells capital letters from small ones, and as the others do.
        by_host.entry(host).or_default().extend([short_id.to_owned(), short_id.to_ascii_uppercase()]);
    }
    let mut links = HashSet::new();
    for (host, folded) in by_host {
        let folded: Vec<String> = folded.into_iter().collect();
        for link in redirections::find_many(conn, host, &folded, account).await? {
            let described = &link.details.described;
            let (tags, fields) = (described.tags.as_deref(), described.custom_fields.as_ref());
            if demo::is_resource(project, &link.scopes, tags, fields) {
                links.insert(format!("{host}/{}", link.redirect.short_id.as_str()));
            }
        }
    }
    let mut faults = Vec::new();
    for (at, scan) in scans.iter().enumerate() {
        if scan.at().0 > now.0.saturating_add(MAX_AHEAD_MS) {
            faults.push(format!("scans[{at}].timestamp: {} is more than a day ahead.", scan.at().0));
        }
        if let Some(product) = scan.product()
            && !products.contains(&product)
        {
            faults.push(format!("scans[{at}].product: {product} is no product of the demo."));
        }
        let link = scan.link();
        if !link.is_empty() && !links.contains(link) {
            faults.push(format!("scans[{at}].link: {link} is no link of the demo."));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(CommonError::Faults(faults).into()) }
}
