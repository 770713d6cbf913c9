//! The scans of a Thng from its stored actions, from which its profile is rebuilt.

use scan_store::FIRST_SEQ;
use shared::id::{AccountId, ThngId};

use super::{
    observe::{ScanSources, device_of, seen},
    recount,
    settings::effective,
};
use crate::{
    domain::{
        action::Action,
        action_names::TriggerType,
        assessment::{
            profile::{Observation, Profile, SessionKey},
            settings::Settings,
        },
        device::AccountDevices,
        grant::Limit,
        listing::ListRequest,
        page::PageRequest,
        scan_source::Source,
    },
    error::ServiceError,
    service::AssessmentState,
    store::{
        Conn, Ctx, Tx, item_standings,
        listing::Selection,
        merged_lists,
        scan_profiles::{self, Outdated},
    },
};

/// Most scans from which a profile is rebuilt when one is deleted: some 100 ms of work.
const MAX_REBUILT: usize = 5_000;

/// Scans read at a time.
const STEP: u32 = 100;

/// Scans of a Thng.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    /// The ones that were stored last, of each type.
    pub(super) scans: Vec<Action>,
    /// Whether there are no more.
    pub(super) is_whole: bool,
    /// What tells their devices apart.
    pub(super) devices: AccountDevices,
}

impl History {
    /// Reads the last scans of a Thng: of each type this many and at most one page more.
    pub(super) async fn read(
        sources: ScanSources<'_>,
        conn: &mut Conn,
        account: AccountId,
        limit: &Limit,
        thng: ThngId,
        most: usize,
    ) -> Result<Self, ServiceError> {
        let devices = sources.devices.of(account);
        let mut history = Self { scans: Vec::new(), is_whole: true, devices };
        let id = thng.to_string();
        for kind in TriggerType::ALL.into_iter().filter(|kind| kind.is_profiled()) {
            let (mut page, mut count) = (PageRequest { per_page: STEP, ..PageRequest::default() }, 0);
            loop {
                let within = [("thng", id.as_str()), ("type", kind.as_str())];
                let request = ListRequest { page, ..ListRequest::default() };
                let selection = Selection { account, limit, request: &request, within: &within };
                let found = merged_lists::list(sources.scans, conn, &selection).await?;
                count += found.items.len();
                history.scans.extend(found.items);
                page.after = found.next;
                if page.after.is_none() {
                    break;
                }
                if count >= most {
                    history.is_whole = false;
                    break;
                }
            }
        }
        Ok(history)
    }

    /// The position of the last scan by an edge.
    pub(super) fn read_to(&self) -> i64 {
        let by_edges = self.scans.iter().map(|scan| scan.seq).filter(|seq| *seq >= FIRST_SEQ);
        by_edges.max().unwrap_or_default()
    }

    /// The profile of these scans under some settings.
    pub(super) fn profile(&self, settings: &Settings) -> Profile {
        let observed = self.scans.iter().filter_map(|scan| observed(scan, settings, self.devices));
        Profile::of(&observed.collect::<Vec<_>>())
    }
}

/// A stored scan as the profile takes it; `None` for one that it leaves out.
pub(super) fn observed(scan: &Action, settings: &Settings, devices: AccountDevices) -> Option<Observation> {
    let is_implicit = scan.kind == TriggerType::ImplicitScans.as_str();
    seen(&scan.members, (scan.timestamp, scan.created_at), is_implicit, settings, devices)
}

/// Rebuilds the profile of a Thng from its scans, in a transaction that has locked it.
pub(super) async fn rebuild(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    settings: &Settings,
) -> Result<(), ServiceError> {
    let history = History::read(sources, tx, account, &Limit::Account, thng, MAX_REBUILT).await?;
    Ok(scan_profiles::put(tx, thng, &history.profile(settings), history.read_to()).await?)
}

/// The profile of a Thng; one that an older release made is rebuilt from its scans.
pub(super) async fn load(
    sources: ScanSources<'_>,
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
) -> Result<Profile, ServiceError> {
    let stored = scan_profiles::load(conn, account, thng).await?;
    if !stored.is_outdated {
        return Ok(stored.profile);
    }
    let settings = effective(conn, account, &[], None).await?;
    let history = History::read(sources, conn, account, &Limit::Account, thng, MAX_REBUILT).await?;
    Ok(history.profile(&settings))
}

/// Profiles that are checked in one step.
const OUTDATED_STEP: u32 = 500;

