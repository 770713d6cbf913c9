//! The steps of an erasure: each is one transaction that changes some rows and moves the erasure on.

use std::collections::BTreeSet;

use actions::domain::scan::IMPLICIT_SCANS;
use assessment::{
    service::assessment::history::rebuild_one,
    store::{item_standings, reports, scan_profiles},
};
use ipnet::IpNet;
use kernel::{
    domain::action::Action,
    error::ServiceError,
    store::{Ctx, StoreError, Tx},
};
use scan_store::{NewScan, ScanPosition, Seen};
use serde_json::Value;
use shared::{
    id::{AccountId, ThngId, UserId},
    time::UnixMillis,
};

use super::{PrivacyState, results};
use crate::{
    domain::{
        cut::{concerns, cut, cut_within},
        erasure::{Erasure, Pending, Stage, Target},
    },
    store::{
        copies::{self, Copies},
        erasures::{self, Claimed},
        personal_actions::{self, Of},
        unknown_networks,
    },
};

/// Actions that one step looks at: some ten milliseconds of the only writer on SQLite.
pub(super) const STEP: i64 = 200;

/// Users whose actions one step looks for. On Postgres it reads all that are left of theirs, to put them in order: of all users of
/// an erasure they may be more than a statement reads in its time.
const USERS: usize = 50;

/// Profiles that one step makes again: each reads up to 5,000 scans.
const PROFILES: u32 = 10;

/// Hours of counts that one step looks at.
const HOURS: i32 = 24;
const HOUR_MS: i64 = 3_600_000;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// There is more to do.
    Moved,
    /// Some profiles could not be made again: another pass over them comes later.
    Waiting,
    /// Everything is erased.
    Done,
    /// Another worker holds the erasure.
    Lost,
}

/// Does the next step of an erasure.
///
/// # Errors
/// A store failed: the step is done again.
pub async fn step(state: &PrivacyState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let before = claimed.erasure.details.counts.total();
    let is_held = match claimed.erasure.details.place.stage {
        Stage::Actions if results::are_next(&claimed.erasure) => results::step(state, claimed).await?,
        Stage::Actions => actions(state, claimed).await?,
        Stage::Scans => scans(state, claimed).await?,
        Stage::WebhookMessages => copied(state, claimed, Copies::Messages).await?,
        Stage::ReactionTasks => copied(state, claimed, Copies::Tasks).await?,
        Stage::UnknownScans => unknown(state, claimed).await?,
        Stage::Texts => texts(state, claimed).await?,
        Stage::Profiles => profiles(state, claimed).await?,
        Stage::Done => true,
    };
    if !is_held {
        return Ok(Stepped::Lost);
    }
    state.metrics.rows.inc_by(claimed.erasure.details.counts.total().saturating_sub(before));
    let details = &claimed.erasure.details;
    Ok(match details.place.stage {
        Stage::Done => Stepped::Done,
        Stage::Profiles if details.profiles_failed > 0 && details.place.thng.is_none() => Stepped::Waiting,
        Stage::Actions
        | Stage::Scans
        | Stage::WebhookMessages
        | Stage::ReactionTasks
        | Stage::UnknownScans
        | Stage::Texts
        | Stage::Profiles => Stepped::Moved,
    })
}

/// Writes an erasure and commits; `false`, and nothing is changed, when another worker holds it.
pub(super) async fn finish(mut tx: Tx, claimed: &mut Claimed, erasure: Erasure) -> Result<bool, StoreError> {
    let is_held = erasures::save(&mut tx, claimed, erasure).await?;
    if is_held {
        tx.commit().await?;
    }
    Ok(is_held)
}

/// Between which times the actions were created that an erasure looks at.
const fn created(target: &Target) -> (i64, i64) {
    match target {
        Target::Users(_) | Target::Thng(_) | Target::Network { .. } => (i64::MIN, i64::MAX),
        Target::Age { from, to } => (from.0, to.0),
    }
}

/// Marks what assessments keep of the scans of Thngs: it is made again of what is left, or goes.
async fn forget(tx: &mut Tx, erasure: &mut Erasure, thngs: &[ThngId]) -> Result<(), StoreError> {
    if matches!(erasure.details.target, Target::Age { .. }) {
        // What assessments have learned of the kinds of phones and the places of an item stays: its verdict rests on it.
        return Ok(());
    }
    let counts = &mut erasure.details.counts;
    // The item first, as elsewhere.
    counts.standings += item_standings::forget_scans(tx, erasure.account, thngs).await?;
    counts.profiles += scan_profiles::outdate(tx, erasure.account, thngs).await?;
    Ok(())
}

/// A position in a list that has no months.
pub(super) const fn position(at: i64, seq: i64) -> ScanPosition {
    ScanPosition { month: 0, at, seq }
}

