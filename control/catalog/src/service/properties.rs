//! Properties of Thngs and products.

mod removal;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::{
    id::{AccountId, is_valid},
    time::UnixMillis,
};
use tracing::instrument;

pub(crate) use self::removal::sweep_after;
pub use self::removal::{delete, delete_all, sweep};
use super::{
    Catalog, Core,
    access::{Caller, require},
    property_group::{self, Request, Submitted},
    references::{resolve_product, resolve_thng},
};
use crate::{
    domain::{
        access::Actor,
        event::Event,
        grant::Grant,
        limits,
        listing::ListRequest,
        page::{Page, PageRequest},
        permission::{Subject::Properties, Verb, reach},
        property::{NewPoint, Owner, Point, PropertyKey, settle},
        quota::Quota,
        series::{Series, Span},
    },
    error::{CatalogError, ServiceError},
    store::{
        self, Conn, StoreError, Tx,
        audit::Entry,
        events,
        properties::{self, Values},
        property_owners::{self, Hold},
        quotas,
    },
};

/// What the audit trail calls the properties of a resource, whose id it names.
const KIND: &str = "properties";

/// What the audit trail shows of values: what was before stands in their history.
fn state_of(points: &[NewPoint]) -> Value {
    let point = |point: &NewPoint| json!({"key": point.key.as_str(), "value": point.value, "timestamp": point.timestamp.map(|at| at.0)});
    json!({"values": points.iter().map(point).collect::<Vec<_>>()})
}

/// Writes values of one or several properties; returns what was written, in order.
///
/// `verb` is the name of the operation: both create absent values and replace existing ones.
///
/// # Errors
/// The key lacks the permission, a property is the system's own, or the owner does not exist.
#[instrument(skip_all)]
pub async fn write(
    catalog: &Catalog,
    caller: &Caller,
    verb: Verb,
    owner: (Owner, &str),
    points: Vec<NewPoint>,
) -> Result<Vec<Point>, ServiceError> {
    let grant = require(caller, verb, Properties)?;
    refuse_system(points.iter().map(|point| &point.key))?;
    let mut points = points;
    if points.len() <= property_group::MAX_POINTS && is_valid(owner.1) {
        let _place = catalog.capacity.property_write(caller)?;
        let (account, resource, origin) =
            (caller.account, owner.1.to_owned(), caller.ctx.origin().map(str::to_owned));
        let audit = caller.ctx.principal().map(|principal| {
            Entry::new(principal, account, (KIND, &resource), (None, Some(state_of(&points))))
        });
        let of_group = grant.clone();
        let request = Request { account, grant: of_group, owner: owner.0, resource, points, origin, audit };
        match catalog.property_groups.submit(request).await? {
            Submitted::Written(points) => return Ok(points),
            Submitted::Counted(given_back) => points = given_back,
        }
    }
    // Boxed, so that the future of the many small writes stays small.
    Box::pin(write_many(catalog, caller, &grant, owner, points)).await
}

async fn write_many(
    core: &Core,
    caller: &Caller,
    grant: &Grant,
    owner: (Owner, &str),
    points: Vec<NewPoint>,
) -> Result<Vec<Point>, ServiceError> {
    let (_place, mut tx) = core.begin_write(caller).await?;
    let kept = write_held(core, &mut tx, caller, grant, owner, points).await?;
    tx.commit().await?;
    core.readers.wake_events();
    Ok(kept)
}

/// Writes values as [`write()`] does, inside of a transaction that does more.
///
/// # Errors
/// As [`write()`].
pub async fn write_within(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    owner: (Owner, &str),
    points: Vec<NewPoint>,
) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Update, Properties)?;
    refuse_system(points.iter().map(|point| &point.key))?;
    write_held(core, tx, actor, &grant, owner, points).await.map(|_| ())
}

async fn write_held(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    owner: (Owner, &str),
    points: Vec<NewPoint>,
) -> Result<Vec<Point>, ServiceError> {
    let id = held(tx, actor, grant, owner, Hold::Shared).await?;
    tx.note(actor.account, (KIND, &id), || (None, Some(state_of(&points))));
    // After the owner is held, so that the later of two writes also has the later time.
    let points = settle(points, core.clock.now());
    let now = points.first().map_or_else(|| core.clock.now(), |point| point.created_at);
    let values = Values { account: actor.account, resource: &id, points: &points };
    properties::write(tx, &[values], now).await?;
    Ok(record(tx, actor.account, (owner.0, id), points).await?)
}

/// The id of a Thng or product whose properties the caller may write.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
pub async fn find_writable(
    conn: &mut Conn,
    actor: &Actor,
    owner: (Owner, &str),
) -> Result<String, ServiceError> {
    let grant = require(actor, Verb::Update, Properties)?;
    resolved(conn, actor, &grant, owner).await
}

/// Writes the initial properties of a new Thng or product.
///
/// # Errors
/// The key lacks the permission or a property is the system's own.
pub(crate) async fn write_initial(
    tx: &mut Tx,
    actor: &Actor,
    resource: &str,
    points: Vec<NewPoint>,
    now: UnixMillis,
) -> Result<(), ServiceError> {
    if points.is_empty() {
        return Ok(());
    }
    let _ = require(actor, Verb::Create, Properties)?;
    refuse_system(points.iter().map(|point| &point.key))?;
    let points = settle(points, now);
    properties::write(tx, &[Values { account: actor.account, resource, points: &points }], now).await?;
    Ok(quotas::charge(tx, actor.account, Quota::EventsPerDay, points.len() as u64, now).await?)
}

