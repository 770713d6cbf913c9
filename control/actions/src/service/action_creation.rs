//! Creates actions, for requests and jobs alike.

pub mod alike;
pub mod alone;
mod faults;
mod seen;
mod target;
mod template;

use crate::service::access::Caller;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use shared::{
    id::{ActionId, PlaceId},
    personal_data::PersonalData,
    problem::Code,
    time::UnixMillis,
};
use tracing::instrument;

use self::target::Target;
use self::{
    seen::Seen,
    template::{Template, is_empty},
};
use super::{
    ActionState, access::require, action_types, actions::Scope, named::is_seen, scopes::scopes_for,
    user_rules::UserRules,
};
use crate::{
    domain::{
        access::{Actor, ActorKind},
        action::{Action, ActionType},
        action_draft::ActionDraft,
        action_names::{BUILT_IN, TriggerType, WRITTEN_BY_OPERATIONS, is_custom},
        context::{self, Origin},
        device::DeviceKey,
        grant::{Grant, Limit},
        limits::shorten,
        location::{Coordinates, Location},
        permission::{
            Subject::{Actions, Encodings, InspectorScans, Places},
            Verb, may_create_action,
        },
        place::Place,
        scan_source::{self, Source},
        scopes::Scopes,
    },
    error::{ActionsError, CommonError, ServiceError},
    store::{
        Tx, action_types as types,
        actions::{self, NewAction},
        documents, tenants,
    },
};

/// Options that all actions of one request share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// Where the request came from; nothing for what no client asks for.
    pub origin: Origin<'a>,
    /// The project that `?project=` names.
    pub project: Option<&'a str>,
}

/// Creates actions, all or none, in the given order; `kind` is a type, or `all` if each draft has its own.
///
/// # Errors
/// The type or a resource in the path does not exist (404), the key may not write the type (403), an identifier is
/// ambiguous (409), or anything else in a draft is invalid (400, with `[3].` before the member if there are several
/// drafts).
#[instrument(skip_all)]
pub async fn create(
    state: &ActionState,
    caller: &Caller,
    scope: Scope<'_>,
    kind: &str,
    drafts: &[ActionDraft],
    around: Circumstances<'_>,
) -> Result<Vec<Action>, ServiceError> {
    let path_type = ActionType::parse(kind).ok_or_else(|| action_types::not_found(kind))?;
    let grant = require_create(caller, path_type.name())?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let mut making = Making::begin(state, &mut tx, caller, &grant, around).await?;
    let now = making.now;
    if let Some(name) = path_type.name() {
        making.check_type(&mut tx, name, action_types::not_found).await?;
    }
    let target = making.of_path(&mut tx, scope).await?;
    let (mut new, mut faults) = (Vec::with_capacity(drafts.len()), Vec::new());
    for (index, draft) in drafts.iter().enumerate() {
        let id = ActionId::new(now.0, state.random16()?);
        match making.make(&mut tx, id, path_type.name(), target.as_ref(), draft).await {
            Ok(action) => new.push(action),
            Err(ServiceError::Refused { code: Code::Invalid, errors }) if drafts.len() > 1 => {
                faults.extend(errors.into_iter().map(|fault| format!("[{index}].{fault}")));
            }
            Err(error) => return Err(error),
        }
    }
    if !faults.is_empty() {
        return Err(CommonError::Faults(faults).into());
    }
    actions::insert(&mut tx, now, &new).await?;
    state.observers.recorded(&mut tx, caller.account, now, &new).await?;
    tx.commit().await?;
    state.readers.wake_events();
    Ok(new.into_iter().map(|action| created(action, now)).collect())
}

/// The grant for new actions of a type: some roles may create those of one type alone.
///
/// # Errors
/// The key or role lacks the permission.
pub fn require_create(actor: &Actor, kind: Option<&str>) -> Result<Grant, ServiceError> {
    let of_type = match kind {
        Some("encodings") => Some(Encodings),
        Some("inspectorScans") => Some(InspectorScans),
        Some(_) | None => None,
    };
    require(actor, Verb::Create, Actions).or_else(|refused| {
        of_type.and_then(|subject| require(actor, Verb::Create, subject).ok()).ok_or(refused)
    })
}

/// An action as it was stored; its place in lists is not known here.
pub fn created(new: NewAction, created_at: UnixMillis) -> Action {
    let members = if let Value::Object(members) = new.doc { members } else { Map::new() };
    Action {
        id: new.id,
        seq: 0,
        created_at,
        timestamp: new.timestamp,
        kind: new.kind,
        thng: new.thng,
        product: new.product,
        members,
    }
}

/// The work on one request.
struct Making<'a> {
    state: &'a ActionState,
    actor: &'a Actor,
    grant: &'a Grant,
    project: Option<&'a str>,
    /// The scopes of an action that asks for none.
    scopes: Option<Scopes>,
    seen: Seen,
    /// How much the account keeps of the people behind actions.
    kept: PersonalData,
    /// What tells devices apart.
    devices: DeviceKey,
    /// Whether drafts may give the customer in `context`; cached once it was looked up.
    reports_context: Option<bool>,
    now: UnixMillis,
    known_types: HashSet<String>,
    /// The rules of the application, if the caller is a user with `own` rights.
    rules: Option<UserRules>,
    /// Thngs found so far: a long array mostly names few.
    thngs: HashMap<String, Target>,
}

