//! The steps of an order: each is one transaction that does something and moves the order on.

use std::{sync::Arc, time::Duration};

pub use background::worker::Stepped;
use kernel::{
    domain::{event::Event, quota::Quota},
    store::{Ctx, Tx, events, quotas},
};
use redirects::{edges::WaitReport, store::log};
use shared::time::UnixMillis;

use super::{PrintState, assemble, make, purge, read, render};
use crate::{
    domain::{
        order::{EdgeReport, Order, Stage, Status},
        order_draft::WaitForEdges,
    },
    error::ServiceError,
    store::leases::{self, Claimed},
};

/// How long one step waits for edges: orders of all accounts wait meanwhile, and an account may have ten that wait for an edge
/// that is gone.
const EDGES: Duration = Duration::from_millis(250);

/// How long an order waits for edges that it only reports.
const REPORT_MS: i64 = 60_000;

/// Does the next step of an order.
///
/// # Errors
/// A store failed: the step is done again. A refusal is a fault of the order, which cannot be carried out.
pub async fn step(state: &Arc<PrintState>, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    if claimed.item.status.is_terminal() {
        return clear(state, claimed).await;
    }
    match claimed.item.details.stage {
        Stage::Collect => make::collect(state, claimed).await,
        Stage::Read => read::read(state, claimed).await,
        Stage::Make => make::make(state, claimed).await,
        Stage::Render => render::render(state, claimed).await,
        Stage::Publish => publish(state, claimed).await,
        Stage::Assemble => assemble::assemble(state, claimed).await,
        Stage::Clear => clear(state, claimed).await,
    }
}

/// Writes an order and commits; nothing is changed when another worker holds it.
pub(super) async fn finish(mut tx: Tx, claimed: &mut Claimed, order: Order) -> Result<Stepped, ServiceError> {
    if !leases::save(&mut tx, claimed, &order, false).await? {
        return Ok(Stepped::Lost);
    }
    tx.commit().await?;
    claimed.item = order;
    Ok(Stepped::Moved)
}

/// Ends an order that cannot be carried out. What it has made stays; what is left of its work is removed later.
pub async fn fail(
    state: &PrintState,
    claimed: &mut Claimed,
    message: String,
) -> Result<Stepped, ServiceError> {
    let order = claimed.item.clone().ended(Status::Failed, Some(message), state.clock.now());
    end(state, claimed, order, false).await
}

/// Writes the end of an order with its event.
async fn end(
    state: &PrintState,
    claimed: &mut Claimed,
    order: Order,
    is_settled: bool,
) -> Result<Stepped, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if !leases::save(&mut tx, claimed, &order, is_settled).await? {
        return Ok(Stepped::Lost);
    }
    let removed_bytes = claimed.item.details.stored_bytes().saturating_sub(order.details.stored_bytes());
    quotas::release(&mut tx, order.account, Quota::StorageBytes, removed_bytes);
    if !claimed.item.status.is_terminal() {
        let event = Event::PrintOrder { id: order.id, status: order.status.as_str().to_owned() };
        events::record(&mut tx, order.stamp.updated_at, &[(order.account, event)]).await?;
    }
    tx.commit().await?;
    state.readers.wake_events();
    if !claimed.item.status.is_terminal() {
        state.metrics.ended(order.status);
    }
    claimed.item = order;
    Ok(if is_settled { Stepped::Settled } else { Stepped::Moved })
}

/// Waits a little for the edges.
async fn publish(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let mut next = claimed.item.clone();
    let now = state.clock.now();
    if next.details.wait == WaitForEdges::None {
        let tx = state.db.begin(&Ctx::default()).await?;
        return finish(tx, claimed, next.at(Stage::Assemble, now)).await;
    }
    let Some(edges) = &next.details.edges else {
        // Every link of the order was written before: the newest revision covers all.
        let rev = log::load_head(&mut state.db.read().await?).await?.head;
        next.details.edges = Some(EdgeReport { rev, ..EdgeReport::default() });
        next.details.waits_since = Some(now);
        let tx = state.db.begin(&Ctx::default()).await?;
        return finish(tx, claimed, next.touched(now)).await;
    };
    let report = state.redirects.edges.wait(edges.rev, EDGES).await;
    let now = state.clock.now();
    let waited_ms = now.0.saturating_sub(next.details.waits_since.unwrap_or(now).0);
    let is_released =
        report.is_done() || (next.details.wait == WaitForEdges::Report && waited_ms >= REPORT_MS);
    next.details.edges = Some(reported(report));
    let next = if is_released { next.at(Stage::Assemble, now) } else { next.touched(now) };
    let stepped = finish(state.db.begin(&Ctx::default()).await?, claimed, next).await?;
    Ok(if stepped == Stepped::Moved && !is_released { Stepped::Waits } else { stepped })
}

fn reported(report: WaitReport) -> EdgeReport {
    let names = |all: &[Arc<str>]| all.iter().map(|name| name.to_string()).collect();
    EdgeReport {
        rev: report.rev,
        acked: report.acked,
        members: report.members,
        lagging: names(&report.lagging),
        unreachable: names(&report.unreachable),
        incomplete: report.incomplete,
    }
}

/// Removes chunks and notes, some in a step; then the order is complete, or settled if it ended otherwise.
async fn clear(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    match purge::clear_some(state, claimed).await? {
        purge::Cleared::More => return Ok(Stepped::Moved),
        purge::Cleared::Lost => return Ok(Stepped::Lost),
        purge::Cleared::All => {}
    }
    let mut order = claimed.item.clone();
    order.details.chunk_bytes = 0;
    if order.status.is_terminal() {
        // They were removed with the rest.
        order.details.files.clear();
    } else {
        order = order.ended(Status::Complete, None, state.clock.now());
        order.files_until = state.limits.files_kept.zip(order.completed_at).map(|(kept, at)| {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            UnixMillis(at.0.saturating_add(kept_ms))
        });
    }
    end(state, claimed, order, true).await
}