async fn actions(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let mut next = claimed.erasure.clone();
    let (account, target) = (next.account, next.details.target.clone());
    // Actions have no months: it counts portions of users.
    let portion = next.details.place.after.map_or(0, |after| after.month);
    let of = match &target {
        Target::Users(users) => Of::Users(users_of(users, portion)),
        Target::Thng(thng) => Of::Thng(thng.as_str()),
        Target::Network { .. } | Target::Age { .. } => Of::Everybody,
    };
    let (from, to) = created(&target);
    let after = next.details.place.after.map_or((from, i64::MIN), |after| (after.at, after.seq));
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let mut rows = personal_actions::list(&mut tx, account, of, after, STEP).await?;
    rows.retain(|row| row.created_at().0 < to);
    let mut thngs = BTreeSet::new();
    for row in &rows {
        let mut members = row.members().clone();
        let is_changed = concerns(&target, row.thng_id.as_deref(), Some(row.timestamp()), &members)
            && cut(&target, &mut members);
        if is_changed {
            personal_actions::update(&mut tx, account, row, &members).await?;
            next.details.counts.actions += 1;
            thngs.extend(row.thng_id.as_deref().and_then(|id| id.parse::<ThngId>().ok()));
        }
    }
    let thngs: Vec<ThngId> = thngs.into_iter().collect();
    forget(&mut tx, &mut next, &thngs).await?;
    let is_last = match &target {
        Target::Users(users) => users_of(users, portion + 1).is_empty(),
        Target::Thng(_) | Target::Network { .. } | Target::Age { .. } => true,
    };
    let end = match rows.last() {
        Some(row) => Some(ScanPosition { month: portion, at: row.created_at().0, seq: row.seq }),
        None if is_last => None,
        None => Some(ScanPosition { month: portion + 1, at: i64::MIN, seq: i64::MIN }),
    };
    Ok(finish(tx, claimed, next.moved(end, state.clock.now())).await?)
}

/// A portion of the users of an erasure; empty behind the last one.
fn users_of(users: &[UserId], portion: i32) -> &[UserId] {
    usize::try_from(portion).ok().and_then(|portion| users.chunks(USERS).nth(portion)).unwrap_or_default()
}

/// A scan with less in it, or none where it does not fit into columns any more.
struct CutScan {
    seen: Seen,
    before: Action,
    after: Option<NewScan>,
}

/// The next scans that are to be changed, up to the last one that is pending, and how far the search came.
async fn seek(
    state: &PrivacyState,
    erasure: &Erasure,
) -> Result<(Vec<CutScan>, Option<ScanPosition>), StoreError> {
    let place = &erasure.details.place;
    let Some(sought) = erasure.details.target.sought() else { return Ok((Vec::new(), None)) };
    let until = place.pending.as_ref().map(|pending| pending.end);
    let (mut found, mut after) = (Vec::new(), place.after);
    loop {
        let sighted = state.actions.scans.pool.seek(erasure.account, &sought, after).await?;
        for (seen, before) in sighted.found {
            let mut members = before.members.clone();
            let is_due = until.is_none_or(|until| seen.position <= until);
            if is_due && cut(&erasure.details.target, &mut members) {
                let of = (before.thng, before.product);
                let doc = Value::Object(members);
                let after = NewScan::of(erasure.account, before.id, before.timestamp, of, &doc);
                found.push(CutScan { seen, before, after });
            }
        }
        match (sighted.end, until) {
            // Scans of older releases came in between since: a search looks at less of what is pending.
            (Some(end), Some(until)) if end < until => after = Some(end),
            (end, _) => return Ok((found, end)),
        }
    }
}

/// Two steps: what is to be changed is written down first.
async fn scans(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let mut next = claimed.erasure.clone();
    if let Some(pending) = next.details.place.pending.clone() {
        let (found, _) = seek(state, &next).await?;
        // After the look: whoever stood still in it must not write back what another erasure has cut meanwhile.
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let is_held = erasures::renew(&mut tx, claimed).await?;
        tx.commit().await?;
        if !is_held {
            return Ok(false);
        }
        rewrite(state, next.account, found).await?;
        let mut tx = state.db.begin(&Ctx::default()).await?;
        next.details.counts.scans += pending.scans;
        forget(&mut tx, &mut next, &pending.thngs).await?;
        return Ok(finish(tx, claimed, next.moved(Some(pending.end), state.clock.now())).await?);
    }
    let (found, end) = seek(state, &next).await?;
    let now = state.clock.now();
    next = match end {
        Some(end) if !found.is_empty() => {
            let thngs: BTreeSet<ThngId> = found.iter().filter_map(|scan| scan.before.thng).collect();
            let scans = u64::try_from(found.len()).unwrap_or(u64::MAX);
            next.details.place.pending = Some(Pending { end, scans, thngs: thngs.into_iter().collect() });
            next.touched(now)
        }
        Some(_) | None => next.moved(end, now),
    };
    Ok(finish(state.db.begin(&Ctx::default()).await?, claimed, next).await?)
}

/// Changes the scans that are pending; what was changed before stays as it is.
///
/// # Errors
/// The store of scans failed.
pub async fn cut_pending(state: &PrivacyState, erasure: &Erasure) -> Result<(), StoreError> {
    let (found, _) = seek(state, erasure).await?;
    rewrite(state, erasure.account, found).await
}

