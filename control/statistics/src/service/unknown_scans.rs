//! Requests for short ids that do not exist: what edges report, and where most come from.

use std::collections::{BTreeMap, HashMap};

use shared::{
    id::AccountId,
    personal_data,
    time::UnixMillis,
    wire::unknown::{MAX_COUNTS, UnknownReport, anywhere},
};
use tracing::instrument;

use super::{Core, StatisticsState, access::require, scan_limits::GONE_MS};
use crate::{
    domain::{
        access::Actor,
        grant::Limit,
        permission::{
            Subject::{PersonalData, Statistics},
            Verb,
        },
        roll_ups::hour,
        unknown_query::UnknownQuery,
    },
    error::{ServiceError, StatisticsError},
    store::{
        Ctx,
        unknown_scans::{self, Key, Top},
    },
};

/// Rows of one hour of an account, beyond which networks are not told apart: somebody with many addresses must not fill
/// the disk, nor make a question to 30 days, some 720,000 rows, last longer than a statement
/// may. It is looked at once for each report, so that reports of one moment may pass it.
const MAX_ROWS: i64 = 1_000;

/// How long counts are kept: 30 days.
pub const KEPT_HOURS: i32 = 30 * 24;

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 5_000;

/// Counts what an edge reported; a report that comes again is not counted again.
///
/// # Errors
/// 400 for a report that is too large.
#[instrument(skip_all)]
pub async fn record(core: &Core, report: &UnknownReport) -> Result<(), ServiceError> {
    if report.counts.len() > MAX_COUNTS {
        let found = report.counts.len();
        return Err(StatisticsError::ReportTooLarge { most: MAX_COUNTS, found }.into());
    }
    let mut domains: Vec<&str> = report.counts.iter().map(|count| &*count.key.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    let owners: HashMap<String, (AccountId, personal_data::PersonalData)> =
        unknown_scans::find_owners(&mut core.db.read().await?, &domains).await?.into_iter().collect();
    let now = hour(core.clock.now().0);
    let mut tx = core.db.begin(&Ctx::default()).await?;
    if !unknown_scans::begin_report(&mut tx, &report.edge, report.boot, report.number).await? {
        return Ok(());
    }
    let mut rows: BTreeMap<Key, i64> = BTreeMap::new();
    let mut full: HashMap<(AccountId, i32), bool> = HashMap::new();
    for count in &report.counts {
        let Some((account, kept)) = owners.get(&*count.key.domain).copied() else { continue };
        // An edge whose clock is wrong has requests, too: they are of now.
        let hour =
            i32::try_from(count.key.hour).ok().filter(|hour| (now - KEPT_HOURS..=now + 1).contains(hour));
        let hour = hour.unwrap_or(now);
        let is_full = match full.get(&(account, hour)) {
            Some(is_full) => *is_full,
            None => {
                let is_full = unknown_scans::count(&mut tx, account, hour, MAX_ROWS).await? >= MAX_ROWS;
                full.insert((account, hour), is_full);
                is_full
            }
        };
        // An edge that is one release older reports networks of every account.
        let is_hidden = is_full || kept == personal_data::PersonalData::None;
        let network = if is_hidden { anywhere() } else { count.key.network };
        let key = Key { account, hour, domain: count.key.domain.to_string(), network: network.to_string() };
        *rows.entry(key).or_default() += i64::from(count.requests);
    }
    unknown_scans::add(&mut tx, &rows).await?;
    Ok(tx.commit().await?)
}

/// Where most requests for unknown ids came from; networks are shown to whoever sees personal data.
///
/// # Errors
/// The role does not allow statistics, or the key is not of the whole account, to which domains belong.
#[instrument(skip_all)]
pub async fn list_top(
    state: &StatisticsState,
    actor: &Actor,
    query: &UnknownQuery,
) -> Result<Top, ServiceError> {
    if require(actor, Verb::List, Statistics)?.limit() != &Limit::Account {
        return Err(StatisticsError::UnknownIdsOfAccount.into());
    }
    let with_networks = require(actor, Verb::Read, PersonalData).is_ok();
    let _permit = state.read_permit(actor.account).await;
    let mut conn = state.db.read().await?;
    let domain = query.domain.as_deref().unwrap_or_default();
    Ok(unknown_scans::list_top(&mut conn, actor.account, query.range, domain, query.top, with_networks)
        .await?)
}

/// Removes counts of long ago, and what is known of edges that are gone; returns how many rows.
#[instrument(skip_all)]
pub async fn purge(core: &Core) -> Result<u64, ServiceError> {
    let now = core.clock.now();
    let before = hour(now.0) - KEPT_HOURS;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let since = UnixMillis(now.0.saturating_sub(GONE_MS));
    let mut gone = unknown_scans::forget_reports(&mut tx, since).await?;
    tx.commit().await?;
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let step = unknown_scans::purge(&mut tx, before, PURGE_STEP).await?;
        tx.commit().await?;
        gone += step;
        if step < u64::from(PURGE_STEP) {
            return Ok(gone);
        }
    }
}
