//! The route table of the API.

use std::sync::{Arc, LazyLock, OnceLock};

use axum::{Router, extract::DefaultBodyLimit, middleware::from_fn_with_state};
use digital_links::http::wait_for_edges;
use events::http::sockets::{self, Sockets};
use kernel::domain::limits::MAX_BODY_BYTES;
use serde_json::Value;
use signin::http::gate::OwnSegments;
use utoipa::openapi::OpenApi;
use utoipa_axum::routes;
use web::{
    known::name_unknown,
    once,
    routes::{Policies, Routes},
};

use super::{
    admission::{Admission, admit},
    known::OPERATIONS,
    middleware::{self, Outermost, finish},
    openapi, service_info,
    state::RouterState,
    status, time,
};
use crate::state::ApiState;

/// The table: the routes of each subject, and those of no subject.
fn table() -> Routes<RouterState> {
    Routes::with_openapi(openapi::base())
        .merge(tenants::http::routes())
        .merge(applications::http::routes())
        .merge(signin::http::routes())
        .merge(oidc::http::routes())
        .merge(catalog::http::routes())
        .merge(redirects::http::routes())
        .merge(actions::http::routes())
        .merge(commissioning::http::routes())
        .merge(assessment::http::routes())
        .merge(jobs::http::routes())
        .merge(printing::http::routes())
        .merge(digital_links::http::routes())
        .merge(domains::http::routes())
        .merge(link_changes::http::routes())
        .merge(events::http::routes())
        .merge(statistics::http::routes())
        .merge(privacy::http::routes())
        .merge(hosting::http::routes())
        .routes(routes!(time::read))
        .routes(routes!(status::read))
}

/// The API as a service: the table with everything that all requests share around it.
pub fn router(app: Arc<ApiState>) -> Router {
    let (routes, document, policies) = table().split();
    let described = DESCRIBED.get_or_init(|| Described::new(document, policies));
    let state = RouterState(app.clone());
    let inner = routes
        .merge(service_info::routes())
        .fallback(middleware::no_such_path)
        // Inside the next layer, so that a stored response keeps its `X-Ignored`.
        .layer(from_fn_with_state(&*OPERATIONS, name_unknown))
        .layer(from_fn_with_state(app.core.clone(), once::once))
        .layer(from_fn_with_state(app.redirects.clone(), wait_for_edges))
        .layer(from_fn_with_state(Sockets(app.broker.clone()), sockets::open))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state);
    behind_layers(inner, app, &described.policies, Some(&described.own))
}

/// Routes behind the layers that all listeners have. `own`: what the console has below its prefix, where there is one.
pub fn behind_layers(
    routes: Router,
    app: Arc<ApiState>,
    policies: &'static Policies,
    own: Option<&'static OwnSegments>,
) -> Router {
    let admission = Admission { app: app.clone(), policies };
    let routes = routes.layer(from_fn_with_state(admission, admit));
    // The prefix is cut before routing: the outer router has no routes, only the layer.
    Router::new().fallback_service(routes).layer(from_fn_with_state(Outermost { app, own }, finish))
}

/// The OpenAPI document of the API, as it is served: it depends on the code alone, and is made once.
#[must_use]
pub fn document() -> Arc<Value> {
    static RENDERED: LazyLock<Arc<Value>> = LazyLock::new(|| {
        let described = described();
        Arc::new(openapi::render(&described.document, &described.policies))
    });
    RENDERED.clone()
}

/// The policy of every operation of the table.
#[must_use]
pub fn policies() -> &'static Policies {
    &described().policies
}

/// Every operation, without what only JSON can say.
#[cfg(test)]
pub(super) fn operations() -> &'static OpenApi {
    &described().document
}

/// What the table says beside the handlers; it depends on the code alone.
struct Described {
    document: OpenApi,
    policies: Policies,
    own: OwnSegments,
}

impl Described {
    fn new(document: OpenApi, policies: Policies) -> Self {
        let own = OwnSegments::of(policies.iter().map(|(_, path, _)| path));
        Self { document: openapi::completed(document, &policies), policies, own }
    }
}

fn described() -> &'static Described {
    DESCRIBED.get_or_init(|| {
        let (_, document, policies) = table().split();
        Described::new(document, policies)
    })
}

static DESCRIBED: OnceLock<Described> = OnceLock::new();

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use axum::http::Method;
    use web::routes::{Idempotency, Policy};

    use super::*;

    /// The operations whose row has something.
    fn with(has: impl Fn(&Policy) -> bool) -> BTreeSet<String> {
        let rows = policies().iter().filter(|(.., policy)| has(policy));
        rows.map(|(method, path, _)| format!("{method} {path}")).collect()
    }

    #[test]
    fn every_operation_of_the_document_is_a_row() {
        let described = operations().paths.paths.iter().flat_map(|(path, item)| {
            openapi::operations(item).into_iter().map(move |(method, _)| format!("{method} {path}"))
        });
        assert_eq!(with(|_| true), described.collect());
        assert_eq!(policies().iter().count(), with(|_| true).len(), "an operation has two policies");
    }

    #[test]
    fn columns_stand_where_they_mean_something() {
        for (method, path, policy) in policies().iter() {
            assert!(policy.idempotency == Idempotency::Ignored || *method == Method::POST, "{method} {path}");
            assert!(policy.page_from.is_empty() || *method == Method::GET, "{method} {path}");
            let is_gated = path.starts_with(signin::http::gate::PREFIX);
            assert!(is_gated || policy.page_from.is_empty() && !policy.enrols, "{method} {path}");
        }
        let long = with(|policy| policy.time_limit > Duration::from_secs(30));
        assert_eq!(long, BTreeSet::from(["PUT /files/{id}/content".to_owned()]));
        // What an operator does who must turn a second factor on: that, sign in and out, and end sessions.
        let enrolling = with(|policy| policy.enrols);
        let expected = [
            "POST /console/api/session",
            "GET /console/api/session",
            "DELETE /console/api/session",
            "POST /console/api/session/link",
            "GET /console/api/sessions",
            "DELETE /console/api/sessions/{id}",
            "POST /console/api/totp",
            "PUT /console/api/totp",
            "POST /console/api/totp/disable",
        ];
        assert_eq!(enrolling, expected.map(str::to_owned).into());
    }

    #[test]
    fn a_row_describes_a_body_where_an_operation_takes_one() {
        let mut count = 0;
        for (path, item) in &operations().paths.paths {
            let find = |method: &str| policies().find(&method.parse().unwrap(), path);
            let all = openapi::operations(item);
            let taking: Vec<Policy> = all
                .iter()
                .filter(|(_, operation)| operation.request_body.is_some())
                .map(|&(method, _)| find(method))
                .collect();
            count += taking.len();
            assert!(
                taking.iter().all(|policy| policy.body.is_some()),
                "{path}: a body without a description"
            );
            for (method, _) in all {
                let policy = find(method);
                assert!(policy.body.is_none() || taking.contains(&policy), "{method} {path}: no body");
            }
        }
        assert!(count > 100, "only {count} bodies");
    }
}
