//! Writes what follows from scans that are stored: events, profiles, hits and roll-ups, of one or several pieces of batches
//! in one transaction.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::Ordering},
};

use ::actions::store::{
    actions,
    scans::{self, Boot, Cursors},
};
use assessment::service::assessment::observe;
use kernel::store::{Ctx, Tx};
use redirects::store::redirections;
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
    wire::scan::ScanReceipt,
};
use statistics::{domain::counted_scan::CountedScan, service::roll_ups::Sums};

use super::prepared::Scan;
use crate::{error::ServiceError, state::ApiState};

/// Scans of a batch, in order.
#[derive(Debug)]
pub(super) struct Piece {
    /// Name of the edge.
    pub(super) edge: Arc<str>,
    /// Which boot of it.
    pub(super) boot: u64,
    /// The number of the first scan.
    pub(super) first_seq: u64,
    /// How far the effects of the boot were written when somebody looked.
    pub(super) written: u64,
    /// The scans.
    pub(super) scans: Vec<Scan>,
}

impl Piece {
    fn boot(&self) -> Boot<'_> {
        (&*self.edge, self.boot)
    }

    /// The number after the last scan.
    pub(super) const fn end(&self) -> u64 {
        self.first_seq + self.scans.len() as u64
    }
}

/// What is written of pieces, where the cursors of their boots stand.
struct Plan<'a> {
    /// Where they stand.
    from: Cursors<'a>,
    /// Where those stand afterwards that move.
    to: Cursors<'a>,
    /// For each piece, in the order of the pieces, what becomes of it.
    outcomes: Vec<Outcome>,
    /// Known scans whose effects are to be written.
    scans: Vec<&'a Scan>,
    /// By domain and folded short id. All transactions take redirections in this order, so that two that touch the same
    /// ones do not lock each other out.
    hits: BTreeMap<&'a str, BTreeMap<&'a str, i64>>,
    sums: Sums<'a>,
}

/// What becomes of a piece.
#[derive(Debug, Default)]
struct Outcome {
    next_seq: u64,
    repeated: u64,
    missing: u64,
    stored: u64,
    over_quota: u64,
    unknown: u64,
}

