//! Creates actions that differ only in their Thngs: a job's actions from its template, chunk by chunk.

use std::collections::HashMap;

use shared::id::{ActionId, CollectionId, ProductId};

use super::{Circumstances, Making, Target, faults::in_body, target::projects};
use crate::{
    domain::{
        access::Actor,
        action_draft::ActionDraft,
        event::Quiet,
        permission::{Subject::Actions, Verb},
        quota::{Exceeded, Quota},
    },
    error::ServiceError,
    service::{ActionState, access::require},
    store::{
        Tx,
        actions::{self, AlikeAction, AlikeActions},
        quotas,
        thngs::Target as Thng,
    },
};

/// References of a template besides the Thng.
#[derive(Default)]
struct Named {
    product: Option<ProductId>,
    collection: Option<CollectionId>,
}

/// Creates one action for each Thng from a template; returns those that were refused, by index, with the reason. The
/// transaction must have begun to write.
///
/// `quiet` excludes kinds of subscribers.
///
/// # Errors
/// The template itself is refused, or the database failed; then nothing was created.
pub async fn create(
    state: &ActionState,
    tx: &mut Tx,
    actor: &Actor,
    around: Circumstances<'_>,
    draft: &ActionDraft,
    quiet: Quiet,
    thngs: &[(ActionId, Thng)],
) -> Result<Vec<(usize, String)>, ServiceError> {
    let grant = require(actor, Verb::Create, Actions)?;
    let mut making = Making::begin(state, tx, actor, &grant, around).await?;
    let template = making.template(tx, None, draft).await?;
    let named = named(&making, tx, draft).await?;
    let (mut refused, mut rows, mut docs) = (Vec::new(), Vec::with_capacity(thngs.len()), Vec::new());
    let mut places = Vec::with_capacity(thngs.len());
    let mut known: HashMap<Vec<String>, usize> = HashMap::new();
    for (place, (id, thng)) in thngs.iter().enumerate() {
        if !grant.admits(thng.thng.as_str(), thng.scopes.as_ref()) {
            refused.push((place, format!("The thng {} was not found.", thng.thng)));
            continue;
        }
        let product = match (named.product, thng.product) {
            // Spec gap: as of an action by itself, a product that is not the Thng's own is refused.
            (Some(other), Some(own)) if other != own => {
                refused.push((place, format!("The thng is an instance of {own}, not of {other}.")));
                continue;
            }
            (named, own) => own.or(named),
        };
        // Documents only differ in the projects of their Thngs.
        let projects = if template.scopes.is_some() { Vec::new() } else { projects(thng.scopes.clone()) };
        let doc = *known.entry(projects).or_insert_with_key(|projects| {
            let (thng, collection) = (Some(thng.thng), named.collection);
            let target = Target { thng, product, collection, projects: projects.clone() };
            docs.push(template.doc_about(&target));
            docs.len() - 1
        });
        places.push(place);
        rows.push(AlikeAction { id: *id, thng: thng.thng, product, doc });
    }
    let (quota, wanted) = (Quota::of_action(&template.kind), rows.len() as u64);
    let (granted, exceeded) = quotas::charge_some(tx, actor.account, quota, wanted, making.now).await?;
    if let Some(exceeded) = exceeded.map(|exceeded| Exceeded { wanted: 1, ..exceeded }) {
        let granted = usize::try_from(granted).unwrap_or(usize::MAX);
        rows.truncate(granted);
        refused.extend(places.into_iter().skip(granted).map(|place| (place, exceeded.to_string())));
    }
    let alike = AlikeActions {
        account: actor.account,
        kind: template.kind,
        timestamp: template.timestamp,
        docs,
        rows,
    };
    actions::insert_alike(tx, making.now, &alike, quiet).await?;
    Ok(refused)
}

/// Every fault of a template in this account: types, places, products, collections.
///
/// # Errors
/// `?project=` names none of the account.
pub async fn check(
    state: &ActionState,
    tx: &mut Tx,
    actor: &Actor,
    around: Circumstances<'_>,
    draft: &ActionDraft,
) -> Result<Vec<String>, ServiceError> {
    let grant = require(actor, Verb::Create, Actions)?;
    let mut making = Making::begin(state, tx, actor, &grant, around).await?;
    let mut faults = Vec::new();
    let template = making.template(tx, None, draft).await.map(|_| ());
    let named = named(&making, tx, draft).await.map(|_| ());
    for outcome in [template, named] {
        match outcome {
            Ok(()) => {}
            Err(ServiceError::Refused { errors, .. }) => faults.extend(errors),
            Err(error) => return Err(error),
        }
    }
    Ok(faults)
}

/// The product that a template names; [`check`] has found it.
///
/// # Errors
/// It does not exist.
pub async fn product_of(
    state: &ActionState,
    tx: &mut Tx,
    actor: &Actor,
    draft: &ActionDraft,
) -> Result<Option<ProductId>, ServiceError> {
    let grant = require(actor, Verb::Create, Actions)?;
    let making = Making::begin(state, tx, actor, &grant, Circumstances::default()).await?;
    Ok(named(&making, tx, draft).await?.product)
}

/// References of the template must be visible to the caller.
async fn named(making: &Making<'_>, tx: &mut Tx, draft: &ActionDraft) -> Result<Named, ServiceError> {
    let mut named = Named::default();
    if let Some(text) = &draft.product {
        let found = making.product(tx, &text.to_string()).await;
        named.product = found.map_err(|error| in_body("product", error))?.product;
    }
    if let Some(text) = &draft.collection {
        let found = making.collection(tx, &text.to_string()).await;
        named.collection = found.map_err(|error| in_body("collection", error))?.collection;
    }
    Ok(named)
}
