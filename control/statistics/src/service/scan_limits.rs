//! Links that end after a number of scans: what edges counted of them.

use std::collections::{BTreeMap, BTreeSet};

use redirects::{
    domain::redirection::Redirection,
    store::{log, redirections},
};
use shared::{
    availability::Availability,
    redirect::RedirectKey,
    time::UnixMillis,
    wire::{
        limits::{LimitReport, LimitedScans, MAX_COUNTS},
        stream::{Change, Event, Rev},
    },
};
use tracing::instrument;

use super::Core;
use crate::{
    error::{ServiceError, StatisticsError},
    store::{Conn, Ctx, StoreError, Tx, scan_limits},
};

/// How long an edge had no valid key before its counts are added to those of others.
pub(super) const GONE_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// The name of what edges that are gone counted together: no edge has it.
const GONE: &str = "";

/// Stores the counts of an edge, and publishes them to all edges. A repeated report, or one with lower counts, changes nothing.
///
/// The counts are part of the record of a link, so every edge gets them as it gets a change, by stream and view alike. The
/// revision of the link itself stays: no `ETag` and no undo notices that somebody scanned.
///
/// # Errors
/// 400 for a report that is too large.
#[instrument(skip_all)]
pub async fn record(core: &Core, report: &LimitReport) -> Result<(), ServiceError> {
    if report.counts.len() > MAX_COUNTS {
        let found = report.counts.len();
        return Err(StatisticsError::ReportTooLarge { most: MAX_COUNTS, found }.into());
    }
    // Most reports that come again end here, without the lock of the change log.
    if load_behind(&mut core.db.read().await?, report).await?.is_empty() {
        return Ok(());
    }
    let mut tx = core.db.begin(&Ctx::default()).await?;
    log::lock(&mut tx).await?;
    let mut behind = load_behind(&mut tx, report).await?;
    if behind.is_empty() {
        return Ok(());
    }
    merge_gone(&mut tx, &mut behind, (&report.edge, core.clock.now())).await?;
    let first = log::take_revs(&mut tx, behind.len() as u64).await?;
    scan_limits::update(&mut tx, &behind).await?;
    let event = |(rev, (key, link)): (Rev, (RedirectKey, Redirection))| Event {
        rev,
        change: Change::Redirect(key, Some(link.redirect.into())),
    };
    let events: Vec<Event> = (first..).zip(behind).map(event).collect();
    log::append(&mut tx, core.clock.now().0, &events).await?;
    tx.commit().await?;
    core.readers.wake_edges();
    Ok(())
}

/// Adds up what edges counted that are gone, so that records do not grow with each name that an edge ever had. One that comes
/// back under its name, with its file, reports its total once more: the guide "Links with an end" says what to do.
async fn merge_gone(
    tx: &mut Tx,
    links: &mut [(RedirectKey, Redirection)],
    (reporter, now): (&str, UnixMillis),
) -> Result<(), StoreError> {
    let counted = links.iter().filter_map(|(_, link)| link.redirect.availability.as_deref());
    let edges: BTreeSet<String> = counted
        .flat_map(|availability| availability.scans.keys())
        .filter(|edge| ![reporter, GONE].contains(&&***edge))
        .map(|edge| edge.to_string())
        .collect();
    if edges.is_empty() {
        return Ok(());
    }
    let edges: Vec<String> = edges.into_iter().collect();
    let since = UnixMillis(now.0.saturating_sub(GONE_MS));
    let gone = scan_limits::list_gone(tx, &edges, since).await?;
    for (_, link) in links {
        if let Some(availability) = link.redirect.availability.as_deref_mut() {
            merge(availability, &gone);
        }
    }
    Ok(())
}

fn merge(availability: &mut Availability, gone: &[String]) {
    for edge in gone {
        if let Some(scans) = availability.scans.remove(edge.as_str()) {
            let all = availability.scans.entry(GONE.into()).or_default();
            *all = all.saturating_add(scans);
        }
    }
}

/// The links of a report of which the edge counted more than is stored, with its counts in them.
async fn load_behind(
    conn: &mut Conn,
    report: &LimitReport,
) -> Result<Vec<(RedirectKey, Redirection)>, ServiceError> {
    let mut domains: BTreeMap<&str, BTreeMap<&str, &LimitedScans>> = BTreeMap::new();
    for reported in &report.counts {
        domains.entry(&reported.domain).or_default().insert(&reported.folded, reported);
    }
    let mut behind = Vec::new();
    for (domain, counts) in domains {
        let folded: Vec<String> = counts.keys().map(|folded| (*folded).to_owned()).collect();
        for mut link in redirections::list_any(conn, domain, &folded).await? {
            let key = RedirectKey::new(domain, &link.domain.fold(&link.redirect.short_id));
            let Some(reported) = counts.get(&*key.folded) else { continue };
            let is_same = reported.created_at == link.redirect.created_at;
            // A link whose limit is gone keeps its counts: a new limit goes on from there.
            let Some(availability) = link.redirect.availability.as_mut().filter(|_| is_same) else {
                continue;
            };
            // No edge counts without a limit, or beyond it. So whoever has the key of an edge ends only links that have a limit,
            // and a higher limit opens them again.
            let Some(most) = availability.max_scans else { continue };
            let scans = availability.scans.get(&report.edge).copied().unwrap_or_default();
            let reported = reported.scans.min(most);
            if reported > scans {
                availability.scans.insert(report.edge.clone(), reported);
                behind.push((key, link));
            }
        }
    }
    Ok(behind)
}
