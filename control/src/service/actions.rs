//! Actions and their types, read only (decisions 4).

use shared::id::{ProductId, ThngId};
use tracing::instrument;

use super::{
    App,
    access::require,
    references::{resolve_product, resolve_thng},
};
use crate::{
    domain::{
        access::Actor,
        action::{Action, ActionType, BUILT_IN},
        filter::Filter,
        limits::shorten,
        page::{Page, PageRequest},
        permission::{Subject::Actions, Verb},
    },
    error::ServiceError,
    store::{Conn, action_lists, action_lists::About, products, thngs},
};

/// What a path says the actions are about.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// `/actions`: anything in the account.
    Account,
    /// `/thngs/:id/actions`: a Thng by id or `<key>:<value>`.
    Thng(&'a str),
    /// `/products/:id/actions`: a product by id or `<key>:<value>`.
    Product(&'a str),
}

/// The types of actions, filtered by name if asked.
///
/// # Errors
/// The key may not.
pub fn list_types(
    actor: &Actor,
    page: PageRequest,
    filter: Option<&Filter>,
) -> Result<Page<&'static str>, ServiceError> {
    let _ = require(actor, Verb::Read, Actions)?;
    let names = BUILT_IN
        .into_iter()
        .filter(|name| filter.is_none_or(|filter| matches!(filter, Filter::Name(wanted) if wanted == name)));
    Ok(Page::of_list(names.collect(), page))
}

/// Lists actions of one type or of all.
///
/// # Errors
/// The type, Thng or product is not there, or the database failed.
#[instrument(skip_all)]
pub async fn list(
    app: &App,
    actor: &Actor,
    scope: Scope<'_>,
    kind: &str,
    page: PageRequest,
) -> Result<Page<Action>, ServiceError> {
    let _ = require(actor, Verb::Read, Actions)?;
    let kind = action_type(kind)?;
    let mut conn = app.db.read().await?;
    let about = about(&mut conn, actor, scope).await?;
    let rows = action_lists::list(&mut conn, actor.account, about, kind, page).await?;
    Ok(Page::cut(rows, page, Action::position))
}

/// Reads one action; its type and what it is about must be as the path says.
///
/// # Errors
/// There is no such action, or the database failed.
#[instrument(skip_all)]
pub async fn read(
    app: &App,
    actor: &Actor,
    scope: Scope<'_>,
    kind: &str,
    id: &str,
) -> Result<Action, ServiceError> {
    let _ = require(actor, Verb::Read, Actions)?;
    let kind = action_type(kind)?;
    let not_found = || ServiceError::not_found("action", shorten(id));
    let id = id.parse().map_err(|_| not_found())?;
    let mut conn = app.db.read().await?;
    let about = about(&mut conn, actor, scope).await?;
    let action = action_lists::find(&mut conn, actor.account, id).await?.ok_or_else(not_found)?;
    let fits = kind.name().is_none_or(|name| name == action.kind)
        && match about {
            About::Anything => true,
            About::Thng(id) => action.thng == Some(id),
            About::Product(id) => action.product == Some(id),
        };
    if fits { Ok(action) } else { Err(not_found()) }
}

fn action_type(text: &str) -> Result<ActionType<'_>, ServiceError> {
    ActionType::parse(text).ok_or_else(|| ServiceError::not_found("action type", shorten(text)))
}

async fn about(conn: &mut Conn, actor: &Actor, scope: Scope<'_>) -> Result<About, ServiceError> {
    match scope {
        Scope::Account => Ok(About::Anything),
        Scope::Thng(text) => {
            let id: ThngId = resolve_thng(conn, actor.account, text).await?;
            let found = thngs::find(conn, actor.account, id).await?;
            found.map(|_| About::Thng(id)).ok_or_else(|| ServiceError::not_found("thng", text))
        }
        Scope::Product(text) => {
            let id: ProductId = resolve_product(conn, actor.account, text).await?;
            let found = products::find(conn, actor.account, id).await?;
            found.map(|_| About::Product(id)).ok_or_else(|| ServiceError::not_found("product", text))
        }
    }
}
