//! The state of the router, and what subjects take of it.

use std::sync::Arc;

use actions::service::ActionState;
use applications::service::users::Users;
use assessment::service::AssessmentState;
use axum::extract::FromRef;
use catalog::service::Catalog;
use digital_links::service::check::LinkChecks;
use domains::service::DomainState;
use events::service::EventState;
use jobs::service::JobState;
use kernel::service::Core;
use link_changes::service::LinkChangeState;
use mail::Outbox;
use oidc::service::OidcState;
use printing::service::PrintState;
use privacy::service::PrivacyState;
use redirects::service::Redirects;
use signin::service::SignInState;
use statistics::service::StatisticsState;
use web::access::Access;
use webconsole::HasProvider;

use crate::state::ApiState;

/// The state of the router: a subject sees its part of it only.
#[derive(Clone)]
pub(super) struct RouterState(pub(super) Arc<ApiState>);

impl FromRef<RouterState> for Access {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        Self { core: app.core.clone(), limiter: app.limiter.clone() }
    }
}

impl FromRef<RouterState> for Arc<Core> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.core.clone()
    }
}

impl FromRef<RouterState> for Arc<Outbox> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.users.outbox.clone()
    }
}

impl FromRef<RouterState> for Users {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.users.clone()
    }
}

impl FromRef<RouterState> for SignInState {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.sign_in.clone()
    }
}

impl FromRef<RouterState> for OidcState {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.oidc.clone()
    }
}

impl FromRef<RouterState> for HasProvider {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        Self(app.oidc.provider.is_some())
    }
}

impl FromRef<RouterState> for Catalog {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.catalog.clone()
    }
}

impl FromRef<RouterState> for Redirects {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.redirects.clone()
    }
}

impl FromRef<RouterState> for ActionState {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.actions.clone()
    }
}

impl FromRef<RouterState> for AssessmentState {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.assessment.clone()
    }
}

impl FromRef<RouterState> for Arc<PrivacyState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.privacy.clone()
    }
}

impl FromRef<RouterState> for Arc<JobState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.jobs.clone()
    }
}

impl FromRef<RouterState> for Arc<PrintState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.printing.clone()
    }
}

impl FromRef<RouterState> for Arc<DomainState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.domains.clone()
    }
}

impl FromRef<RouterState> for Arc<LinkChecks> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.link_checks.clone()
    }
}

impl FromRef<RouterState> for Arc<LinkChangeState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.link_changes.clone()
    }
}

impl FromRef<RouterState> for Arc<EventState> {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.events.clone()
    }
}

impl FromRef<RouterState> for StatisticsState {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        app.statistics.clone()
    }
}
