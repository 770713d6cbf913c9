//! Results of assessments of scans from a network. They hold no address: each is found by the action that it is of, before that
//! one loses its own.

use std::collections::BTreeSet;

use actions::store::merged_lists;
use kernel::{domain::action::Action, error::ServiceError, store::Ctx};
use serde_json::{Map, Value};
use shared::id::ActionId;

use super::{
    PrivacyState,
    steps::{STEP, finish, position},
};
use crate::{
    domain::{
        cut::{concerns, cut},
        erasure::{Erasure, Target},
    },
    store::{
        erasures::Claimed,
        personal_actions::{self, Of},
    },
};

/// Whether the next step of an erasure is on results.
pub(super) const fn are_next(erasure: &Erasure) -> bool {
    matches!(erasure.details.target, Target::Network { .. }) && !erasure.details.place.are_results_done
}

/// Cuts the next results whose actions came from the network; `false` when another worker holds the erasure.
pub(super) async fn step(state: &PrivacyState, claimed: &mut Claimed) -> Result<bool, ServiceError> {
    let mut next = claimed.erasure.clone();
    let (account, target) = (next.account, next.details.target.clone());
    let after = next.details.place.results.map_or((i64::MIN, i64::MIN), |after| (after.at, after.seq));
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let rows = personal_actions::list(&mut tx, account, Of::Results, after, STEP).await?;
    let ids: BTreeSet<ActionId> = rows.iter().filter_map(|row| assessed(row.members())).collect();
    let ids: Vec<ActionId> = ids.into_iter().collect();
    let found = merged_lists::find_many(&*state.actions.scans.reserved, &mut tx, account, &ids).await?;
    let is_sought = |action: &&Action| concerns(&target, None, Some(action.timestamp), &action.members);
    let sought: BTreeSet<ActionId> = found.iter().filter(is_sought).map(|action| action.id).collect();
    for row in &rows {
        let mut members = row.members().clone();
        let is_sought = assessed(&members).is_some_and(|id| sought.contains(&id));
        if is_sought && cut(&target, &mut members) {
            personal_actions::update(&mut tx, account, row, &members).await?;
            next.details.counts.actions += 1;
        }
    }
    let last = rows.last().map(|row| position(row.created_at().0, row.seq));
    Ok(finish(tx, claimed, next.after_results(last, state.clock.now())).await?)
}

/// The action that a result is of; it may not be stored.
fn assessed(result: &Map<String, Value>) -> Option<ActionId> {
    result.get("customFields")?.get("triggerAction")?.as_str()?.parse().ok()
}
