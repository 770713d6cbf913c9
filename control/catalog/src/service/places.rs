//! Places, and the search for the nearest.

use std::collections::HashMap;

use countries::distance::{Bounds, Rank, Search};
use shared::{id::PlaceId, time::UnixMillis};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    named,
    operations::operations,
    scopes::scopes_for,
};
use crate::{
    domain::{
        access::Actor,
        common::Stamp,
        grant::Grant,
        listing::ListRequest,
        location::Coordinates,
        page::{Page, PageRequest, Position},
        permission::{Subject::Places, Verb},
        place::{Place, PlaceChange},
    },
    error::ServiceError,
    store::{Conn, Tx, documents, places},
};

/// Creates a place, in a project if `project` names one.
///
/// # Errors
/// The key lacks the permission, the name is missing, or there is no such project.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    mut change: PlaceChange,
    project: Option<&str>,
) -> Result<Place, ServiceError> {
    let grant = require(caller, Verb::Create, Places)?;
    let now = core.clock.now();
    let id = PlaceId::new(now.0, core.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let scopes = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, caller, &grant, scopes, project).await?;
    let (coordinates, details) = (change.coordinates, change.details);
    let new = Place { id, stamp: Stamp::new(now), name, coordinates, details };
    let place = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(place)
}

operations!(Place, PlaceChange, named);

/// Lists the places around a point, nearest first; a position in this list is a distance in millimetres.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list_nearest(
    core: &Core,
    actor: &Actor,
    center: Coordinates,
    max_km: f64,
    page: PageRequest,
) -> Result<Page<Place>, ServiceError> {
    let grant = require(actor, Verb::Read, Places)?;
    let after = page.after.map(|position| Rank { distance_mm: position.at.0, seq: position.seq });
    let search = Search { center, max_km, after, limit: page.limit() as usize };
    let mut conn = core.db.read().await?;
    let mut found = Vec::new();
    for radius_km in search.radii_km() {
        let mut nearest = search.within(radius_km);
        let bounds = Bounds::around(center, radius_km);
        let admits = |id: &str, scopes: Option<&_>| grant.admits(id, scopes);
        places::offer_in_box(&mut conn, actor.account, bounds, admits, &mut nearest).await?;
        let is_full = nearest.is_full();
        found = nearest.into_sorted();
        if is_full {
            break;
        }
    }
    load_in_order(&mut conn, actor, found, page).await
}

async fn load_in_order(
    conn: &mut Conn,
    actor: &Actor,
    found: Vec<(Rank, String)>,
    request: PageRequest,
) -> Result<Page<Place>, ServiceError> {
    let position = |(rank, _): &(Rank, String)| Position { at: UnixMillis(rank.distance_mm), seq: rank.seq };
    let page = Page::cut(found, request, position);
    let ids: Vec<String> = page.items.into_iter().map(|(_, id)| id).collect();
    let loaded: Vec<Place> = documents::find_many(conn, actor.account, &ids).await?;
    let mut by_id: HashMap<String, Place> =
        loaded.into_iter().map(|place| (place.id.to_string(), place)).collect();
    // One that was removed since the search is left out.
    let items = ids.iter().filter_map(|id| by_id.remove(id)).collect();
    Ok(Page { items, next: page.next, total: None })
}

impl Bulk<Core> for Place {
    type Change = PlaceChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: PlaceChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let scopes = change.details.common.scopes.take();
        change.details.common.scopes = grant.scopes_of_change(scopes);
        let stored: Self = named::find_locked(tx, actor, grant, reference).await?;
        let place = stored.apply(change, core.clock.now());
        documents::update(tx, actor.account, &place).await?;
        Ok((place, AfterCommit::default()))
    }

    async fn delete_in(
        _: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = named::find_locked::<Self>(tx, actor, grant, reference).await?.id;
        documents::delete::<Self>(tx, actor.account, id).await?;
        Ok(AfterCommit::default())
    }
}
