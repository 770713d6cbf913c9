//! Creates a single action on behalf of the platform, inside a larger transaction.

use serde_json::{Value, json};
use shared::id::ActionId;

use super::{Circumstances, Making};
use crate::{
    domain::{
        access::Actor,
        action_draft::ActionDraft,
        permission::{Subject::Actions, Verb},
    },
    error::ServiceError,
    service::{ActionState, access::require},
    store::{Tx, actions},
};

/// Creates an action for a reaction. It enters no scan profile, because it is not a customer's.
///
/// # Errors
/// The same as for a request that creates one.
pub async fn create(
    state: &ActionState,
    tx: &mut Tx,
    actor: &Actor,
    draft: &ActionDraft,
) -> Result<ActionId, ServiceError> {
    let grant = require(actor, Verb::Create, Actions)?;
    let mut making = Making::begin(state, tx, actor, &grant, Circumstances::default()).await?;
    let id = ActionId::new(making.now.0, state.random16()?);
    let mut new = making.make(tx, id, None, None, draft).await?;
    if let Value::Object(members) = &mut new.doc {
        members.insert("createdByReaction".to_owned(), json!(actor.id));
    }
    actions::insert(tx, making.now, std::slice::from_ref(&new)).await?;
    Ok(id)
}

/// Every fault of a draft in this account.
pub async fn check(
    state: &ActionState,
    tx: &mut Tx,
    actor: &Actor,
    draft: &ActionDraft,
) -> Result<Vec<String>, ServiceError> {
    let grant = require(actor, Verb::Create, Actions)?;
    let mut making = Making::begin(state, tx, actor, &grant, Circumstances::default()).await?;
    let template = making.template(tx, None, draft).await.map(|_| ());
    // A draft without a target is about the target of the event.
    let target = if draft.names_something() { making.of_draft(tx, draft).await.map(|_| ()) } else { Ok(()) };
    let mut faults = Vec::new();
    for outcome in [template, target] {
        match outcome {
            Ok(()) => {}
            Err(ServiceError::Refused { errors, .. }) => faults.extend(errors),
            Err(error) => return Err(error),
        }
    }
    Ok(faults)
}
