//! Commissioning and decommissioning of Thngs, and their states (`control/README.md`, "Commissioning").

use serde_json::{Map, Value, json};
use shared::{
    commission::CommissionState,
    id::{ActionId, PlaceId, ProductId, ThngId},
    personal_data::PersonalData,
    problem::Code,
};
use tracing::instrument;

use super::{
    ActionState,
    access::{Caller, require, require_enterprise},
    action_creation, named,
    redirections::follow_thng,
    references::{resolve_product, resolve_thng},
};
use crate::{
    domain::{
        access::Actor,
        action::Action,
        commissioning::{self, Commission, Factories, Facts, Step, Taken},
        commissioning_body::{CommissionDraft, Pair, StepDraft},
        context::{self, Origin},
        grant::Grant,
        location::Location,
        permission::{Subject::Commissioning, Verb},
        personal::Redaction,
        place::Place,
        reference::Reference,
        resource::{Product, Thng},
    },
    error::{CommissioningError, CommonError, ServiceError},
    store::{
        Conn, Tx,
        actions::{self, NewAction},
        audit::state_of,
        commissions::{self, Found},
        documents, tenants,
    },
};

/// Links a Thng to a product; returns the action that records it.
///
/// # Errors
/// The account may not (403), the Thng does not exist (404), product or place do not exist (400), an identifier
/// belongs to several, or something stands against the step (409, with every reason).
#[instrument(skip_all)]
pub async fn commission(
    state: &ActionState,
    caller: &Caller,
    thng: &str,
    draft: &CommissionDraft,
    origin: Origin<'_>,
) -> Result<Action, ServiceError> {
    let grant = admit(caller, Verb::Create)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let product = find_product(&mut tx, caller, &draft.product).await?;
    let id = resolve_with_product(&mut tx, caller, thng, product.as_ref().ok()).await?;
    let making =
        Making { state, actor: caller, grant: &grant, origin, step: Step::Commission, draft: &draft.step };
    let order = draft.purchase_order.as_deref();
    making.run(tx, thng, id, Some((product, order))).await
}

/// Withdraws a Thng; returns the action that records it.
///
/// # Errors
/// As [`commission`].
#[instrument(skip_all)]
pub async fn decommission(
    state: &ActionState,
    caller: &Caller,
    thng: &str,
    draft: &StepDraft,
    origin: Origin<'_>,
) -> Result<Action, ServiceError> {
    let grant = admit(caller, Verb::Create)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let id = resolve_thng(&mut tx, caller.account, thng).await?;
    Making { state, actor: caller, grant: &grant, origin, step: Step::Decommission, draft }
        .run(tx, thng, id, None)
        .await
}

/// A state, and when the step to it happened, as the factory wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stands {
    /// The state.
    pub state: CommissionState,
    /// Absent if it was never commissioned.
    pub occurred_at: Option<String>,
}

impl From<Option<Commission>> for Stands {
    fn from(found: Option<Commission>) -> Self {
        match found {
            None => Self { state: CommissionState::NotCommissioned, occurred_at: None },
            Some(found) => Self { state: found.state, occurred_at: Some(found.occurred_at) },
        }
    }
}

/// The state of a Thng.
///
/// # Errors
/// The account may not, the Thng does not exist, or its identifier is ambiguous.
#[instrument(skip_all)]
pub async fn read_state(state: &ActionState, actor: &Actor, thng: &str) -> Result<Stands, ServiceError> {
    let grant = admit(actor, Verb::Read)?;
    let mut conn = state.db.read().await?;
    let found: Thng = named::find(&mut conn, actor, &grant, thng).await?;
    Ok(commissions::find(&mut conn, actor.account, found.id).await?.into())
}

/// The states of pairs of a Thng and a product, in their order; one that does not fit was never commissioned.
///
/// # Errors
/// The account may not.
#[instrument(skip_all)]
pub async fn list_states(
    state: &ActionState,
    actor: &Actor,
    pairs: &[Pair],
) -> Result<Vec<Stands>, ServiceError> {
    let _ = admit(actor, Verb::Read)?;
    let mut conn = state.db.read().await?;
    let found = commissions::list(&mut conn, actor.account, pairs).await?;
    // Spec gap: two Thngs with one serial and product are not shown; the one with the latest step is returned.
    let stands = |found: Option<Found>| match found {
        None => Stands::from(None),
        Some(found) => Stands { state: found.state, occurred_at: Some(found.occurred_at) },
    };
    Ok(found.into_iter().map(stands).collect())
}

fn admit(actor: &Actor, verb: Verb) -> Result<Grant, ServiceError> {
    let grant = require(actor, verb, Commissioning)?;
    require_enterprise(actor, "Commissioning")?;
    Ok(grant)
}

