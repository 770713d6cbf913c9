//! Assessment of items: loads facts, computes the verdict, and stores the action that holds it.

pub mod displays;
mod facts;
pub mod groups;
pub mod history;
pub mod observe;
mod recount;
pub mod replay;
pub mod settings;
pub mod standing;

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use shared::{
    id::{ActionId, CaseId, ThngId},
    personal_data::PersonalData as Kept,
    time::UnixMillis,
};
use tracing::instrument;

use self::{
    facts::{Gathered, gather},
    groups::Waiting,
};
use super::{
    AssessmentState,
    access::{Caller, require, require_enterprise},
    action_creation::require_create,
    actions::coarsen_action,
    lists,
};
use crate::{
    domain::{
        access::{Actor, ActorKind},
        action::Action,
        action_names::{RESULTS, TriggerType},
        assessment::{
            Assessment,
            document::{self, DEFAULT_TYPES},
            recorded,
            trigger::Asked,
        },
        context::{Origin, reduced_agent},
        device::{self, AccountDevices},
        permission::{
            Subject::{Assessments, PersonalData},
            Verb,
        },
        personal::redact_point,
    },
    error::{AssessmentError, CommonError, ServiceError},
    store::{Conn, actions::NewAction, applications, tenants},
};

/// Assesses a scan; returns the action that holds the result.
///
/// The action is stored before the response, in one transaction with the verdict for edges, batched with concurrent
/// assessments. There is no queue in which it could be lost or duplicated, and its id is the one in the response.
///
/// # Errors
/// The account or the key lacks the permission (403), or the database failed. An unknown item is a result.
#[instrument(skip_all)]
pub async fn authenticate(
    state: &AssessmentState,
    caller: &Caller,
    asked: &Asked,
    origin: Origin<'_>,
) -> Result<Action, ServiceError> {
    let grant = require(caller, Verb::Create, Assessments)?;
    require_enterprise(caller, "Assessment")?;
    let now = state.clock.now();
    let mut conn = state.db.read().await?;
    let stored = lists::find(&*state.actions.observers, &mut conn, caller.account, asked.id).await?;
    let request = asked.clone().complete(stored.as_ref());
    let mut request = request.map_err(CommonError::Faults)?;
    check_type(&mut conn, caller, request.kind).await?;
    let kept = tenants::find_personal_data(&mut conn, caller.account).await?;
    let devices = state.devices.of(caller.account);
    let of_another = stored.as_ref().is_some_and(|scan| is_of_another(caller, scan, origin, kept, devices));
    if kept == Kept::Truncated {
        // Before it is judged: distances in a result would tell the exact point.
        request = request.with_point(|at| redact_point(at, kept));
    }
    let mut gathered = gather(state, &mut conn, caller, &grant, &request, stored, origin, kept, now).await?;
    drop(conn);
    // Judge with full data; store what the account's setting allows.
    redact_agent(state, &mut gathered, kept);
    let request = request.with_point(|at| redact_point(at, kept));
    let id = ActionId::new(now.0, state.random16()?);
    let cases = [CaseId::new(now.0, state.random16()?), CaseId::new(now.0, state.random16()?)];
    let waiting = Waiting { caller: caller.clone(), request, gathered, id, cases };
    let mut answer = state.groups.submit(waiting).await?;
    if of_another {
        document::withhold_scan(asked, &mut answer.members);
    }
    if caller.kind.is_operator() && require(caller, Verb::Read, PersonalData).is_err() {
        coarsen_action(&mut answer);
    }
    Ok(answer)
}

/// The body of a trigger for [`Asked::parse`]: a location that is the stored action's own is left to that action.
///
/// # Errors
/// The key may not (403).
pub async fn as_recorded(state: &AssessmentState, actor: &Actor, body: Value) -> Result<Value, ServiceError> {
    if !recorded::has_recorded_location(&body) {
        return Ok(body);
    }
    let _ = require(actor, Verb::Create, Assessments)?;
    let Some(id) = body["id"].as_str().and_then(|id| id.parse().ok()) else { return Ok(body) };
    let mut conn = state.db.read().await?;
    let stored = lists::find(&*state.actions.observers, &mut conn, actor.account, id).await?;
    Ok(stored.and_then(|stored| recorded::without_location(&body, &stored)).unwrap_or(body))
}

/// Redacts the user agent that a result repeats, also of a scan that was stored when the account kept more.
fn redact_agent(state: &AssessmentState, gathered: &mut Gathered, kept: Kept) {
    let Some(agent) = gathered.context.user_agent.take() else { return };
    let is_reduced = gathered.scan.as_ref().is_some_and(|scan| stored_device(scan).is_some());
    gathered.context.user_agent = match kept {
        Kept::Full => Some(agent),
        Kept::Truncated if is_reduced => Some(agent),
        Kept::Truncated => reduced_agent(&state.actions.agents, &agent),
        Kept::None => None,
    };
}

