//! Members of collections: Thngs, and other collections.

use crate::service::access::Caller;
use std::collections::BTreeSet;

use serde_json::json;
use shared::id::{CollectionId, ThngId, is_valid};
use tracing::instrument;

use super::unknown;
use crate::{
    domain::{
        access::Actor,
        collection::{Collection, MAX_DEPTH, MemberKind, check_nesting},
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{Collections, Thngs},
            Verb,
        },
        resource::Thng,
    },
    error::{CatalogError, ServiceError},
    service::{
        Core,
        access::require,
        named::{self, is_seen},
        with_properties,
    },
    store::{
        Conn, Tx, accounts,
        collection_members::{self as members, Direction},
        collections, documents,
        listing::Selection,
        thngs,
    },
};

/// What the audit trail calls the members of a collection, whose id it names.
const KIND: &str = "collectionMembers";

/// Lists the Thngs of a collection.
///
/// # Errors
/// The collection does not exist.
#[instrument(skip_all)]
pub async fn list_thngs(
    core: &Core,
    actor: &Actor,
    reference: &str,
    request: &ListRequest,
) -> Result<Page<Thng>, ServiceError> {
    let grant = require(actor, Verb::Read, Collections)?;
    let thngs_grant = require(actor, Verb::List, Thngs)?;
    let mut conn = core.db.read().await?;
    let id = named::find::<Collection>(&mut conn, actor, &grant, reference).await?.id;
    let within = [("in", id.as_str())];
    let selection =
        Selection { account: actor.account, limit: thngs_grant.limit(), request, within: &within };
    let mut page = thngs::list_in_collection(&mut conn, &selection).await?;
    with_properties::show(&mut conn, actor, &mut page.items).await?;
    Ok(page)
}

/// Adds Thngs to a collection; those that are in stay.
///
/// # Errors
/// The collection or one of the Thngs does not exist: then none is added. Or the database failed.
#[instrument(skip_all)]
pub async fn add_thngs(
    core: &Core,
    caller: &Caller,
    reference: &str,
    ids: &[String],
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Collections)?;
    // Only Thngs that the caller may list, because they become visible as members of the collection.
    let readable = require(caller, Verb::List, Thngs)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = named::find_locked::<Collection>(&mut tx, caller, &grant, reference).await?.id;
    let found = thngs::list_scopes(&mut tx, caller.account, ids).await?;
    let known: BTreeSet<String> = found
        .into_iter()
        .filter(|(id, scopes)| readable.admits(id, scopes.as_ref()))
        .map(|(id, _)| id)
        .collect();
    check_known("thng", ids, &known)?;
    members::add(&mut tx, MemberKind::Thngs, caller.account, id, ids).await?;
    tx.note(caller.account, (KIND, id.as_str()), || (None, Some(json!({"thngs": ids}))));
    Ok(tx.commit().await?)
}

/// Takes every member of a kind out of a collection.
///
/// # Errors
/// The collection does not exist.
#[instrument(skip_all)]
pub async fn remove_all(
    core: &Core,
    caller: &Caller,
    reference: &str,
    kind: MemberKind,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Collections)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = named::find_locked::<Collection>(&mut tx, caller, &grant, reference).await?.id;
    members::remove_all(&mut tx, kind, caller.account, id).await?;
    let name = kind.as_str();
    tx.note(caller.account, (KIND, id.as_str()), || (Some(json!({ name: "all" })), None));
    Ok(tx.commit().await?)
}

/// Takes one member out of a collection.
///
/// # Errors
/// The collection does not exist or the member is not in it.
#[instrument(skip_all)]
pub async fn remove_one(
    core: &Core,
    caller: &Caller,
    reference: &str,
    kind: MemberKind,
    member: &str,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Collections)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = named::find_locked::<Collection>(&mut tx, caller, &grant, reference).await?.id;
    if !is_valid(member) || !members::remove(&mut tx, kind, caller.account, id, member).await? {
        return Err(ServiceError::not_found(kind.one(), shorten(member)));
    }
    let name = kind.as_str();
    tx.note(caller.account, (KIND, id.as_str()), || (Some(json!({ name: [member] })), None));
    Ok(tx.commit().await?)
}