/// The product that the body names, or the fault.
async fn find_product(
    tx: &mut Tx,
    actor: &Actor,
    reference: &Reference<ProductId>,
) -> Result<Result<ProductId, String>, ServiceError> {
    let missing = || format!("product: the product {reference} does not exist.");
    match resolve_product(tx, actor.account, &reference.to_string()).await {
        Ok(id) => {
            let found: Option<Product> = documents::find(tx, actor.account, id).await?;
            Ok(found.map(|product| product.id).ok_or_else(missing))
        }
        Err(ServiceError::Refused { code: Code::NotFound, .. }) => Ok(Err(missing())),
        Err(error) => Err(error),
    }
}

/// The Thng of the path; of several with its identifier that of the product that the body names.
async fn resolve_with_product(
    tx: &mut Tx,
    actor: &Actor,
    text: &str,
    product: Option<&ProductId>,
) -> Result<ThngId, ServiceError> {
    let ambiguous = match resolve_thng(tx, actor.account, text).await {
        Err(error) if error.code() == Code::Conflict => error,
        settled => return settled,
    };
    let (Some(product), Ok(Reference::<ThngId>::Identifier(named))) = (product, text.parse()) else {
        return Err(ambiguous);
    };
    let pair = (named.key.as_str(), named.value.as_str());
    commissions::find_of_product(tx, actor.account, pair, *product).await?.ok_or(ambiguous)
}

/// The work on one step.
struct Making<'a> {
    state: &'a ActionState,
    actor: &'a Actor,
    grant: &'a Grant,
    origin: Origin<'a>,
    step: Step,
    draft: &'a StepDraft,
}

/// The product of a commission or its fault, and its purchase order.
type Ordered<'a> = (Result<ProductId, String>, Option<&'a str>);

