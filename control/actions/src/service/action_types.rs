//! Action types: built-in ones, and those of an account.

use crate::service::access::Caller;
use shared::filter::Fact;
use tracing::instrument;

use super::{ActionState, access::require};
use crate::{
    domain::{
        access::Actor,
        action_names::BUILT_IN,
        action_names::is_custom,
        action_type::{CustomType, NewType},
        common::Common,
        filter::Filter,
        limits::shorten,
        listing::ListRequest,
        page::{Page, Position},
        permission::{Subject::ActionTypes, Verb},
    },
    error::{ActionsError, ServiceError},
    store::{StoreError, accounts, action_types},
};

/// Most types that an account makes: they are listed from memory.
pub const MAX_TYPES: i64 = 1_000;

/// A type of action.
#[derive(Debug, Clone, PartialEq)]
pub enum KnownType {
    /// One that every account has.
    BuiltIn(&'static str),
    /// One of the account.
    Custom(Box<CustomType>),
}

impl KnownType {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::BuiltIn(name) => name,
            Self::Custom(custom) => &custom.name,
        }
    }
}

/// The types of actions, the built-in ones being the oldest; filtered by name if asked.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    state: &ActionState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<KnownType>, ServiceError> {
    // Action types are visible to every caller of the account that may list them.
    let _ = require(actor, Verb::List, ActionTypes)?;
    let mut conn = state.db.read().await?;
    let custom = action_types::list(&mut conn, actor.account).await?;
    let built_in = (0..)
        .zip(BUILT_IN)
        .map(|(seq, name)| (Position { at: shared::time::UnixMillis(0), seq }, KnownType::BuiltIn(name)));
    let filter = request.filter.as_ref().map(Filter::expr);
    let all = built_in
        .chain(custom.into_iter().map(|one| (one.stamp.position(), KnownType::Custom(Box::new(one)))))
        // The only field of the filter is the name.
        .filter(|(_, one)| {
            filter.is_none_or(|filter| filter.eval(&mut |term| term.admits(Fact::Text(one.name()))))
        });
    Ok(Page::of_placed(all.collect(), request.page))
}

/// Creates a type.
///
/// # Errors
/// The key lacks the permission, or the account has a type of this name or too many.
#[instrument(skip_all)]
pub async fn create(
    state: &ActionState,
    caller: &Caller,
    mut new: NewType,
) -> Result<CustomType, ServiceError> {
    let grant = require(caller, Verb::Create, ActionTypes)?;
    new.details.scopes = grant.scopes_of_new(new.details.scopes);
    let name = new.name.clone();
    let (_place, mut tx) = state.begin_write(caller).await?;
    accounts::lock(&mut tx, caller.account).await?;
    if action_types::count(&mut tx, caller.account).await? >= MAX_TYPES {
        return Err(ActionsError::TooManyTypes { most: MAX_TYPES }.into());
    }
    let made = action_types::insert(&mut tx, caller.account, new, state.clock.now()).await;
    let made = made.map_err(|error| match error {
        StoreError::Unique(_) => ServiceError::from(ActionsError::TypeExists(name)),
        error => error.into(),
    })?;
    tx.commit().await?;
    Ok(made)
}

/// Merges the members given into a type; its name stays.
///
/// # Errors
/// It is built in or does not exist.
#[instrument(skip_all)]
pub async fn update(
    state: &ActionState,
    caller: &Caller,
    name: &str,
    mut change: Common,
) -> Result<CustomType, ServiceError> {
    let grant = require(caller, Verb::Update, ActionTypes)?;
    change.scopes = grant.scopes_of_change(change.scopes);
    check_own(name)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let stored = action_types::find_locked(&mut tx, caller.account, name).await?;
    let stored =
        stored.filter(|stored| grant.admits(&stored.name, stored.scopes())).ok_or_else(|| not_found(name))?;
    let changed = stored.apply(change, state.clock.now());
    action_types::update(&mut tx, caller.account, &changed).await?;
    tx.commit().await?;
    Ok(changed)
}

// Spec gap: what becomes of the actions of a deleted type is not shown: they stay, under `all`.
/// Deletes a type; its actions stay.
///
/// # Errors
/// It is built in or does not exist.
#[instrument(skip_all)]
pub async fn delete(state: &ActionState, caller: &Caller, name: &str) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, ActionTypes)?;
    check_own(name)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let stored = action_types::find_locked(&mut tx, caller.account, name).await?;
    if !stored.is_some_and(|stored| grant.admits(&stored.name, stored.scopes())) {
        return Err(not_found(name));
    }
    action_types::delete(&mut tx, caller.account, name).await?;
    Ok(tx.commit().await?)
}

fn check_own(name: &str) -> Result<(), ServiceError> {
    if BUILT_IN.contains(&name) {
        return Err(ActionsError::BuiltInType(name.to_owned()).into());
    }
    // A name that no type can have is not asked for: Postgres takes no U+0000.
    if is_custom(name) { Ok(()) } else { Err(not_found(name)) }
}

/// The error of a type that is absent, or in another account.
#[must_use]
pub(crate) fn not_found(name: &str) -> ServiceError {
    ServiceError::not_found("action type", shorten(name))
}
