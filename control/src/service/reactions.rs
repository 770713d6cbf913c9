//! Reactions: made and read by operators, given their tasks from the log, carried out by workers (issue 9).

pub mod carry_out;

use shared::{id::ReactionId, problem::Code};
use tokio::sync::Notify;
use tracing::instrument;

use super::{
    App,
    access::require,
    action_creation::alone,
    bulk::{AfterCommit, Bulk},
    followers, named, properties,
    room::Rooms,
};
use crate::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        common::Stamp,
        grant::Grant,
        hears::Hears,
        permission::{Subject, Verb},
        reaction::{Deed, Effect, Outcome, Reaction, ReactionChange, ReactionDetails, Status},
        webhook::Webhook,
    },
    error::ServiceError,
    metrics::ReactionMetrics,
    store::{Tx, documents, reaction_tasks as tasks},
};

/// What the workers of reactions of a process share with others.
#[derive(Debug, Default)]
pub struct Reactions {
    /// Told of when there is something to do.
    pub wake: Notify,
    /// What they counted.
    pub metrics: ReactionMetrics,
    /// How much more each account's reactions may have to do.
    pub(super) rooms: Rooms<shared::id::AccountId>,
}

/// Most things that the reactions of an account have to do at once: what a job of a million actions leads to.
pub(super) const MAX_TASKS: u64 = 1_000_000;

/// Makes a reaction, in a project if `project` names one; it reacts to what happens from now on.
///
/// # Errors
/// The key may not, a member or the project is wrong, there are too many, or the database failed.
#[instrument(skip_all)]
pub async fn create(
    app: &App,
    actor: &Actor,
    change: ReactionChange,
    project: Option<&str>,
) -> Result<Reaction, ServiceError> {
    let grant = require(actor, Verb::Create, Subject::Reactions)?;
    let (Some(name), Some(effect)) = (change.name.clone(), change.effect.clone()) else {
        return Err(ServiceError::refused(Code::Invalid, "name and effect are required."));
    };
    let now = app.clock.now();
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let project = followers::project_of_new(&mut tx, actor, &grant, project).await?;
    let details = ReactionDetails { common: change.common.clone(), hears: Hears::default(), effect };
    let new = Reaction {
        id: ReactionId::new(now.0, app.random16()?),
        stamp: Stamp::new(now),
        name,
        project,
        status: Status::Active,
        outcome: Outcome::default(),
        details,
    };
    let mut new = new.apply(change, now);
    new.stamp = Stamp::new(now);
    check(app, &mut tx, actor, &new).await?;
    let reaction = followers::add(&mut tx, actor.account, new).await?;
    tasks::open(&mut tx, actor.account).await?;
    tx.commit().await?;
    Ok(reaction)
}

/// Merges the members given into a reaction; what it has still to do stays what it was.
///
/// # Errors
/// It is not there, a member is wrong, or the database failed.
#[instrument(skip_all)]
pub async fn update(
    app: &App,
    actor: &Actor,
    id: &str,
    change: ReactionChange,
) -> Result<Reaction, ServiceError> {
    let grant = require(actor, Verb::Update, Subject::Reactions)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let (reaction, after) = Reaction::update_in(app, &mut tx, actor, &grant, id, change).await?;
    tx.commit().await?;
    after.run(app).await?;
    Ok(reaction)
}

impl Bulk for Reaction {
    type Change = ReactionChange;

    async fn update_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: ReactionChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let before: Self = named::find_locked(tx, actor, grant, reference).await?;
        let (was_disabled, is_other) = (before.status == Status::Disabled, change.effect.is_some());
        let reaction = before.apply(change, app.clock.now());
        if is_other {
            check(app, tx, actor, &reaction).await?;
        }
        followers::save(tx, actor.account, was_disabled, &reaction).await?;
        Ok((reaction, AfterCommit::default()))
    }

    async fn delete_in(
        _: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        followers::delete_in::<Self>(tx, actor, grant, reference).await
    }
}

/// Who a reaction is: it may do in its project what a trusted application may, and in the account what an operator
/// may.
pub(super) fn actor_of(
    account: shared::id::AccountId,
    id: ReactionId,
    project: Option<shared::id::ProjectId>,
) -> Actor {
    let kind = if project.is_some() { ActorKind::TrustedApp } else { ActorKind::Operator };
    let user_rights = UserRights::default();
    Actor { account, kind, id: id.to_string(), project, app: None, enterprise: false, user_rights }
}

/// Refuses an effect that could never be carried out: what it names must be there for the reaction.
async fn check(app: &App, tx: &mut Tx, actor: &Actor, reaction: &Reaction) -> Result<(), ServiceError> {
    let by = actor_of(actor.account, reaction.id, reaction.project);
    let named = |member: &str, error: ServiceError| match error {
        ServiceError::Refused { code: Code::NotFound | Code::Conflict, errors } => {
            let errors = errors.into_iter().map(|error| format!("{member}: {error}")).collect();
            ServiceError::Refused { code: Code::Invalid, errors }
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
            let invalid = |errors| ServiceError::Refused { code: Code::Invalid, errors };
            let draft = Deed::draft(action).map_err(invalid)?;
            let faults = alone::check(app, tx, &by, &draft).await?;
            if faults.is_empty() {
                return Ok(());
            }
            Err(invalid(faults.iter().map(|fault| format!("effect.action.{fault}")).collect()))
        }
    }
}

/// Whether a reaction may send events to a webhook: those of the account must not get out to a project.
pub(super) fn may_call(project: Option<shared::id::ProjectId>, webhook: &Webhook) -> bool {
    webhook.project.is_none() || webhook.project == project
}