impl Making<'_> {
    async fn run(
        &self,
        mut tx: Tx,
        reference: &str,
        id: ThngId,
        ordered: Option<Ordered<'_>>,
    ) -> Result<Action, ServiceError> {
        let Self { state, actor, draft, .. } = *self;
        // A concurrent second request waits here, and then sees what the first one did.
        let kept = tenants::find_personal_data(&mut tx, actor.account).await?;
        let found = documents::find_locked(&mut tx, actor.account, id).await?;
        let thng: Thng = named::admitted(found, self.grant, reference)?;
        let known = commissions::find(&mut tx, actor.account, id).await?;
        let place = find_place(&mut tx, actor, &draft.location).await?;
        let (product, order, place) = match (ordered, place) {
            (Some((Err(fault), _)), Ok(_)) => return Err(CommonError::Faults(vec![fault]).into()),
            (Some((Err(fault), _)), Err(more)) => {
                return Err(CommonError::Faults(vec![fault, more]).into());
            }
            (_, Err(fault)) => return Err(CommonError::Faults(vec![fault]).into()),
            (Some((Ok(product), order)), Ok(place)) => (Some(product), order, place),
            (None, Ok(place)) => (None, None, place),
        };
        let factory = factory_of(&thng);
        self.check(&mut tx, &thng, known.as_ref(), factory.as_deref(), place.as_ref()).await?;

        let now = state.clock.now();
        let factory = draft.factory_metadata.as_ref().map(|named| named.factory.clone()).or(factory);
        let before = known.as_ref().map(state_of);
        let commission = self.remembered(known, product, factory.clone(), order)?;
        commissions::put(&mut tx, actor.account, id, &commission).await?;
        tx.note(actor.account, ("commission", id.as_str()), || (before, Some(state_of(&commission))));
        let thng = Thng { product, stamp: thng.stamp.touch(now), ..thng };
        documents::update(&mut tx, actor.account, &thng).await?;
        let location = self.located(place.as_ref());
        let action = self.action(&thng, &location, factory, order, kept)?;
        actions::insert(&mut tx, now, std::slice::from_ref(&action)).await?;
        // Edges learn of the state as of a change of the name: it is read with the redirection.
        let followed = follow_thng(&mut tx, actor.account, id, product, true, now).await?;
        // Its Digital Link is that of its product.
        let item = (id, product);
        let relinked = digital_links::service::follow_thng(&mut tx, actor.account, item, false, now).await?;
        tx.commit().await?;
        state.readers.wake_events();
        if followed || relinked {
            state.readers.wake_edges();
        }
        Ok(action_creation::created(action, now))
    }

    async fn check(
        &self,
        tx: &mut Tx,
        thng: &Thng,
        known: Option<&Commission>,
        factory: Option<&str>,
        place: Option<&Place>,
    ) -> Result<(), ServiceError> {
        let request = self.draft.factory_metadata.as_ref().map(|named| named.factory.as_str());
        let place = place.map(|place| {
            let named = place.details.common.identifiers.as_ref().and_then(|all| all.get("factory"));
            (place.id, named.map(String::as_str))
        });
        let facts = Facts {
            state: known.map_or(CommissionState::NotCommissioned, |known| known.state),
            is_encoded: commissions::is_encoded(tx, self.actor.account, thng.id).await?,
            factories: Factories { thng: factory, request, place },
        };
        commissioning::take(self.step, &facts).map_err(CommissioningError::Step)?;
        Ok(())
    }

    /// The stored state after the step; a decommission keeps product, factory and order.
    fn remembered(
        &self,
        known: Option<Commission>,
        product: Option<ProductId>,
        factory: Option<String>,
        order: Option<&str>,
    ) -> Result<Commission, ServiceError> {
        let moment = &self.draft.occurred_at;
        let taken = Taken { at: moment.at, to: self.step.leads_to() };
        let occurred_at = moment.text.clone();
        let mut commission = match (known, product) {
            (Some(known), None) => Commission { occurred_at, ..known },
            (known, Some(product)) => Commission {
                state: taken.to,
                product,
                occurred_at,
                factory,
                purchase_order: order.map(str::to_owned),
                steps: known.map(|known| known.steps).unwrap_or_default(),
            },
            // Refused before.
            (None, None) => return Err(ServiceError::Internal("a decommission of nothing".to_owned())),
        };
        commission.remember(taken);
        Ok(commission)
    }

    /// The location with the point of its place, and a time.
    fn located(&self, place: Option<&Place>) -> Location {
        let at = place.and_then(|place| place.coordinates);
        let given = self.draft.location.clone().or_at(at);
        Location { timestamp: given.timestamp.or(Some(self.draft.occurred_at.at)), ..given }
    }

    fn action(
        &self,
        thng: &Thng,
        location: &Location,
        factory: Option<String>,
        order: Option<&str>,
        kept: PersonalData,
    ) -> Result<NewAction, ServiceError> {
        let Self { state, actor, draft, step, origin, .. } = *self;
        let metadata = draft.factory_metadata.as_ref();
        let mut custom = Map::new();
        // Spec gap: where supplier, zone and the offset of `occurredAt` are kept is not shown.
        for (name, value) in [
            ("factory", factory),
            ("purchaseOrder", order.map(str::to_owned)),
            ("supplier", metadata.and_then(|named| named.supplier.clone())),
            ("zone", metadata.and_then(|named| named.zone.clone())),
            ("occurredAt", Some(draft.occurred_at.text.clone())),
        ] {
            if let Some(value) = value {
                custom.insert(name.to_owned(), value.into());
            }
        }
        let source = if draft.location.coordinates.is_some() { "sensor" } else { "place" };
        let locality = origin.ip.map(|ip| state.geo_ip.find(ip)).unwrap_or_default();
        let agent = context::read_agent(&state.agents, origin.user_agent);
        let mut doc = json!({
            "customFields": custom,
            "locationSource": source,
            "location": location.members(),
            "context": context::context(origin, agent, &locality),
            "tags": [],
            "reactions": [],
        });
        if let Value::Object(members) = &mut doc {
            // No rule looks at the point of a step; no assessment takes a step for a scan.
            Redaction { kept, agents: &state.agents, devices: None }.document(members);
        }
        let projects = thng.details.common.scopes.as_ref().map(|scopes| scopes.projects.clone());
        if let Some(projects) = projects.filter(|projects| !projects.is_empty()) {
            doc["scopes"] = json!({"users": [], "projects": projects});
        }
        Ok(NewAction {
            id: ActionId::new(state.clock.now().0, state.random16()?),
            account: actor.account,
            kind: step.action_type().to_owned(),
            thng: Some(thng.id),
            product: thng.product,
            timestamp: draft.occurred_at.at,
            doc,
        })
    }
}

/// The place that a location names, or the fault.
async fn find_place(
    conn: &mut Conn,
    actor: &Actor,
    location: &Location,
) -> Result<Result<Option<Place>, String>, ServiceError> {
    let Some(id): Option<PlaceId> = location.place else { return Ok(Ok(None)) };
    let found: Option<Place> = documents::find(conn, actor.account, id).await?;
    Ok(found.map(Some).ok_or_else(|| format!("location.place: the place {id} does not exist.")))
}

/// `customFields.factory` of a Thng; a value that is not a text is compared as its JSON.
fn factory_of(thng: &Thng) -> Option<String> {
    let value = thng.details.common.custom_fields.as_ref()?.get("factory")?;
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}
