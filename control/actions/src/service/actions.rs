//! Reads and deletes actions; `action_creation` creates them.

use crate::service::access::Caller;
use serde_json::{Map, Value, json};
use tracing::instrument;

use super::{ActionState, Observers, access::require, action_types, lists, named};
use crate::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        action::{Action, ActionType},
        action_names::BUILT_IN,
        action_names::RESULTS,
        collection::Collection,
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Actions, PersonalData},
            Verb,
        },
        resource::{Product, Thng},
        scan::IMPLICIT_SCANS,
    },
    error::{ActionsError, ServiceError},
    store::{Conn, action_lists::About, action_types as types, actions, listing::Selection},
};

/// The target that a path names.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// `/actions`: anything in the account.
    Account,
    /// `/thngs/:id/actions`: a Thng by id or `<key>:<value>`.
    Thng(&'a str),
    /// `/products/:id/actions`: a product by id or `<key>:<value>`.
    Product(&'a str),
    /// `/collections/:id/actions`: a collection by id or `<key>:<value>`.
    Collection(&'a str),
}

/// Lists actions of one type or of all.
///
/// # Errors
/// The type, Thng or product does not exist.
#[instrument(skip_all)]
pub async fn list(
    state: &ActionState,
    actor: &Actor,
    scope: Scope<'_>,
    kind: &str,
    request: &ListRequest,
) -> Result<Page<Action>, ServiceError> {
    let grant = require(actor, Verb::List, Actions)?;
    refuse_context(actor, request)?;
    let mut conn = state.db.read().await?;
    let kind = action_type(&mut conn, actor, kind).await?;
    let about = about(&mut conn, actor, &grant, scope).await?;
    let mut within = Vec::new();
    match &about {
        About::Anything => {}
        About::Thng(id) => within.push(("thng", id.as_str())),
        About::Product(id) => within.push(("product", id.as_str())),
        About::Collection(id) => within.push(("collection", id.as_str())),
    }
    within.extend(kind.name().map(|name| ("type", name)));
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    drop(conn);
    let mut page = lists::list(&*state.observers, &state.db, &selection).await?;
    page.items.iter_mut().for_each(|action| hide_context(actor, action));
    Ok(page)
}

/// Reads one action; its type and target must match the path.
///
/// # Errors
/// There is no such action.
#[instrument(skip_all)]
pub async fn read(
    state: &ActionState,
    actor: &Actor,
    scope: Scope<'_>,
    kind: &str,
    id: &str,
) -> Result<Action, ServiceError> {
    let grant = require(actor, Verb::Read, Actions)?;
    let mut conn = state.db.read().await?;
    let mut action = find(&*state.observers, &mut conn, actor, &grant, scope, kind, id).await?;
    hide_context(actor, &mut action);
    Ok(action)
}

/// Deletes one action; its type and target must match the path. A scan is removed from the profile of its Thng; hits
/// are unchanged.
///
/// # Errors
/// There is no such action.
#[instrument(skip_all)]
pub async fn delete(
    state: &ActionState,
    caller: &Caller,
    scope: Scope<'_>,
    kind: &str,
    id: &str,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Actions)?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    let action = find(&*state.observers, &mut tx, caller, &grant, scope, kind, id).await?;
    let is_here = actions::delete(&mut tx, caller.account, action.id).await?;
    let is_scan = action.kind == IMPLICIT_SCANS;
    if !is_here && !is_scan {
        return Err(not_found(id));
    }
    let id = action.id.to_string();
    let about = || json!({"type": action.kind, "thng": action.thng, "product": action.product});
    tx.note(caller.account, (actions::KIND, &id), || (Some(about()), None));
    state.observers.removed(&mut tx, caller.account, &action).await?;
    tx.commit().await?;
    // A kill before this leaves a scan whose removal is in the trail; whoever asked heard nothing, and asks again. While
    // scans are moved it may be in both places.
    let is_there = is_scan && state.scans.pool.delete(caller.account, &[action.id]).await? > 0;
    if is_here || is_there { Ok(()) } else { Err(not_found(&id)) }
}

/// Removes the context of an action if the caller may not see it: address, agent and place of the person behind it,
/// also where an assessment repeats them.
fn hide_context(actor: &Actor, action: &mut Action) {
    let members = &mut action.members;
    match shown_context(actor, members) {
        ShownContext::Whole => {}
        ShownContext::Coarse => coarsen_action(action),
        ShownContext::Nothing => {
            members.remove("context");
            if let Some(Value::Object(fields)) =
                members.get_mut("customFields").filter(|_| action.kind == RESULTS)
            {
                fields.remove("triggerContext");
            }
        }
    }
}

/// Members of a context that name no person: operators without the permission for personal data see these.
const COARSE: [&str; 5] = ["countryCode", "region", "timeZone", "operatingSystemName", "userAgentName"];

/// Prefixes of context fields: of the action itself, and of the scan that a result is about.
const CONTEXTS: [&str; 2] = ["context.", "customFields.triggerContext."];

/// Removes personal data from an action: all of the context but the coarse members, and the location of a person.
pub fn coarsen_action(action: &mut Action) {
    coarsen_members(&mut action.members, action.kind == RESULTS);
}

/// [`coarsen_action`] for the members of an action, or of a message about it.
pub fn coarsen_members(members: &mut Map<String, Value>, is_result: bool) {
    let coarsen = |context: &mut Value| {
        if let Value::Object(members) = context {
            members.retain(|name, _| COARSE.contains(&name.as_str()));
        }
    };
    let result = members.get_mut("customFields").filter(|_| is_result);
    result.and_then(|fields| fields.get_mut("triggerContext")).map(coarsen);
    members.get_mut("context").map(coarsen);
    // `sensor` is the exact position of a person, `geoIp` the city of an address.
    if matches!(members.get("locationSource").and_then(Value::as_str), Some("sensor" | "geoIp")) {
        members.remove("location");
    }
}

/// Whether a field, as filters and conditions name it, is personal data.
#[must_use]
pub fn is_personal(field: &str) -> bool {
    let context = CONTEXTS.iter().find_map(|context| field.strip_prefix(context));
    context.is_some_and(|member| !COARSE.contains(&member)) || field.starts_with("location.")
}

/// How much of a context somebody sees.
enum ShownContext {
    Whole,
    Coarse,
    Nothing,
}

/// How much a caller sees of the context of an action with these members.
///
/// Of holders of public keys only a user under [`UserRights::Open`] sees any, and of its own actions only.
fn shown_context(actor: &Actor, members: &Map<String, Value>) -> ShownContext {
    match (actor.kind, actor.user_rights) {
        (ActorKind::Operator | ActorKind::ProjectOperator | ActorKind::TrustedApp, _) => {
            if require(actor, Verb::Read, PersonalData).is_ok() {
                ShownContext::Whole
            } else {
                ShownContext::Coarse
            }
        }
        (ActorKind::User, UserRights::Open)
            if members.get("user").and_then(Value::as_str) == Some(actor.id.as_str()) =>
        {
            ShownContext::Whole
        }
        (ActorKind::User | ActorKind::App | ActorKind::Thng, _) => ShownContext::Nothing,
    }
}

/// Refuses a filter on members that the caller may not see, because its results would reveal them.
fn refuse_context(actor: &Actor, request: &ListRequest) -> Result<(), ServiceError> {
    let terms = request.filter.as_ref().map(|filter| filter.expr().terms()).unwrap_or_default();
    let is_hidden = |field: &str| {
        actor.kind.is_public() && CONTEXTS.iter().any(|context| field.starts_with(context))
            || is_personal(field) && require(actor, Verb::Read, PersonalData).is_err()
    };
    match terms.iter().find(|term| is_hidden(&term.field)) {
        Some(term) => Err(ActionsError::HiddenField(term.field.clone()).into()),
        None => Ok(()),
    }
}

/// What actions a subscription is about: the channel's parts, as far as they exist for the caller.
///
/// # Errors
/// The type, Thng, product or collection does not exist.
pub async fn find_channel(
    state: &ActionState,
    actor: &Actor,
    grant: &Grant,
    scope: Scope<'_>,
    kind: &str,
) -> Result<(About, Option<String>), ServiceError> {
    let mut conn = state.db.read().await?;
    let kind = action_type(&mut conn, actor, kind).await?.name().map(str::to_owned);
    Ok((about(&mut conn, actor, grant, scope).await?, kind))
}

async fn find(
    observers: &dyn Observers,
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    scope: Scope<'_>,
    kind: &str,
    id: &str,
) -> Result<Action, ServiceError> {
    let kind = action_type(conn, actor, kind).await?;
    let parsed = id.parse().map_err(|_| not_found(id))?;
    let about = about(conn, actor, grant, scope).await?;
    let action = lists::find(observers, conn, actor.account, parsed).await?.ok_or_else(|| not_found(id))?;
    let fits = kind.name().is_none_or(|name| name == action.kind)
        && match about {
            About::Anything => true,
            About::Thng(id) => action.thng == Some(id),
            About::Product(id) => action.product == Some(id),
            About::Collection(id) => {
                action.members.get("collection").is_some_and(|own| own.as_str() == Some(id.as_str()))
            }
        };
    let thng = action.thng.map(|id| id.to_string()).unwrap_or_default();
    if fits && grant.admits(&thng, action.scopes().as_ref()) { Ok(action) } else { Err(not_found(id)) }
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("action", shorten(id))
}

/// The type that a path names, which is built in or the account's own.
pub async fn action_type<'a>(
    conn: &mut Conn,
    actor: &Actor,
    text: &'a str,
) -> Result<ActionType<'a>, ServiceError> {
    let kind = ActionType::parse(text).ok_or_else(|| action_types::not_found(text))?;
    let is_there = match kind.name() {
        Some(name) => BUILT_IN.contains(&name) || types::find(conn, actor.account, name).await?.is_some(),
        None => true,
    };
    if is_there { Ok(kind) } else { Err(action_types::not_found(text)) }
}

/// The target that a path names; it must be visible to the caller.
async fn about(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    scope: Scope<'_>,
) -> Result<About, ServiceError> {
    // A readable target is enough here; which actions are visible is decided separately.
    let readable = |subject| require(actor, Verb::Read, subject).unwrap_or_else(|_| grant.clone());
    match scope {
        Scope::Account => Ok(About::Anything),
        Scope::Thng(text) => {
            let found: Thng = named::find(conn, actor, &readable(Subject::Thngs), text).await?;
            Ok(About::Thng(found.id))
        }
        Scope::Product(text) => {
            let found: Product = named::find(conn, actor, &readable(Subject::Products), text).await?;
            Ok(About::Product(found.id))
        }
        Scope::Collection(text) => {
            let found: Collection = named::find(conn, actor, &readable(Subject::Collections), text).await?;
            Ok(About::Collection(found.id))
        }
    }
}
