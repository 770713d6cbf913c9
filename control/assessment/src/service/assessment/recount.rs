//! Counts the greatest points of an item again, from its stored scans and by the rules of now.

use shared::id::{AccountId, ThngId};

use super::{
    facts::{Gathered, of_thng},
    history::{History, observed},
    observe::ScanSources,
    replay::{nothing, trigger_of},
    settings::effective,
};
use crate::{
    domain::{
        action_names::TriggerType,
        assessment::{
            assess,
            peak::{ByScan, Peak},
            profile::Profile,
        },
        resource::Thng,
        scan_source::Source,
    },
    error::ServiceError,
    store::{
        Tx, documents,
        item_standings::{self, Kept},
    },
};

/// Replaces the greatest points of an item, whose row the transaction has locked, by what its scans reach now: each is
/// judged after those before it, as if it had been assessed when it came. Scans of public keys reach none.
///
/// Nothing changes for an item that was never assessed, or none of whose scans is stored.
pub(super) async fn peak(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    kept: Kept,
    mut history: History,
) -> Result<(), ServiceError> {
    let Some(item): Option<Thng> = documents::find(tx, account, thng).await? else { return Ok(()) };
    if kept.peak.is_none() {
        return Ok(());
    }
    let of_account = effective(tx, account, &[], None).await?;
    // What people decided stays as it is; the points are counted without it.
    let mut item = of_thng(sources, tx, account, &item, nothing()).await?;
    (item.peak, item.profile) = (None, Profile::default());
    history.scans.sort_by_key(|scan| (scan.timestamp, scan.id));
    let mut greatest = None;
    for (number, scan) in history.scans.iter().enumerate() {
        // Some milliseconds of work each.
        if number % 64 == 63 {
            tokio::task::yield_now().await;
        }
        let Some(seen) = observed(scan, &of_account, history.devices) else { continue };
        item.profile.add(&seen);
        let Ok(kind) = scan.kind.parse::<TriggerType>() else { continue };
        if seen.source == Source::Public {
            continue;
        }
        let (trigger, countries) = trigger_of(scan, history.devices);
        let by = ByScan { scan: scan.id, at: trigger.at };
        item = Gathered { trigger, countries, source: seen.source, ..item };
        let found = assess(&item.facts(kind));
        greatest = Some(Peak::raised(greatest, Peak::of_scan(found.points, found.level, by, found.since)));
    }
    let Some(greatest) = greatest else { return Ok(()) };
    let scanned_at = kept.stood.and_then(|stood| stood.at);
    Ok(item_standings::put(tx, account, thng, scanned_at, kept.judged.as_ref(), &greatest).await?)
}