impl<'a> Making<'a> {
    /// Work on a request; the scopes that `?project=` asks for are checked here.
    async fn begin(
        state: &'a ActionState,
        tx: &mut Tx,
        actor: &'a Actor,
        grant: &'a Grant,
        around: Circumstances<'a>,
    ) -> Result<Self, ServiceError> {
        let now = state.clock.now();
        let scopes = scopes_for(tx, actor, grant, None, around.project).await?;
        let rules = UserRules::load(tx, actor).await?;
        let kept = tenants::find_personal_data(tx, actor.account).await?;
        Ok(Self {
            kept,
            devices: state.secrets.device_key(),
            actor,
            grant,
            project: around.project,
            scopes,
            state,
            seen: Seen::of(state, around.origin),
            reports_context: None,
            now,
            known_types: HashSet::new(),
            rules,
            thngs: HashMap::new(),
        })
    }

    async fn make(
        &mut self,
        tx: &mut Tx,
        id: ActionId,
        path_type: Option<&str>,
        path_target: Option<&Target>,
        draft: &ActionDraft,
    ) -> Result<NewAction, ServiceError> {
        let template = self.template(tx, path_type, draft).await?;
        let target = match path_target {
            Some(target) => target.clone(),
            None => self.of_draft(tx, draft).await?,
        };
        Ok(NewAction {
            id,
            account: self.actor.account,
            thng: target.thng,
            product: target.product,
            timestamp: template.timestamp,
            doc: template.doc_about(&target),
            kind: template.kind,
        })
    }

    /// The template from a draft, independent of its target.
    async fn template(
        &mut self,
        tx: &mut Tx,
        path_type: Option<&str>,
        draft: &ActionDraft,
    ) -> Result<Template, ServiceError> {
        let kind = match (path_type, &draft.kind) {
            (Some(name), _) => name,
            (None, Some(name)) => {
                let unknown =
                    |name: &str| ServiceError::from(ActionsError::NoSuchType(shorten(name).to_owned()));
                self.check_type(tx, name, unknown).await?;
                name
            }
            (None, None) => return Err(ActionsError::TypeMissing.into()),
        };
        let mut doc = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                doc.insert(name.to_owned(), value);
            }
        };
        let reported = self.reported(tx, draft).await?;
        let seen = reported.as_ref().unwrap_or(&self.seen);
        let (source, location) = self.locate(tx, draft.location.as_ref(), seen).await?;
        put("locationSource", Some(source.into()));
        put("location", location.map(Value::Object));
        put("context", Some(Value::Object(seen.context.clone())));
        put("tags", draft.tags.as_ref().map(|tags| json!(tags)));
        put("customFields", draft.custom_fields.clone().map(Value::Object));
        put("identifiers", draft.identifiers.as_ref().map(|all| json!(all)));
        put("user", (self.actor.kind == ActorKind::User).then(|| json!(self.actor.id)));
        let created_by = self.actor.project.map(|project| json!(project));
        put("createdByProject", created_by.or_else(|| self.project.map(Value::from)));
        put("createdByApp", self.actor.app.map(|app| json!(app)));
        put("reactions", Some(json!([])));
        if kind.parse::<TriggerType>().is_ok() {
            put(scan_source::MEMBER, Some(Source::of_actor(self.actor.kind).as_str().into()));
        }
        self.redaction(kind).document(&mut doc);
        // With a Thng's key the scopes are always those of the Thng.
        let asked = draft.scopes.as_ref().filter(|_| !matches!(self.grant.limit(), Limit::Itself(_)));
        let scopes = match asked.cloned() {
            None => self.scopes.clone(),
            asked => scopes_for(tx, self.actor, self.grant, asked, self.project).await?,
        };
        let scopes = scopes.filter(|scopes| !is_empty(scopes));
        let timestamp = draft.timestamp.unwrap_or(self.now);
        Ok(Template { kind: kind.to_owned(), timestamp, doc, scopes })
    }

    async fn check_type(
        &mut self,
        tx: &mut Tx,
        name: &str,
        unknown: impl Fn(&str) -> ServiceError,
    ) -> Result<(), ServiceError> {
        if self.known_types.contains(name) {
            return Ok(());
        }
        let is_known = BUILT_IN.contains(&name)
            || (is_custom(name) && types::find(tx, self.actor.account, name).await?.is_some());
        if !is_known {
            return Err(unknown(name));
        }
        let (kind, rights) = (self.actor.kind, self.actor.user_rights);
        let listed = self.rules.as_ref().and_then(UserRules::action_types);
        if !may_create_action(kind, rights, listed, name) {
            return Err(ActionsError::TypeOfOthers { kind, name: name.to_owned() }.into());
        }
        if WRITTEN_BY_OPERATIONS.contains(&name) {
            return Err(ActionsError::TypeOfOperations(name.to_owned()).into());
        }
        self.known_types.insert(name.to_owned());
        Ok(())
    }

    /// `locationSource` and `location`.
    async fn locate(
        &self,
        tx: &mut Tx,
        given: Option<&Location>,
        seen: &Seen,
    ) -> Result<(&'static str, Option<Map<String, Value>>), ServiceError> {
        let Some(given) = given else {
            let location = context::location(&seen.locality);
            return Ok((if location.is_some() { "geoIp" } else { "unknown" }, location));
        };
        let at_place = match given.place {
            Some(place) => self.place(tx, place).await?,
            None => None,
        };
        let source = if given.coordinates.is_some() { "sensor" } else { "place" };
        Ok((source, Some(given.clone().or_at(at_place).members())))
    }

    async fn place(&self, tx: &mut Tx, id: PlaceId) -> Result<Option<Coordinates>, ServiceError> {
        let found: Option<Place> = documents::find(tx, self.actor.account, id).await?;
        let grant = require(self.actor, Verb::Read, Places);
        let found = found.filter(|place| grant.is_ok_and(|grant| is_seen(place, &grant)));
        found.map(|place| place.coordinates).ok_or_else(|| ActionsError::NoSuchPlace(id).into())
    }
}
