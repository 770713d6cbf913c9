//! Reactions: managed by operators, queued from the event log, carried out by workers.

pub mod carry_out;

use crate::service::access::Caller;
use shared::{id::ReactionId, problem::Code};
use tokio::sync::Notify;
use tracing::instrument;

use super::{
    EventState,
    access::require,
    action_creation::alone,
    bulk::{self, AfterCommit, Bulk},
    followers, named, properties,
    remaining_capacity::RemainingCapacity,
};
use crate::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        common::Stamp,
        grant::Grant,
        permission::{Subject, Verb},
        reaction::{Effect, Outcome, Reaction, ReactionChange, ReactionDetails, ResolvedEffect, Status},
        subject::Permissions,
        subscription_filter::SubscriptionFilter,
        webhook::Webhook,
    },
    error::{CommonError, EventsError, ServiceError},
    metrics::ReactionMetrics,
    store::{Tx, documents, reaction_tasks as tasks},
};

/// State that reaction workers of a process share with requests.
#[derive(Debug, Default)]
pub struct Reactions {
    /// Notified when there is a task.
    pub wake: Notify,
    /// Their counters.
    pub metrics: ReactionMetrics,
    /// How much more each account's reactions may have to do.
    pub(super) remaining: RemainingCapacity<shared::id::AccountId>,
}

/// Most queued tasks of an account's reactions: what a job of a million actions causes.
pub(super) const MAX_TASKS: u64 = 1_000_000;

/// Creates a reaction, in a project if `project` names one; it reacts to what happens from now on.
///
/// # Errors
/// The key lacks the permission, a member or the project is wrong, or there are too many.
#[instrument(skip_all)]
pub async fn create(
    state: &EventState,
    caller: &Caller,
    change: ReactionChange,
    project: Option<&str>,
) -> Result<Reaction, ServiceError> {
    let grant = require(caller, Verb::Create, Subject::Reactions)?;
    let _ = require(caller, Verb::Read, Subject::PersonalData)?;
    let (Some(name), Some(effect)) = (change.name.clone(), change.effect.clone()) else {
        return Err(EventsError::NameOrEffectMissing.into());
    };
    let now = state.clock.now();
    let (_place, mut tx) = state.begin_write(caller).await?;
    let project = followers::project_of_new(&mut tx, caller, &grant, project).await?;
    let details = ReactionDetails {
        common: change.common.clone(),
        subscription: SubscriptionFilter::default(),
        effect,
    };
    let new = Reaction {
        id: ReactionId::new(now.0, state.random16()?),
        stamp: Stamp::new(now),
        name,
        project,
        status: Status::Active,
        outcome: Outcome::default(),
        details,
    };
    let mut new = new.apply(change, now);
    new.stamp = Stamp::new(now);
    check(state, &mut tx, caller, &new).await?;
    let reaction = followers::add(&mut tx, caller.account, new).await?;
    tasks::open(&mut tx, caller.account).await?;
    tx.commit().await?;
    Ok(reaction)
}

/// Merges the members given into a reaction; tasks that are already queued do not change.
///
/// # Errors
/// It does not exist or a member is wrong.
#[instrument(skip_all)]
pub async fn update(
    state: &EventState,
    caller: &Caller,
    id: &str,
    change: ReactionChange,
) -> Result<Reaction, ServiceError> {
    bulk::update_one(state, caller, id, change).await
}

impl Bulk<EventState> for Reaction {
    type Change = ReactionChange;

    async fn update_in(
        state: &EventState,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: ReactionChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let _ = require(actor, Verb::Read, Subject::PersonalData)?;
        let before: Self = named::find_locked(tx, actor, grant, reference).await?;
        let (was_disabled, is_other) = (before.status == Status::Disabled, change.effect.is_some());
        let reaction = before.apply(change, state.clock.now());
        if is_other {
            check(state, tx, actor, &reaction).await?;
        }
        followers::save(tx, actor.account, was_disabled, &reaction).await?;
        Ok((reaction, AfterCommit::default()))
    }

    async fn delete_in(
        state: &EventState,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        followers::delete_in::<Self>(state, tx, actor, grant, reference).await
    }
}

/// The actor of a reaction: in its project it may do what a trusted application may, in the account what an operator
/// may.
pub(super) fn actor_of(
    account: shared::id::AccountId,
    id: ReactionId,
    project: Option<shared::id::ProjectId>,
) -> Actor {
    let kind = if project.is_some() { ActorKind::TrustedApp } else { ActorKind::Operator };
    let user_rights = UserRights::default();
    let (permissions, confined_to) = (Permissions::ALL, Vec::new());
    Actor {
        account,
        kind,
        id: id.to_string(),
        project,
        app: None,
        enterprise: false,
        user_rights,
        permissions,
        confined_to,
    }
}

/// Checks an effect: the caller needs the permission for what it does, and the reaction must see what it refers to.
async fn check(
    state: &EventState,
    tx: &mut Tx,
    actor: &Actor,
    reaction: &Reaction,
) -> Result<(), ServiceError> {
    let (verb, subject) = match &reaction.details.effect {
        Effect::Webhook { .. } => (Verb::Read, Subject::Webhooks),
        Effect::Property { .. } => (Verb::Update, Subject::Properties),
        Effect::Action { .. } => (Verb::Create, Subject::Actions),
    };
    let _ = require(actor, verb, subject)?;
    let by = actor_of(actor.account, reaction.id, reaction.project);
    let named = |member: &str, error: ServiceError| match error {
        ServiceError::Refused { code: Code::NotFound | Code::Conflict, errors } => {
            let faults = errors.into_iter().map(|error| format!("{member}: {error}"));
            CommonError::Faults(faults.collect()).into()
        }
        error => error,
    };
    match &reaction.details.effect {
        Effect::Webhook { webhook } => {
            let found: Option<Webhook> = documents::find(tx, actor.account, *webhook).await?;
            if found.is_some_and(|found| may_call(reaction.project, &found)) {
                return Ok(());
            }
            Err(named("effect.webhook", ServiceError::not_found("webhook", webhook)))
        }
        Effect::Property { target, .. } => match target.fixed() {
            Some((owner, reference)) => {
                let found = properties::find_writable(tx, &by, (owner, reference)).await;
                found.map(|_| ()).map_err(|error| named(&format!("effect.{}", owner.as_str()), error))
            }
            None => Ok(()),
        },
        Effect::Action { action } => {
            let draft = ResolvedEffect::draft(action).map_err(CommonError::Faults)?;
            let faults = alone::check(&state.actions, tx, &by, &draft).await?;
            if faults.is_empty() {
                return Ok(());
            }
            let faults = faults.iter().map(|fault| format!("effect.action.{fault}"));
            Err(CommonError::Faults(faults.collect()).into())
        }
    }
}

/// Whether a reaction may send events to a webhook: those of the account must not get out to a project.
pub(super) fn may_call(project: Option<shared::id::ProjectId>, webhook: &Webhook) -> bool {
    webhook.project.is_none() || webhook.project == project
}
