//! Counts of a project that no edge reported, and the removal of the counts of a project.

use kernel::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::Accounts, Verb},
    },
    service::access::{Caller, require},
};
use serde_json::json;
use shared::id::ProjectId;
use tracing::instrument;

use super::StatisticsState;
use crate::{
    domain::{
        counted_scan::CountedScan, project::Project, reported_scan::ReportedScan, retention::Kept,
        roll_ups::add_up,
    },
    error::ServiceError,
    store::{documents, project_counts, scan_statistics},
};

/// What the audit trail calls them.
const KIND: &str = "scanCounts";

/// Counts scans of a project; returns how many. Who may change the settings of the account may do so, as statistics rest on it.
///
/// # Errors
/// The key lacks the permission, or there is no such project.
#[instrument(skip_all, fields(entries = scans.len()))]
pub async fn add(
    state: &StatisticsState,
    caller: &Caller,
    project: &str,
    scans: &[ReportedScan],
) -> Result<u64, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let project = find(state, caller, project).await?;
    let _place = state.capacity.write(caller)?;
    let counted: Vec<CountedScan> = scans.iter().map(|one| one.counted(caller.account, project)).collect();
    let rows: Vec<(&CountedScan, bool)> =
        counted.iter().zip(scans).map(|(scan, one)| (scan, one.is_new_device)).collect();
    let count: u64 = scans.iter().map(|one| u64::from(one.count())).sum();
    let mut tx = state.db.begin(&caller.ctx).await?;
    scan_statistics::bound_wait(&mut tx).await?;
    scan_statistics::add(&mut tx, &add_up(&rows, Kept::at(state.clock.now()))).await?;
    tx.note(caller.account, (KIND, project.as_str()), || (None, Some(json!({"scans": count}))));
    tx.commit().await?;
    Ok(count)
}

/// Takes all counts of a project out of the statistics, a day of UTC in each transaction: a removal that was cut short goes on
/// when it is asked for again.
///
/// # Errors
/// The key lacks the permission, or there is no such project.
#[instrument(skip_all)]
pub async fn remove(state: &StatisticsState, caller: &Caller, project: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let project = find(state, caller, project).await?;
    let _place = state.capacity.write(caller)?;
    let account = caller.account;
    let mut is_noted = false;
    loop {
        let mut tx = state.db.begin(&caller.ctx).await?;
        scan_statistics::bound_wait(&mut tx).await?;
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

/// A project of the caller's account.
async fn find(state: &StatisticsState, actor: &Actor, id: &str) -> Result<ProjectId, ServiceError> {
    let not_found = || ServiceError::not_found("project", shorten(id));
    let parsed: ProjectId = id.parse().map_err(|_| not_found())?;
    let mut conn = state.db.read().await?;
    let found: Option<Project> = documents::find(&mut conn, actor.account, parsed).await?;
    found.map(|project| project.id).ok_or_else(not_found)
}
