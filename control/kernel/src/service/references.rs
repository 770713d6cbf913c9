//! Resolves a path reference to the one Thng or product that is meant.

use std::{fmt::Display, str::FromStr};

use shared::id::{AccountId, ProductId, ThngId};

use crate::{
    domain::reference::Reference,
    error::{CommonError, ServiceError},
    store::{
        Conn, StoreError,
        identifiers::{self, Match},
    },
};

/// The Thng that a path names by id or `<key>:<value>`; an id is returned without checking that the Thng exists.
///
/// # Errors
/// [`CommonError::NotFound`], or [`CommonError::Ambiguous`] when several Thngs have the identifier.
pub async fn resolve_thng(conn: &mut Conn, account: AccountId, text: &str) -> Result<ThngId, ServiceError> {
    resolve(conn, account, "thng", text).await
}

/// The product that a path names by id or `<key>:<value>`; an id is returned without a check.
///
/// # Errors
/// [`CommonError::NotFound`], or [`CommonError::Ambiguous`] when several products have the identifier.
pub async fn resolve_product(
    conn: &mut Conn,
    account: AccountId,
    text: &str,
) -> Result<ProductId, ServiceError> {
    resolve(conn, account, "product", text).await
}

/// The resource that a path names by id or `<key>:<value>`; an id is returned without a check.
///
/// # Errors
/// [`CommonError::NotFound`], or [`CommonError::Ambiguous`] when several have the identifier.
pub async fn resolve<Id: FromStr + Display>(
    conn: &mut Conn,
    account: AccountId,
    kind: &'static str,
    text: &str,
) -> Result<Id, ServiceError> {
    let not_found = || ServiceError::not_found(kind, crate::domain::limits::shorten(text));
    let identifier = match text.parse() {
        Ok(Reference::Id(id)) => return Ok(id),
        Ok(Reference::<Id>::Identifier(identifier)) => identifier,
        Err(_) => return Err(not_found()),
    };
    match identifiers::find(conn, account, kind, &identifier).await? {
        Match::None => Err(not_found()),
        Match::One(id) => Ok(id.parse().map_err(|_| StoreError::Row(format!("resource_id: {id:?}")))?),
        Match::Many(count) => Err(CommonError::Ambiguous { kind, identifier, count }.into()),
    }
}