/// Lists the collections in a collection.
///
/// # Errors
/// The collection does not exist.
#[instrument(skip_all)]
pub async fn list_collections(
    core: &Core,
    actor: &Actor,
    reference: &str,
    request: &ListRequest,
) -> Result<Page<Collection>, ServiceError> {
    let grant = require(actor, Verb::Read, Collections)?;
    let mut conn = core.db.read().await?;
    let id = named::find::<Collection>(&mut conn, actor, &grant, reference).await?.id;
    let within = [("in", id.as_str())];
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(collections::list_in_collection(&mut conn, &selection).await?)
}

/// Puts collections into a collection; those that are in stay.
///
/// # Errors
/// One of them does not exist, `Code::Conflict` when one would be inside of itself or too deep: then none is
/// added. Or the database failed.
#[instrument(skip_all)]
pub async fn add_collections(
    core: &Core,
    caller: &Caller,
    reference: &str,
    ids: &[String],
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Collections)?;
    let readable = require(caller, Verb::Read, Collections)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    // Two concurrent requests could create a cycle that neither sees.
    accounts::lock(&mut tx, caller.account).await?;
    let outer = named::find_locked::<Collection>(&mut tx, caller, &grant, reference).await?.id;
    let known = known_collections(&mut tx, caller, &readable, ids).await?;
    check_known("collection", ids, &known)?;
    if !ids.is_empty() {
        let above = levels(&mut tx, caller, vec![outer.to_string()], Direction::Above).await?;
        let mut below = vec![ids.to_vec()];
        below.extend(levels(&mut tx, caller, ids.to_vec(), Direction::Below).await?);
        check_nesting(outer.as_str(), &above, &below).map_err(CatalogError::Nesting)?;
        members::add(&mut tx, MemberKind::Collections, caller.account, outer, ids).await?;
    }
    tx.note(caller.account, (KIND, outer.as_str()), || (None, Some(json!({"collections": ids}))));
    Ok(tx.commit().await?)
}

/// Makes a Thng a member of exactly these collections; the caller must be able to change each collection whose
/// membership changes.
///
/// # Errors
/// A collection that the Thng is to join or leave does not exist for the caller.
pub(crate) async fn set_collections_of(
    tx: &mut Tx,
    actor: &Actor,
    thng: ThngId,
    stored: &[CollectionId],
    wanted: &[CollectionId],
) -> Result<(), ServiceError> {
    let joins: Vec<CollectionId> = wanted.iter().filter(|id| !stored.contains(id)).copied().collect();
    let leaves: Vec<CollectionId> = stored.iter().filter(|id| !wanted.contains(id)).copied().collect();
    if joins.is_empty() && leaves.is_empty() {
        return Ok(());
    }
    let grant = require(actor, Verb::Update, Collections)?;
    let touched: Vec<String> = joins.iter().chain(&leaves).map(CollectionId::to_string).collect();
    let known = known_collections(tx, actor, &grant, &touched).await?;
    check_known("collections: the collection", &touched, &known)?;
    for id in joins {
        members::add(tx, MemberKind::Thngs, actor.account, id, &[thng.to_string()]).await?;
    }
    for id in leaves {
        members::remove(tx, MemberKind::Thngs, actor.account, id, thng.as_str()).await?;
    }
    Ok(())
}

/// Those of some ids that are collections which exist for the caller.
async fn known_collections(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    ids: &[String],
) -> Result<BTreeSet<String>, ServiceError> {
    let found: Vec<Collection> = documents::find_many(tx, actor.account, ids).await?;
    let seen = found.into_iter().filter(|found| is_seen(found, grant));
    Ok(seen.map(|found| found.id.to_string()).collect())
}

fn check_known(kind: &str, ids: &[String], known: &BTreeSet<String>) -> Result<(), ServiceError> {
    let missing: Vec<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(unknown(kind, missing)) }
}

/// The levels of collections above or below some, nearest first; one more than may be, at most.
async fn levels(
    conn: &mut Conn,
    actor: &Actor,
    start: Vec<String>,
    direction: Direction,
) -> Result<Vec<Vec<String>>, ServiceError> {
    let mut levels = Vec::new();
    let mut level = start;
    while levels.len() <= MAX_DEPTH {
        level = members::list_level(conn, actor.account, &level, direction).await?;
        if level.is_empty() {
            break;
        }
        levels.push(level.clone());
    }
    Ok(levels)
}
