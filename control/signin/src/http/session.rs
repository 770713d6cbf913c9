//! HTTP: signs in and out, and says who is signed in.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::domain::api_key::KeyId;
use serde::{Deserialize, Serialize};
use tenants::http::operators::OperatorDocument;
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody, rate_limit::Ledger};

use super::{
    extract::{SignedIn, Visitor},
    throttled::throttled,
};
use crate::{
    domain::{session::Session, sign_in_body::SignIn, token::CLEARED_COOKIE},
    service::{
        SignInState, sessions,
        sessions::Who,
        sign_in::{self, SignedIn as Begun},
    },
};

/// Who signs in.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct SignInDocument {
    /// The address of the operator.
    email: String,
    /// The password.
    password: String,
    /// Id of the account; needed only by who has the same address in several accounts.
    account: Option<String>,
    /// A code of the authenticator, if a second factor is on.
    code: Option<String>,
    /// A recovery code in its place.
    recovery_code: Option<String>,
}

/// An operator with a session that begins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BegunDocument {
    operator: OperatorDocument,
    session: SessionDatesDocument,
}

/// How long a session lasts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionDatesDocument {
    /// Id of the session.
    #[schema(example = "9F86D081884C7D659A2FEAA0")]
    id: String,
    /// When it began, in milliseconds since 1970.
    created_at: i64,
    /// When it ends unless it is used: 12 hours after its use, and 30 days after its beginning at the latest.
    expires_at: i64,
}

/// Who is signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhoDocument {
    operator: OperatorDocument,
    /// What its roles allow.
    #[schema(example = json!(["products:create,read"]))]
    permissions: Vec<String>,
    session: SessionDatesDocument,
    /// Whether a second factor is on.
    second_factor: bool,
    /// Whether the account requires one and the operator must turn it on: until then the session serves for nothing else.
    second_factor_required: bool,
    /// How many recovery codes are left.
    recovery_codes: i64,
}

/// What a sign-out answers.
#[derive(Serialize, ToSchema)]
pub(super) struct SignOutDocument {
    /// `ended`.
    #[schema(example = "ended")]
    session: &'static str,
}

impl From<&Session> for SessionDatesDocument {
    fn from(session: &Session) -> Self {
        Self {
            id: KeyId::of(&session.hash).to_string(),
            created_at: session.created_at.0,
            expires_at: session.expires_at.0,
        }
    }
}

impl From<Begun> for BegunDocument {
    fn from(begun: Begun) -> Self {
        Self { session: (&begun.session).into(), operator: begun.operator.into() }
    }
}

impl From<Who> for WhoDocument {
    fn from(who: Who) -> Self {
        Self {
            operator: who.operator.into(),
            permissions: who.permissions,
            session: (&who.session).into(),
            second_factor: who.has_second_factor,
            second_factor_required: who.must_enrol,
            recovery_codes: who.recovery_codes,
        }
    }
}

/// Signs an operator in, for the console: the answer sets the cookie of a session, which counts below `/console/api/` only.
#[utoipa::path(post, path = "/console/api/session", tag = "Console", operation_id = "signIn", security(()),
    request_body = SignInDocument,
    responses((status = 200, description = "The operator; `Set-Cookie` has the session", body = BegunDocument),
        (status = 401, description = "The address or the password is wrong (40103), or the second factor is missing or \
            wrong (40105)")))]
pub(super) async fn sign_in(
    State(state): State<SignInState>,
    Visitor(client): Visitor,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<([(HeaderName, String); 1], Json<BegunDocument>), ApiError> {
    let read = SignIn::parse(&body).map_err(ApiError::invalid)?;
    let begun = sign_in::sign_in(&state, read, client).await;
    let begun = begun.map_err(|error| throttled(error, &ledger))?;
    Ok(([(header::SET_COOKIE, begun.token.set_cookie())], Json(begun.into())))
}

/// Says who is signed in, for the console. Takes the cookie of a session.
#[utoipa::path(get, path = "/console/api/session", tag = "Console", operation_id = "readSession",
    security(("session" = [])),
    responses((status = 200, description = "The operator, what it may do, and the session", body = WhoDocument)))]
pub(super) async fn read(
    State(state): State<SignInState>,
    SignedIn { caller, hash }: SignedIn,
) -> Result<Json<WhoDocument>, ApiError> {
    Ok(Json(sessions::read(&state, &caller, &hash).await?.into()))
}

/// Signs out, for the console: the session of the cookie ends everywhere within a second. If it is over already the answer
/// is 401, and removes the cookie, too.
#[utoipa::path(delete, path = "/console/api/session", tag = "Console", operation_id = "signOut",
    security(("session" = [])),
    responses((status = 200, description = "The session has ended; `Set-Cookie` removes the cookie",
        body = SignOutDocument)))]
pub(super) async fn sign_out(
    State(state): State<SignInState>,
    signed_in: Result<SignedIn, ApiError>,
) -> Response {
    let ended = async {
        let SignedIn { caller, hash } = signed_in?;
        sessions::end_with(&state, &caller, &hash).await?;
        Ok::<_, ApiError>(Json(SignOutDocument { session: "ended" }))
    };
    let mut response = ended.await.into_response();
    // Not where the database failed: the session would go on without a cookie to end it.
    if response.status().is_success() || response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::SET_COOKIE, HeaderValue::from_static(CLEARED_COOKIE));
    }
    response
}
