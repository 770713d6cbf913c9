//! Print orders: asked for, read, cancelled and removed by operators.

use kernel::{
    domain::{
        access::Actor,
        common::Stamp,
        event::Event,
        grant::Limit,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        subject::{Subject::PrintOrders, Verb},
    },
    service::access::{Caller, require},
    store::{Tx, events, listing::Selection},
};
use print::PrintSpec;
use serde_json::{Value, json};
use shared::id::JobId;
use tenants::store::accounts;
use tracing::instrument;

use super::{
    PrintState,
    accept::{self, Begin},
    purge,
};
use crate::{
    domain::{
        code::Code,
        order::{Details, Order, Stage, Status},
        order_draft::{OrderDraft, WaitForEdges},
    },
    error::{PrintingError, ServiceError},
    store::{codes, orders as table},
};

/// What the audit trail calls them.
const KIND: &str = "printOrder";

/// Most orders of an account that have not ended: each holds up the others of the account, not those of other accounts.
pub const MAX_OPEN: u64 = 10;

/// Accepts an order; the worker carries it out. `base` is the address by which the caller reaches the service, whose
/// `contentUrl`s are ours.
///
/// # Errors
/// The key lacks the permission for the order, or for what it prints or makes; codes are not there; the numbers are taken
/// (409); a quota has no room; too many orders are under way (429).
#[instrument(skip_all)]
pub async fn create(
    state: &PrintState,
    caller: &Caller,
    draft: OrderDraft,
    base: &str,
) -> Result<Order, ServiceError> {
    let _ = require(caller, Verb::Create, PrintOrders)?;
    accept::allow(caller, &draft.source)?;
    let _place = state.capacity.write(caller)?;
    let Begin { stage, count, codes, serials, input } = accept::look_up(state, caller, &draft, base).await?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    lock(&mut tx, caller).await?;
    let serials = match serials {
        None => None,
        Some(serials) => Some(accept::take_numbers(&mut tx, caller.account, serials).await?),
    };
    let details = Details {
        serials,
        input,
        codes: count,
        made: codes.len() as u64,
        ..details(caller, draft.sent_source, &draft.spec, draft.wait, stage)
    };
    insert(state, caller, tx, draft.name, details, &codes).await
}

/// Locks the account, if another order may be under way.
///
/// # Errors
/// Too many are.
pub(super) async fn lock(tx: &mut Tx, caller: &Caller) -> Result<(), ServiceError> {
    accounts::lock(tx, caller.account).await?;
    if table::count_open(tx, caller.account).await? >= MAX_OPEN {
        return Err(PrintingError::TooManyOrders { most: MAX_OPEN }.into());
    }
    Ok(())
}

/// An order without codes.
pub(super) fn details(
    caller: &Caller,
    source: Value,
    spec: &PrintSpec,
    wait: WaitForEdges,
    stage: Stage,
) -> Details {
    Details {
        source,
        spec: spec.to_json(),
        wait,
        operator: caller.id.clone(),
        serials: None,
        input: None,
        reprint: None,
        stage,
        codes: 0,
        made: 0,
        rendered: 0,
        after: None,
        chunks: 0,
        chunk_bytes: 0,
        waits_since: None,
        edges: None,
        message: None,
        files: Vec::new(),
        files_removed_at: None,
    }
}

/// Adds an order with the codes that are known, commits, and wakes the worker.
pub(super) async fn insert(
    state: &PrintState,
    caller: &Caller,
    mut tx: Tx,
    name: String,
    details: Details,
    known: &[Code],
) -> Result<Order, ServiceError> {
    let now = state.clock.now();
    let id = JobId::new(now.0, state.random16()?);
    let mut order = Order {
        id,
        account: caller.account,
        name,
        stamp: Stamp::new(now),
        status: Status::Waiting,
        completed_at: None,
        files_until: None,
        details,
    };
    order.stamp.seq = table::insert(&mut tx, &order).await?;
    codes::insert(&mut tx, order.stamp.seq, 0, known).await?;
    tx.note(caller.account, (KIND, id.as_str()), || (None, Some(audited(&order))));
    tx.commit().await?;
    state.wake.notify_one();
    Ok(order)
}

/// Lists orders.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    state: &PrintState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<Order>, ServiceError> {
    let _ = require(actor, Verb::List, PrintOrders)?;
    let selection = Selection { account: actor.account, limit: &Limit::Account, request, within: &[] };
    let mut conn = state.db.read().await?;
    Ok(table::list(&mut conn, &selection).await?)
}

/// Reads an order.
///
/// # Errors
/// There is none.
#[instrument(skip_all)]
pub async fn read(state: &PrintState, actor: &Actor, id: &str) -> Result<Order, ServiceError> {
    let _ = require(actor, Verb::Read, PrintOrders)?;
    find(state, actor, id).await
}

/// Ends an order; what it has made stays.
///
/// # Errors
/// It does not exist (404) or has ended (409).
#[instrument(skip_all)]
pub async fn cancel(state: &PrintState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Update, PrintOrders)?;
    let order = find(state, caller, id).await?;
    let now = state.clock.now().max(order.stamp.touch(order.stamp.created_at).updated_at);
    let mut tx = state.db.begin(&caller.ctx).await?;
    if !table::cancel(&mut tx, &order, now).await? {
        return Err(PrintingError::Ended(order.id).into());
    }
    let event = Event::PrintOrder { id: order.id, status: Status::Cancelled.as_str().to_owned() };
    events::record(&mut tx, now, &[(order.account, event)]).await?;
    tx.note(caller.account, (KIND, order.id.as_str()), || {
        let status = |status: Status| Some(json!({"status": status.as_str()}));
        (status(order.status), status(Status::Cancelled))
    });
    tx.commit().await?;
    state.readers.wake_events();
    state.metrics.ended(Status::Cancelled);
    // The worker removes what is left of it.
    state.wake.notify_one();
    Ok(())
}

/// Removes an order that has ended, with its files; what it has made stays.
///
/// # Errors
/// It does not exist (404) or has not ended (409).
#[instrument(skip_all)]
pub async fn delete(state: &PrintState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Delete, PrintOrders)?;
    let order = find(state, caller, id).await?;
    if order.completed_at.is_none() {
        return Err(PrintingError::NotEnded { id: order.id, status: order.status.as_str() }.into());
    }
    purge::remove_files(state, &order).await?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    if !table::delete(&mut tx, caller.account, order.stamp.seq).await? {
        return Err(PrintingError::BeingRemoved(order.id).into());
    }
    tx.note(caller.account, (KIND, order.id.as_str()), || (Some(audited(&order)), None));
    tx.commit().await?;
    Ok(())
}

/// An order of the caller's account.
pub(super) async fn find(state: &PrintState, actor: &Actor, id: &str) -> Result<Order, ServiceError> {
    let not_found = || ServiceError::not_found("print order", shorten(id));
    let parsed: JobId = id.parse().map_err(|_| not_found())?;
    let mut conn = state.db.read().await?;
    table::find(&mut conn, actor.account, parsed).await?.ok_or_else(not_found)
}

fn audited(order: &Order) -> Value {
    let Details { source, spec, codes, reprint, .. } = &order.details;
    let status = order.status.as_str();
    let mut shown =
        json!({"name": order.name, "status": status, "source": source, "codes": codes, "spec": spec});
    if let Some(reprint) = reprint {
        shown["reprintOf"] = json!(reprint.of);
        shown["reprint"] = reprint.sent.clone();
    }
    shown
}
