//! The location history of Thngs.

use serde_json::json;
use shared::{
    id::{AccountId, PlaceId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    named,
};
use crate::{
    domain::{
        access::Actor,
        listing::ListRequest,
        location::{Location, LocationEntry},
        page::Page,
        permission::{Subject::Locations, Verb},
        place::Place,
        resource::Thng,
    },
    error::{CommonError, ServiceError},
    store::{Conn, Tx, documents, listing::Selection, thng_locations},
};

/// What the audit trail calls the locations of a Thng, whose id it names.
const KIND: &str = "thngLocations";

/// Adds locations of a Thng; returns what was written, in the same order.
///
/// # Errors
/// The Thng or a place does not exist.
#[instrument(skip_all)]
pub async fn add(
    core: &Core,
    caller: &Caller,
    reference: &str,
    locations: Vec<(String, Location)>,
) -> Result<Vec<LocationEntry>, ServiceError> {
    let grant = require(caller, Verb::Update, Locations)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut thng: Thng = named::find_locked(&mut tx, caller, &grant, reference).await?;
    let entries = record(&mut tx, caller.account, &mut thng, locations, core.clock.now()).await?;
    tx.commit().await?;
    Ok(entries)
}

/// Adds where a Thng was, and writes its latest location into it; `Thng` must be locked or new.
///
/// Each location comes with the name by which faults call it.
///
/// # Errors
/// A place does not exist.
pub(crate) async fn record(
    tx: &mut Tx,
    account: AccountId,
    thng: &mut Thng,
    locations: Vec<(String, Location)>,
    now: UnixMillis,
) -> Result<Vec<LocationEntry>, ServiceError> {
    let locations = at_places(tx, account, locations).await?;
    let mut entries = Vec::with_capacity(locations.len());
    for location in locations {
        let entry = thng_locations::insert(tx, account, thng.id, location, now).await?;
        let state = || json!({"timestamp": entry.position.at.0, "place": entry.location.place});
        tx.note(account, (KIND, thng.id.as_str()), || (None, Some(state())));
        entries.push(entry);
    }
    follow(tx, account, thng).await?;
    Ok(entries)
}

/// The history of a Thng's location.
///
/// # Errors
/// The Thng does not exist.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    reference: &str,
    request: &ListRequest,
) -> Result<Page<LocationEntry>, ServiceError> {
    let grant = require(actor, Verb::Read, Locations)?;
    let mut conn = core.db.read().await?;
    let thng: Thng = named::find(&mut conn, actor, &grant, reference).await?;
    let within = [("thng", thng.id.as_str())];
    let limit = &crate::domain::grant::Limit::Account;
    let selection = Selection { account: actor.account, limit, request, within: &within };
    Ok(thng_locations::list(&mut conn, &selection).await?)
}

/// Removes where a Thng was before `to`, or everything.
///
/// # Errors
/// The Thng does not exist.
#[instrument(skip_all)]
pub async fn delete(
    core: &Core,
    caller: &Caller,
    reference: &str,
    to: Option<UnixMillis>,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Locations)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut thng: Thng = named::find_locked(&mut tx, caller, &grant, reference).await?;
    thng_locations::delete(&mut tx, caller.account, thng.id, to).await?;
    let until = || json!({"to": to.map(|at| at.0)});
    tx.note(caller.account, (KIND, thng.id.as_str()), || (Some(until()), None));
    follow(&mut tx, caller.account, &mut thng).await?;
    Ok(tx.commit().await?)
}

/// Locations with the points of their places where they name none themselves.
///
/// # Errors
/// A place does not exist in the account.
pub async fn at_places(
    conn: &mut Conn,
    account: AccountId,
    locations: Vec<(String, Location)>,
) -> Result<Vec<Location>, ServiceError> {
    let mut ids: Vec<String> =
        locations.iter().filter_map(|(_, at)| at.place).map(|id: PlaceId| id.to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    let found: Vec<Place> =
        if ids.is_empty() { Vec::new() } else { documents::find_many(conn, account, &ids).await? };
    let (mut out, mut faults) = (Vec::with_capacity(locations.len()), Vec::new());
    for (name, location) in locations {
        let place = location.place.map(|id| (id, found.iter().find(|place| place.id == id)));
        match place {
            Some((id, None)) => faults.push(format!("{name}.place: the place {id} does not exist.")),
            Some((_, Some(place))) => out.push(location.or_at(place.coordinates)),
            None => out.push(location),
        }
    }
    if faults.is_empty() { Ok(out) } else { Err(CommonError::Faults(faults).into()) }
}

// Spec gap: whether a location changes a Thng's updatedAt is not shown; it does not, as with properties.
async fn follow(tx: &mut Tx, account: AccountId, thng: &mut Thng) -> Result<(), ServiceError> {
    let latest = thng_locations::find_latest(tx, account, thng.id).await?.map(|entry| entry.location);
    if thng.details.location != latest {
        thng.details.location = latest;
        documents::update(tx, account, thng).await?;
    }
    Ok(())
}
