//! HTTP: certificates of short domains.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError, extract::Path};

use super::documents::DomainDocument;
use crate::service::{
    DomainState,
    certificates::{self, OwnCertificate},
};

/// The certificate of a short domain.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainCertificateDocument {
    /// `pending`: there is none yet. `valid`: edges have it. `failed`: there is none, or it has ended, and the last try failed.
    /// `off`: the account wants none.
    #[schema(value_type = String, example = "valid")]
    state: &'static str,
    /// Who issued it.
    #[schema(example = "Example Certificates")]
    issuer: Option<String>,
    /// When it ends, in milliseconds since 1970. It is renewed at two thirds of its life.
    not_after: Option<i64>,
    /// Why the last try failed; also while an earlier certificate is `valid`.
    error: Option<String>,
    /// When it is ordered next, in milliseconds since 1970.
    next_try: Option<i64>,
}

impl From<OwnCertificate> for DomainCertificateDocument {
    fn from(OwnCertificate { certificate, state }: OwnCertificate) -> Self {
        let not_after = certificate.issued.as_ref().map(|issued| issued.not_after.0);
        Self {
            state: state.as_str(),
            issuer: certificate.issued.map(|issued| issued.issuer),
            not_after,
            error: certificate.error,
            next_try: (!certificate.is_off).then_some(certificate.next_try.0).filter(|at| *at > 0),
        }
    }
}

/// Orders the certificate of a short domain now, in place of at `certificate.nextTry`.
///
/// The answer comes before the try, which takes seconds: `certificate` of the domain says what became of it. A try for a host can be
/// asked for every 10 minutes, and for 20 hosts of an account within an hour.
#[utoipa::path(post, path = "/accounts/{id}/shortDomains/{domain}/certificate", tag = "Accounts",
    operation_id = "orderShortDomainCertificate",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A host that the account has proven")),
    responses((status = 202, description = "The domain before the try", body = DomainDocument),
        (status = 409, description = "The domain is not proven, was given by whoever runs this service, or wants no certificate, or \
            this service makes none")))]
pub(super) async fn try_now(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, host)): Path<(String, String)>,
) -> Result<(StatusCode, Json<DomainDocument>), ApiError> {
    let own = certificates::try_now(&state, &caller, &id, &host).await?;
    Ok((StatusCode::ACCEPTED, Json(own.into())))
}