impl<'a> Plan<'a> {
    fn of(now: UnixMillis, pieces: &[&'a Piece], from: Cursors<'a>) -> Self {
        let mut cursors = from.clone();
        // Of one boot, scans follow in order: what came twice is written once.
        let mut order: Vec<(usize, &'a Piece)> = pieces.iter().copied().enumerate().collect();
        order.sort_by_key(|&(_, piece)| (piece.boot(), piece.first_seq));
        let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(order.len());
        let mut scans: Vec<&'a Scan> = Vec::new();
        for (place, piece) in order {
            let next = cursors.entry(piece.boot()).or_default();
            let (outcome, fresh) = Outcome::of(piece, *next);
            *next = outcome.next_seq;
            outcomes.push((place, outcome));
            scans.extend(fresh.iter().filter(|scan| scan.is_known));
        }
        outcomes.sort_unstable_by_key(|(place, _)| *place);
        let mut hits: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
        for scan in scans.iter().filter(|scan| scan.hits > 0) {
            *hits.entry(&scan.domain).or_default().entry(&scan.folded).or_default() += scan.hits;
        }
        let counted: Vec<&CountedScan> = scans.iter().filter_map(|scan| scan.counted.as_ref()).collect();
        let sums = Sums::of(now, &counted);
        let mut to = cursors;
        to.retain(|boot, next| from.get(boot) != Some(&*next));
        let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        Self { from, to, outcomes, scans, hits, sums }
    }
}

impl Outcome {
    /// What becomes of a piece of a boot whose cursor stands at `next`, with the scans whose effects are to be written.
    fn of(piece: &Piece, next: u64) -> (Self, &[Scan]) {
        let end = piece.end();
        if end <= next {
            let repeated = piece.scans.len() as u64;
            return (Self { next_seq: next, repeated, ..Self::default() }, &[]);
        }
        // An overlap was written before; a gap was lost on the edge and stays visible in the counter.
        let repeated = next.saturating_sub(piece.first_seq);
        let fresh = piece.scans.get(usize::try_from(repeated).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count =
            |is_counted: fn(&Scan) -> bool| fresh.iter().filter(|scan| is_counted(scan)).count() as u64;
        let outcome = Self {
            next_seq: end,
            repeated,
            missing: piece.first_seq.saturating_sub(next),
            stored: count(|scan| scan.is_known && !scan.is_above),
            over_quota: count(|scan| scan.is_known && scan.is_above),
            unknown: count(|scan| !scan.is_known),
        };
        (outcome, fresh)
    }

    fn note(&self, app: &ApiState, piece: &Piece) -> ScanReceipt {
        let missing = self.missing;
        if missing > 0 {
            tracing::error!(edge = %piece.edge, boot = piece.boot, missing, "scans are missing before a batch");
        }
        app.intake.missing.fetch_add(missing, Ordering::Relaxed);
        app.intake.repeated.fetch_add(self.repeated, Ordering::Relaxed);
        app.intake.stored.fetch_add(self.stored, Ordering::Relaxed);
        app.intake.over_quota.fetch_add(self.over_quota, Ordering::Relaxed);
        app.intake.unknown.fetch_add(self.unknown, Ordering::Relaxed);
        ScanReceipt { next_seq: self.next_seq }
    }
}

/// Writes what follows from the scans of pieces, each once, in the transaction that moves their cursors: all or nothing.
/// Gives a receipt for each piece.
pub(super) async fn write(app: &ApiState, pieces: &[&Piece]) -> Result<Vec<ScanReceipt>, ServiceError> {
    let mut from = Cursors::new();
    for piece in pieces {
        let written = from.entry(piece.boot()).or_default();
        *written = piece.written.max(*written);
    }
    let boots: Vec<Boot<'_>> = from.keys().copied().collect();
    // All that takes time happens before the transaction. Cursors seldom move between the look at them and their lock.
    let mut plan = Plan::of(app.core.clock.now(), pieces, from);
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    let locked = scans::lock_cursors(&mut tx, &boots).await?;
    // Behind the lock: actions are created in the order of their commits on SQLite.
    let now = app.core.clock.now();
    if locked != plan.from {
        plan = Plan::of(now, pieces, locked);
    }
    if !plan.to.is_empty() {
        carry_out(app, &mut tx, now, &mut plan).await?;
        tx.commit().await?;
        app.core.readers.wake_events();
    }
    Ok(plan.outcomes.iter().zip(pieces).map(|(outcome, piece)| outcome.note(app, piece)).collect())
}

/// Records scans for subscribers and profiles, counts hits, and adds to the roll-ups.
async fn carry_out(
    app: &ApiState,
    tx: &mut Tx,
    now: UnixMillis,
    plan: &mut Plan<'_>,
) -> Result<(), ServiceError> {
    let (mut stored, mut others) = (Vec::with_capacity(plan.scans.len()), Vec::new());
    let mut positions: HashMap<ActionId, i64> = HashMap::new();
    for scan in &plan.scans {
        let Some(action) = &scan.action else { continue };
        positions.extend(scan.position.map(|position| (action.id, position)));
        if scan.is_scan {
            stored.push(action);
        } else {
            others.push(action.clone());
        }
    }
    actions::record(tx, now, &stored).await?;
    actions::insert_counted(tx, now, &others).await?;
    stored.extend(&others);
    let accounts: BTreeSet<AccountId> = stored.iter().map(|action| action.account).collect();
    for account in accounts {
        observe::record(app.assessment.sources(), tx, (account, now), &stored, &positions).await?;
    }
    plan.sums.add_devices(tx).await?;
    scans::move_cursors(tx, &plan.to).await?;
    // From here to the commit batches of the same accounts follow each other. Nobody holds a redirection while it waits, so
    // that whoever changes one waits for one batch at most.
    plan.sums.take_turn(tx).await?;
    for (domain, counts) in &plan.hits {
        let counts: Vec<(&str, i64)> = counts.iter().map(|(folded, hits)| (*folded, *hits)).collect();
        redirections::add_hits(tx, domain, &counts).await?;
    }
    plan.sums.write(tx).await
}
