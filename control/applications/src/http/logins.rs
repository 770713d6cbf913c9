//! HTTP: registration, login and logout of application users.
//!
//! Spec gap: the platform API does not show the responses. The vendor's Java client insists on 201 for each of its
//! POSTs, so all but `/users/login`, which it does not know, answer 201; other clients accept any 2xx.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, http::StatusCode, response::Response};
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    extract::{JsonBody, OptionalJsonBody, Path, Query, no_body},
    listing::flag,
    rate_limit::Ledger,
    request_info::RequestInfo,
    wire::created_at,
};

use tenants::http::throttled;

use super::users::UserDocument;
use crate::{
    domain::{
        app_user::{Credentials, NewUser, UserStatus},
        user_codes::Activation,
    },
    service::{
        Core, activation, logins, registration,
        users::{LoggedIn, Users},
    },
};

/// A user who registers; other members as those of a user.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct RegistrationDocument {
    /// Address to log in by; one user of a project may have it, whatever its case.
    #[schema(example = "ada@example.com")]
    email: String,
    /// 12 to 256 characters, and none that many people have; at least 8 where the account's `userRegistration` is `caller`.
    #[schema(example = "a long sentence is best")]
    password: String,
    /// At most 256 characters.
    #[schema(example = "Ada")]
    first_name: Option<String>,
    /// At most 256 characters.
    last_name: Option<String>,
}

/// What a login needs.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct CredentialsDocument {
    /// The address of the registration.
    #[schema(example = "ada@example.com")]
    email: String,
    /// The password.
    #[schema(example = "correct horse")]
    password: String,
}

/// What activates a user.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct ActivationDocument {
    /// The code from the mail, or from the registration where the account's `userRegistration` is `caller`.
    activation_code: String,
    /// A password in place of that of the registration: 12 to 256 characters, and none that many people have. Ask for it:
    /// somebody else may have registered the address.
    #[schema(example = "a long sentence is best")]
    password: Option<String>,
}

/// A user who was made or activated.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserAccessDocument {
    /// Id of the user.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    evrythng_user: String,
    /// `inactive`, `active` or `anonymous`.
    #[schema(example = "active")]
    status: &'static str,
    /// The address of a registration.
    email: Option<String>,
    /// The user's key, unless it is to be activated first.
    evrythng_api_key: Option<String>,
    /// The code that activates a user who registered, where the account's `userRegistration` is `caller`; else it goes to
    /// the mailbox, which is all that tells whether the address was known.
    activation_code: Option<String>,
}

impl From<LoggedIn> for UserAccessDocument {
    fn from(LoggedIn { user, key }: LoggedIn) -> Self {
        Self {
            evrythng_user: user.id.to_string(),
            status: user.status.as_str(),
            email: user.details.email,
            evrythng_api_key: Some(key),
            activation_code: None,
        }
    }
}

/// A key as an object.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct KeyDocument {
    api_key: String,
}

/// A user who is logged in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginDocument {
    #[serde(flatten)]
    user: UserDocument,
    /// Id of the user.
    evrythng_user: String,
    /// The key of this login.
    evrythng_api_key: String,
    access: KeyDocument,
}

impl From<LoggedIn> for LoginDocument {
    fn from(LoggedIn { user, key }: LoggedIn) -> Self {
        Self {
            evrythng_user: user.id.to_string(),
            evrythng_api_key: key.clone(),
            access: KeyDocument { api_key: key },
            user: user.into(),
        }
    }
}

/// What a logout answers.
#[derive(Serialize, ToSchema)]
pub(super) struct LogoutDocument {
    /// `ok`.
    #[schema(example = "ok")]
    logout: &'static str,
}

/// Registers a user, or makes an anonymous one.
#[utoipa::path(post, path = "/auth/evrythng/users", tag = "Users", operation_id = "createUser",
    params(("anonymous" = Option<bool>, Query, description = "Make a user without a name; the body may be left out")),
    request_body = RegistrationDocument,
    responses((status = 201, description = "The user: with its key if anonymous. Else the activation code is on its way \
        to the mailbox, or is here where the account's `userRegistration` is `caller`", body = UserAccessDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    Extension(ledger): Extension<Ledger>,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    let is_anonymous = flag(&query, "anonymous", &mut faults);
    ApiError::check_parameters(faults)?;
    let document = if is_anonymous {
        registration::create_anonymous(&users.core, &caller).await?.into()
    } else {
        let kind = registration::kind(&users, &caller).await?;
        let body = body.ok_or_else(no_body)?;
        let new = NewUser::parse(&body, kind).map_err(ApiError::invalid)?;
        let made = registration::register(&users, &caller, new, kind, info.limited_as).await;
        let made = made.map_err(|error| throttled(error, &ledger))?;
        UserAccessDocument {
            evrythng_user: made.id.to_string(),
            status: UserStatus::Inactive.as_str(),
            email: Some(made.email),
            evrythng_api_key: None,
            activation_code: made.activation_code,
        }
    };
    Ok(created_at(&info, &format!("/users/{}", document.evrythng_user), document))
}

/// Activates a user by the code of its registration, and logs it in.
#[utoipa::path(post, path = "/auth/evrythng/users/{id}/validate", tag = "Users", operation_id = "validateUser",
    params(("id" = String, Path, description = "Id of the user")),
    request_body = ActivationDocument,
    responses((status = 201, description = "The user and its key", body = UserAccessDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn validate(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let activation = Activation::parse(&body).map_err(ApiError::invalid)?;
    let activated = activation::activate(&users, &caller, &id, activation).await?;
    let document = UserAccessDocument::from(activated);
    Ok(created_at(&info, &format!("/users/{}", document.evrythng_user), document))
}

/// Logs a user in.
#[utoipa::path(post, path = "/users/login", tag = "Users", operation_id = "loginUser",
    request_body = CredentialsDocument,
    responses((status = 200, description = "The user and the key of this login", body = LoginDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn login(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<LoginDocument>, ApiError> {
    let credentials = Credentials::parse(&body).map_err(ApiError::invalid)?;
    let login = logins::login(&users, &caller, credentials).await;
    Ok(Json(login.map_err(|error| throttled(error, &ledger))?.into()))
}

/// Logs a user in; an older name of `/users/login`.
#[utoipa::path(post, path = "/auth/evrythng", tag = "Users", operation_id = "loginUserByOldName",
    request_body = CredentialsDocument,
    responses((status = 201, description = "The user and the key of this login", body = LoginDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn login_by_old_name(
    users: State<Users>,
    caller: Authenticated,
    info: RequestInfo,
    ledger: Extension<Ledger>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let Json(document) = login(users, caller, ledger, body).await?;
    Ok(created_at(&info, &format!("/users/{}", document.evrythng_user), document))
}

/// Ends the key of a user by which the request comes.
#[utoipa::path(post, path = "/auth/all/logout", tag = "Users", operation_id = "logoutUser",
    responses((status = 201, description = "The key is no longer valid", body = LogoutDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn logout(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
) -> Result<(StatusCode, Json<LogoutDocument>), ApiError> {
    logins::logout(&core, &caller, &key).await?;
    Ok((StatusCode::CREATED, Json(LogoutDocument { logout: "ok" })))
}
