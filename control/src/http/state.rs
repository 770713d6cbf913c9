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

impl FromRef<RouterState> for HasProvider {
    fn from_ref(RouterState(app): &RouterState) -> Self {
        Self(app.oidc.provider.is_some())
    }
}

/// Parts that are cloned, each with where the state has it.
macro_rules! parts {
    ($($part:ty: $($field:ident).+;)+) => {$(
        impl FromRef<RouterState> for $part {
            fn from_ref(RouterState(app): &RouterState) -> Self {
                app.$($field).+.clone()
            }
        }
    )+};
}

parts! {
    Arc<Core>: core;
    Arc<Outbox>: users.outbox;
    Users: users;
    SignInState: sign_in;
    OidcState: oidc;
    Catalog: catalog;
    Redirects: redirects;
    ActionState: actions;
    AssessmentState: assessment;
    Arc<PrivacyState>: privacy;
    Arc<JobState>: jobs;
    Arc<PrintState>: printing;
    Arc<DomainState>: domains;
    Arc<LinkChecks>: link_checks;
    Arc<LinkChangeState>: link_changes;
    Arc<EventState>: events;
    StatisticsState: statistics;
}