/// Records the written values as an event, and returns them.
async fn record(
    tx: &mut Tx,
    account: AccountId,
    (owner, resource): (Owner, String),
    points: Vec<Point>,
) -> Result<Vec<Point>, StoreError> {
    let Some(now) = points.first().map(|point| point.created_at) else { return Ok(points) };
    let event = Event::Properties { owner, resource, points: points.clone() };
    events::record(tx, now, &[(account, event)]).await?;
    quotas::charge(tx, account, Quota::EventsPerDay, points.len() as u64, now).await?;
    Ok(points)
}

/// The id of a Thng or product whose properties the caller may read.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
pub async fn find_owner(core: &Core, actor: &Actor, owner: (Owner, &str)) -> Result<String, ServiceError> {
    let grant = require(actor, Verb::Read, Properties)?;
    resolved(&mut core.db.read().await?, actor, &grant, owner).await
}

/// The properties in the document of a Thng or product; none if the caller may not read them.
pub(crate) async fn shown(
    conn: &mut Conn,
    actor: &Actor,
    resource: &str,
) -> Result<BTreeMap<String, Value>, StoreError> {
    let resources = [resource.to_owned()];
    Ok(shown_of(conn, actor, &resources).await?.remove(resource).unwrap_or_default())
}

/// [`shown`] of many resources, by their ids.
pub(crate) async fn shown_of(
    conn: &mut Conn,
    actor: &Actor,
    resources: &[String],
) -> Result<std::collections::HashMap<String, BTreeMap<String, Value>>, StoreError> {
    if reach(actor.kind, actor.user_rights, Verb::Read, Properties).is_none() {
        return Ok(std::collections::HashMap::new());
    }
    properties::list_shown(conn, actor.account, resources).await
}

/// The latest value of every property.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    owner: (Owner, &str),
    page: PageRequest,
) -> Result<Page<Point>, ServiceError> {
    let grant = require(actor, Verb::Read, Properties)?;
    let mut conn = core.db.read().await?;
    let id = resolved(&mut conn, actor, &grant, owner).await?;
    let rows = properties::list_latest(&mut conn, actor.account, &id, page).await?;
    let page = Page::cut(rows, page, |(position, _)| *position);
    Ok(Page { items: page.items.into_iter().map(|(_, point)| point).collect(), next: page.next, total: None })
}

/// The history of a property; empty when there is no such property.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
#[instrument(skip_all)]
pub async fn history(
    core: &Core,
    actor: &Actor,
    owner: (Owner, &str),
    key: &PropertyKey,
    request: &ListRequest,
) -> Result<Page<Point>, ServiceError> {
    let grant = require(actor, Verb::Read, Properties)?;
    let mut conn = core.db.read().await?;
    let id = resolved(&mut conn, actor, &grant, owner).await?;
    Ok(properties::list_history(&mut conn, actor.account, &id, key, request).await?)
}

/// The numbers of a property's history for a plot; nothing when there are none.
///
/// Without `from` and `to` it covers all of them.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
#[instrument(skip_all)]
pub async fn series(
    core: &Core,
    actor: &Actor,
    owner: (Owner, &str),
    key: &PropertyKey,
    (from, to): (Option<UnixMillis>, Option<UnixMillis>),
    points: u32,
) -> Result<Series, ServiceError> {
    let grant = require(actor, Verb::Read, Properties)?;
    let mut conn = core.db.read().await?;
    let id = resolved(&mut conn, actor, &grant, owner).await?;
    let ends = match (from, to) {
        (Some(from), Some(to)) => Some((from, to)),
        (from, to) => store::series::find_ends(&mut conn, actor.account, &id, key)
            .await?
            .map(|(first, last)| (from.unwrap_or(first), to.unwrap_or(last))),
    };
    let Some(span) = ends.and_then(|(from, to)| Span::cut(from, to, points)) else {
        return Ok(Series { span: None, buckets: Vec::new() });
    };
    let buckets = store::series::list_buckets(&mut conn, actor.account, &id, key, span).await?;
    Ok(Series { span: Some(span), buckets })
}

fn refuse_system<'a>(mut keys: impl Iterator<Item = &'a PropertyKey>) -> Result<(), CatalogError> {
    match keys.find(|key| key.is_system()) {
        Some(key) => Err(CatalogError::ReadOnlyProperty(limits::shorten(key.as_str()).to_owned())),
        None => Ok(()),
    }
}

/// The id of an owner that the caller sees.
async fn resolved(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    (owner, reference): (Owner, &str),
) -> Result<String, ServiceError> {
    let id = match owner {
        Owner::Thng => resolve_thng(conn, actor.account, reference).await?.to_string(),
        Owner::Product => resolve_product(conn, actor.account, reference).await?.to_string(),
    };
    let found = property_owners::find_scopes(conn, actor.account, owner, &id).await?;
    match found {
        Some(scopes) if grant.admits(&id, scopes.as_ref()) => Ok(id),
        Some(_) | None => Err(not_found(owner, reference)),
    }
}

/// [`resolved`], and held until the transaction ends.
async fn held(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    (owner, reference): (Owner, &str),
    hold: Hold,
) -> Result<String, ServiceError> {
    let id = resolved(tx, actor, grant, (owner, reference)).await?;
    if property_owners::hold(tx, actor.account, owner, &id, hold).await? {
        Ok(id)
    } else {
        Err(not_found(owner, reference))
    }
}

/// The error of an owner that is absent, or in another account.
#[must_use]
pub(crate) fn not_found(owner: Owner, reference: &str) -> ServiceError {
    ServiceError::not_found(owner.as_str(), limits::shorten(reference))
}
