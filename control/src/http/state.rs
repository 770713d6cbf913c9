//! The state of the router, and what subjects take of it.

use std::sync::Arc;

use axum::extract::FromRef;
use web::access::Access;

use crate::service::{
    ActionState, App, Catalog, Core, EventState, JobState, Redirects, passwords::Passwords,
};

/// The state of the router: subjects see their part of it only.
#[derive(Clone)]
pub(super) struct RouterState(pub(super) Arc<App>);

impl FromRef<RouterState> for Arc<App> {
    fn from_ref(state: &RouterState) -> Self {
        state.0.clone()
    }
}

impl FromRef<RouterState> for Access {
    fn from_ref(state: &RouterState) -> Self {
        Self { core: state.0.core.clone(), limiter: state.0.limiter.clone() }
    }
}

impl FromRef<RouterState> for Arc<Core> {
    fn from_ref(state: &RouterState) -> Self {
        state.0.core.clone()
    }
}

impl FromRef<RouterState> for Passwords {
    fn from_ref(state: &RouterState) -> Self {
        state.0.passwords.clone()
    }
}

impl FromRef<RouterState> for Catalog {
    fn from_ref(state: &RouterState) -> Self {
        state.0.catalog.clone()
    }
}

impl FromRef<RouterState> for Redirects {
    fn from_ref(state: &RouterState) -> Self {
        state.0.redirects.clone()
    }
}

impl FromRef<RouterState> for ActionState {
    fn from_ref(state: &RouterState) -> Self {
        state.0.actions.clone()
    }
}

impl FromRef<RouterState> for Arc<JobState> {
    fn from_ref(state: &RouterState) -> Self {
        state.0.jobs.clone()
    }
}

impl FromRef<RouterState> for Arc<EventState> {
    fn from_ref(state: &RouterState) -> Self {
        state.0.events.clone()
    }
}