/// The device that was stored with a scan, in place of its whole user agent.
fn stored_device(scan: &Map<String, Value>) -> Option<&str> {
    scan.get("context")?.get(device::MEMBER)?.as_str()
}

/// Whether the holder of a public key names a scan of somebody else: neither its user nor its address matches.
///
/// Of a scan whose address and user agent were truncated, network and device must be those of the caller: many others are
/// in its network.
fn is_of_another(
    actor: &Actor,
    scan: &Action,
    origin: Origin<'_>,
    kept: Kept,
    devices: AccountDevices,
) -> bool {
    let user = scan.members.get("user").and_then(Value::as_str);
    let address = observe::address_of(&scan.members);
    let is_own = |address: IpAddr, ip: IpAddr| match stored_device(&scan.members) {
        None => address == ip,
        Some(stored) => {
            let own = origin.user_agent.and_then(|agent| devices.device(agent));
            kept == Kept::Truncated
                && kept.address(ip) == Some(address)
                && own.is_some_and(|own| own.hex() == stored)
        }
    };
    actor.kind.is_public()
        && (actor.kind != ActorKind::User || user != Some(actor.id.as_str()))
        && !address.zip(origin.ip).is_some_and(|(address, ip)| is_own(address, ip))
}

/// An application may only submit the trigger types that it lists, so that nobody claims an inspector's evidence.
// Spec gap: where an application lists them is not shown: in `triggerTypes`, or as in older releases in
// `customFields.triggerTypes`; operators write both.
async fn check_type(conn: &mut Conn, actor: &Actor, kind: TriggerType) -> Result<(), ServiceError> {
    // A key of a project has the limits of an application. An operator confined by its role has those of an operator.
    if actor.kind == ActorKind::Operator || !actor.confined_to.is_empty() {
        if kind == TriggerType::InspectorScans {
            let _ = require_create(actor, Some(kind.as_str()))?;
        }
        return Ok(());
    }
    let application = match (actor.project, actor.app) {
        (Some(project), Some(app)) => applications::find(conn, actor.account, project, app).await?,
        // A key of a project is of no application: it may submit what one may that lists nothing.
        _ => None,
    };
    let details = application.map(|found| found.details).unwrap_or_default();
    let fields = details.common.custom_fields.as_ref();
    let older = fields.and_then(|fields| fields.get("triggerTypes")).and_then(Value::as_array);
    let is_listed = match (&details.trigger_types, older) {
        (Some(listed), _) => listed.iter().any(|one| one == kind.as_str()),
        (None, Some(listed)) => listed.iter().any(|one| one.as_str() == Some(kind.as_str())),
        (None, None) => DEFAULT_TYPES.contains(&kind),
    };
    if is_listed {
        return Ok(());
    }
    Err(AssessmentError::TriggerNotAllowed(kind).into())
}

fn result(waiting: &Waiting, assessment: &Assessment, now: UnixMillis) -> NewAction {
    let Waiting { caller: actor, request, gathered, id, .. } = waiting;
    let (fields, tags) =
        document::members(assessment, request, &gathered.context, &gathered.markets, &gathered.settings);
    let mut doc = json!({
        "customFields": fields,
        "tags": tags,
        "locationSource": request.source.as_str(),
        "reactions": [],
    });
    if let Some(at) = request.at {
        doc["location"] = at.members().into();
    }
    // The requested Thng is returned even if it does not exist.
    if let (None, Some(thng)) = (&gathered.thng, request.named.shown().filter(|_| !request.is_by_value())) {
        doc["thng"] = json!(thng);
    }
    if actor.kind == ActorKind::User {
        doc["user"] = json!(actor.id);
    }
    for (name, id) in [
        ("createdByProject", actor.project.map(|id| id.to_string())),
        ("createdByApp", actor.app.map(|id| id.to_string())),
    ] {
        if let Some(id) = id {
            doc[name] = json!(id);
        }
    }
    let mut projects = gathered.thng.as_ref().map(|thng| thng.projects.clone()).unwrap_or_default();
    let own: Vec<String> = actor.projects().unwrap_or_default().iter().map(ToString::to_string).collect();
    if !own.iter().any(|id| projects.contains(id)) {
        projects.extend(own);
    }
    let users: Vec<&str> = (actor.kind == ActorKind::User).then_some(actor.id.as_str()).into_iter().collect();
    if !projects.is_empty() || !users.is_empty() {
        doc["scopes"] = json!({"users": users, "projects": projects});
    }
    NewAction {
        id: *id,
        account: actor.account,
        kind: RESULTS.to_owned(),
        thng: gathered.thng.as_ref().map(|thng| thng.id),
        product: gathered.thng.as_ref().and_then(|thng| thng.product),
        timestamp: now,
        doc,
    }
}

/// A Thng as results and edges name it.
#[derive(Debug, Clone)]
struct Subject {
    id: ThngId,
    product: Option<shared::id::ProductId>,
    projects: Vec<String>,
}
