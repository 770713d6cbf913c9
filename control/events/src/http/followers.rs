//! HTTP code that webhooks and reactions share.

use std::sync::Arc;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::request::Parts,
    response::Response,
};
use serde::Serialize;
use web::{
    access::{Access, Authenticated},
    api_error::ApiError,
    conditions::Tagged,
    extract::{Path, Query},
    listing::Listing,
    request_info::RequestInfo,
};

use crate::{
    domain::listing::ListType,
    service::{
        EventState,
        access::Caller,
        bulk::{self, Bulk},
        followers,
        named::tag_of,
    },
    store::followers::Follower,
};

/// A request about all that the caller has of a kind.
pub(super) struct All {
    pub(super) state: Arc<EventState>,
    pub(super) caller: Caller,
    pub(super) info: RequestInfo,
    pub(super) query: Query,
}

impl<S: Send + Sync> FromRequestParts<S> for All
where
    Access: FromRef<S>,
    Arc<EventState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        let Ok(info) = RequestInfo::from_request_parts(parts, state).await;
        let query = Query::from_request_parts(parts, state).await?;
        Ok(Self { state: Arc::from_ref(state), caller, info, query })
    }
}

impl All {
    /// A page of them, each as a document.
    pub(super) async fn list<F: Follower, D: From<F> + Serialize>(
        self,
        kind: &ListType,
    ) -> Result<Response, ApiError> {
        let listing = Listing::parse(&self.state, &self.caller, self.info, &self.query, kind)?;
        let page = followers::list::<F>(&self.state, &self.caller, &listing.request).await?;
        Ok(listing.answer(&self.state, page, D::from))
    }
}

/// A request about the one whose id is in the path.
pub(super) struct One {
    pub(super) state: Arc<EventState>,
    pub(super) caller: Caller,
    pub(super) id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for One
where
    Access: FromRef<S>,
    Arc<EventState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        let Path(id) = Path::from_request_parts(parts, state).await?;
        Ok(Self { state: Arc::from_ref(state), caller, id })
    }
}

impl One {
    /// It as a document.
    pub(super) async fn read<F: Follower, D: From<F>>(self) -> Result<Tagged<D>, ApiError> {
        let found = followers::read::<F>(&self.state, &self.caller, &self.id).await?;
        Ok(Tagged(tag_of(&found), found.into()))
    }

    /// Removes it with its queue.
    pub(super) async fn delete<F: Follower + Bulk<EventState>>(self) -> Result<(), ApiError> {
        Ok(bulk::delete_one::<EventState, F>(&self.state, &self.caller, &self.id).await?)
    }
}
