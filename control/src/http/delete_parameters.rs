//! Query parameters of a DELETE: one that the operation does not know is refused.
//!
//! Elsewhere unknown parameters are ignored; here one that is not honoured would remove what was to be kept.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use shared::problem::Code;
use utoipa::openapi::{OpenApi, path::ParameterIn};

use super::{access::TOKEN_PARAMETER, api_error::ApiError, extract::pairs, openapi};
use crate::domain::limits::shorten;

/// The parameters of each DELETE, by its path as the table of routes writes it.
#[derive(Clone)]
pub(super) struct DeleteParameters(Arc<HashMap<String, HashSet<String>>>);

impl DeleteParameters {
    /// Those that the document lists.
    pub(super) fn new(document: &OpenApi) -> Self {
        let mut known = HashMap::new();
        for (path, item) in &document.paths.paths {
            let Some(delete) = &item.delete else { continue };
            let names = openapi::parameters(delete)
                .into_iter()
                .filter(|parameter| matches!(parameter.parameter_in, ParameterIn::Query))
                .map(|parameter| parameter.name.clone());
            known.insert(path.clone(), names.collect());
        }
        Self(Arc::new(known))
    }
}

/// The layer around every route.
pub(super) async fn check(State(known): State<DeleteParameters>, request: Request, next: Next) -> Response {
    if *request.method() != Method::DELETE {
        return next.run(request).await;
    }
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if let Some(known) = path.and_then(|path| known.0.get(path)) {
        let query = request.uri().query().unwrap_or_default();
        let faults: Vec<String> = pairs(query)
            .filter(|(name, _)| name != TOKEN_PARAMETER && !known.contains(name))
            .map(|(name, _)| format!("{:?} is not a parameter of this DELETE.", shorten(&name)))
            .collect();
        if !faults.is_empty() {
            return ApiError::faults(Code::InvalidParameter, faults).into_response();
        }
    }
    next.run(request).await
}