/// Rebuilds the profiles that an older release made, one transaction each, and counts the greatest points of their
/// items again where they are of older rules; returns how many.
///
/// They are correct before, because each is rebuilt when it is read, but slower to read. Other processes may do the
/// same at the same time; the second one finds it done.
///
/// # Errors
/// The database failed; what was rebuilt stays, and `after` is where to continue.
pub async fn rebuild_outdated(state: &AssessmentState, after: &mut String) -> Result<u64, ServiceError> {
    let mut made = 0;
    while let Some(some) = rebuild_some(state, after, OUTDATED_STEP).await? {
        made += some;
    }
    Ok(made)
}

/// Rebuilds the next `limit` outdated profiles after a Thng as [`rebuild_outdated`] does; returns how many, or `None` when
/// there are no more.
async fn rebuild_some(
    state: &AssessmentState,
    after: &mut String,
    limit: u32,
) -> Result<Option<u64>, ServiceError> {
    let mut made = 0;
    let mut conn = state.db.read().await?;
    let found = scan_profiles::list_outdated(&mut conn, after, limit).await?;
    drop(conn);
    let Some(last) = found.last().map(|outdated| outdated.thng) else { return Ok(None) };
    for Outdated { account, thng } in found {
        made += u64::from(rebuild_one(state, account, thng).await?);
    }
    *after = last.to_string();
    Ok(Some(made))
}

/// Rebuilds a profile, and counts the greatest points of its item again where they are of older rules; `false` when nobody has to,
/// because another process did.
///
/// # Errors
/// The database failed, or what is stored of the item cannot be read.
pub async fn rebuild_one(
    state: &AssessmentState,
    account: AccountId,
    thng: ThngId,
) -> Result<bool, ServiceError> {
    let sources = state.sources();
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let mut kept = item_standings::load(&mut tx, account, thng).await?;
    let is_counted_again = kept.peak.is_some_and(|peak| !peak.is_current());
    if is_counted_again {
        // The item first, as elsewhere.
        kept = item_standings::lock_one(&mut tx, account, thng).await?;
    }
    let is_outdated = scan_profiles::lock(&mut tx, thng).await?.is_some_and(|stored| stored.is_outdated);
    if is_outdated {
        let settings = effective(&mut tx, account, &[], None).await?;
        let history = History::read(sources, &mut tx, account, &Limit::Account, thng, MAX_REBUILT).await?;
        scan_profiles::put(&mut tx, thng, &history.profile(&settings), history.read_to()).await?;
        if is_counted_again {
            recount::peak(sources, &mut tx, account, thng, kept, history).await?;
        }
    }
    tx.commit().await?;
    Ok(is_outdated)
}

/// Removes a deleted scan from the profile of its Thng, in the transaction that deleted it.
///
/// The profile is rebuilt, because a scan alone shows neither when its session began nor which session takes its
/// place if it was the only one of its own. For a Thng with more scans than are read, only that session is rebuilt.
pub(crate) async fn forget(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    gone: &Action,
) -> Result<(), ServiceError> {
    let is_scan = gone.kind.parse().is_ok_and(TriggerType::is_profiled);
    let Some(thng) = gone.thng.filter(|_| is_scan) else { return Ok(()) };
    let source = Source::of_members(&gone.members);
    let (at, agent) =
        device_of(&gone.members, (gone.timestamp, gone.created_at), sources.devices.of(account));
    let key = SessionKey::of(at, agent);
    // The lock comes first: a scan that is recorded concurrently is then read below, or waits and adds itself.
    let stored = scan_profiles::lock(tx, thng).await?;
    let Some(stored) = stored.filter(|stored| stored.is_outdated || stored.profile.holds(source, key)) else {
        return Ok(());
    };
    let settings = effective(tx, account, &[], None).await?;
    let mut history = History::read(sources, tx, account, &Limit::Account, thng, MAX_REBUILT).await?;
    let read_to = history.read_to();
    // A scan by an edge is removed after this transaction.
    history.scans.retain(|scan| scan.id != gone.id);
    let rebuilt = history.profile(&settings);
    let is_new = history.is_whole || stored.is_outdated;
    let after = if is_new { rebuilt } else { stored.profile.corrected(source, key, &rebuilt) };
    // Of a profile that is kept but for one session, other sessions lack the scans whose effects are still to come.
    Ok(scan_profiles::put(tx, thng, &after, if is_new { read_to } else { 0 }).await?)
}