async fn rewrite(state: &PrivacyState, account: AccountId, found: Vec<CutScan>) -> Result<(), StoreError> {
    let store = &state.actions.scans.pool;
    let (mut rewritten, mut unfit) = (Vec::new(), Vec::new());
    for CutScan { seen, before, after } in found {
        match after {
            Some(after) => rewritten.push((seen, after)),
            // Its person counts for more than a scan that nobody can read.
            None => unfit.push(before.id),
        }
    }
    store.rewrite(state.clock.now(), &rewritten).await?;
    if !unfit.is_empty() {
        let count = unfit.len();
        tracing::warn!(count, kind = IMPLICIT_SCANS, "scans that cannot be written again are removed");
        store.delete(account, &unfit).await?;
    }
    Ok(())
}

async fn copied(state: &PrivacyState, claimed: &mut Claimed, of: Copies) -> Result<bool, ServiceError> {
    let mut next = claimed.erasure.clone();
    let account = next.account;
    let after = next.details.place.after.map_or(0, |after| after.seq);
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let rows = match next.details.target {
        // Copies of what is a day old or more are gone within days.
        Target::Age { .. } => Vec::new(),
        Target::Users(_) | Target::Thng(_) | Target::Network { .. } => {
            copies::list(&mut tx, of, account, after).await?
        }
    };
    let end = rows.last().map(|(seq, _)| position(0, *seq));
    for (seq, text) in rows {
        // What is no JSON was not made of an action.
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else { continue };
        if cut_within(&next.details.target, &mut value) {
            copies::update(&mut tx, of, account, seq, &value.to_string()).await?;
            match of {
                Copies::Messages => next.details.counts.webhook_messages += 1,
                Copies::Tasks => next.details.counts.reaction_tasks += 1,
            }
        }
    }
    Ok(finish(tx, claimed, next.moved(end, state.clock.now())).await?)
}

async fn unknown(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let mut next = claimed.erasure.clone();
    let account = next.account;
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let mut end = None;
    if let Target::Thng(thng) = next.details.target {
        next.details.counts.reports += reports::delete_of_thng(&mut tx, account, thng).await?;
    }
    if let Target::Network { network, from, to } = next.details.target {
        let hour = |at: UnixMillis| i32::try_from(at.0.div_euclid(HOUR_MS)).unwrap_or(i32::MAX);
        let begin = next.details.place.after.map_or(hour(from), hour_after);
        // The hour in which it ends counts, too.
        let until = hour(UnixMillis(to.0 - 1)).saturating_add(1);
        if let Some(first) = unknown_networks::find_next(&mut tx, account, begin, until).await? {
            let last = first.saturating_add(HOURS).min(until);
            for text in unknown_networks::list(&mut tx, account, first, last).await? {
                if text.parse::<IpNet>().is_ok_and(|one| network.overlaps(&one)) {
                    let gone = unknown_networks::delete(&mut tx, account, (first, last), &text).await?;
                    next.details.counts.unknown_scans += gone;
                }
            }
            end = Some(position(0, i64::from(last)));
        }
    }
    Ok(finish(tx, claimed, next.moved(end, state.clock.now())).await?)
}

/// The hour up to which counts were looked at.
fn hour_after(after: ScanPosition) -> i32 {
    i32::try_from(after.seq).unwrap_or(i32::MAX)
}

async fn texts(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let next = claimed.erasure.clone();
    let end = match next.details.target.sought() {
        // Both go on at once: none of them waits for a connection that the other one holds.
        Some(_) => tokio::select! {
            end = state.actions.scans.pool.erase_texts(next.account, next.details.place.after) => end?,
            lost = keep(state, claimed) => {
                lost?;
                return Ok(false);
            }
        },
        None => None,
    };
    let tx = state.db.begin(&Ctx::default()).await?;
    Ok(finish(tx, claimed, next.moved(end, state.clock.now())).await?)
}

/// Holds an erasure while a step looks at every scan of an account in a month; returns when another worker has taken it.
async fn keep(state: &PrivacyState, claimed: &Claimed) -> Result<(), StoreError> {
    loop {
        tokio::time::sleep(erasures::LEASE / 5).await;
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let is_held = erasures::renew(&mut tx, claimed).await?;
        tx.commit().await?;
        if !is_held {
            return Ok(());
        }
    }
}

/// Makes profiles of the account again that were marked, one transaction each. One that fails is counted, and the others go on.
async fn profiles(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let next = claimed.erasure.clone();
    let account = next.account;
    let after = next.details.place.thng.map(|thng| thng.to_string()).unwrap_or_default();
    let marked = {
        let mut conn = state.db.read().await?;
        scan_profiles::list_marked(&mut conn, account, &after, PROFILES).await?
    };
    let mut failed = 0;
    for thng in &marked {
        if let Err(error) = rebuild_one(&state.assessment, account, *thng).await {
            failed += 1;
            state.metrics.tries_failed.inc();
            tracing::warn!(%error, %thng, "the profile of an item cannot be made again now");
        }
    }
    let now = state.clock.now();
    let next = match marked.last() {
        Some(last) => next.after_profiles(*last, failed, now),
        None => next.after_all_profiles(now),
    };
    let tx = state.db.begin(&Ctx::default()).await?;
    Ok(finish(tx, claimed, next).await?)
}
