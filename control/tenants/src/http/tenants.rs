//! HTTP: accounts and their domains.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::HeaderName,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use shared::short_url::ShortDomain;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{MAX_PAGE, number},
};

use crate::{
    domain::{
        page::{DEFAULT_PER_PAGE, MAX_PER_PAGE},
        short_domain::ShortDomainChange,
        tenant::{Account, AccountChange},
    },
    service::{Core, tenants},
};

const RESULT_COUNT: HeaderName = HeaderName::from_static("x-result-count");

/// An account: the tenant that everything else belongs to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// 1 to 256 characters.
    #[schema(example = "Acme")]
    name: String,
    /// What users of its applications may do: with `own`, read products, places and single Things, and make, see and
    /// change what is their own as far as the application lets them; with `open`, read what the project has and make
    /// Things, products, collections and redirections in it. Everybody who opens a page with the public key of an
    /// application can become its user.
    #[schema(value_type = String, example = "own")]
    user_rights: &'static str,
    /// How users of its applications register: with `mail`, the code that activates a user goes to its mailbox, and new
    /// passwords have at least 12 characters; with `caller`, whoever registers a user gets the code, so that its address
    /// proves nothing, and passwords have at least 8.
    #[schema(value_type = String, example = "mail")]
    user_registration: &'static str,
    /// Whether operators sign in by the provider of identities, if the server has one. With `false` sessions that it began
    /// end, and no others begin.
    provider_sign_in: bool,
    /// Whether operators who sign in by a password need a second factor. Who has none may only turn one on after the sign-in;
    /// sessions that a password alone began end. For a sign-in by the provider of identities that is up to the provider.
    second_factor_required: bool,
    /// Names of the `customFields` that a Thing may write with its own key, at most 100; none by default. Never
    /// `permittedCountries`, `expectedWatermark`, `expectedMarkings` and `factory`.
    thng_writable_custom_fields: Vec<String>,
    /// Whether redirections may lead to loopback, link-local and private addresses; absent is false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    private_targets: bool,
    /// The only hosts that redirections may lead to, such as `example.com` or `*.example.com`; absent is any.
    /// At most 100; an update replaces the list as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["example.com", "*.example.com"]))]
    target_hosts: Vec<String>,
    /// Days that scans by edges are kept, 1 to 3650; older ones are removed.
    #[schema(minimum = 1, maximum = 3650, example = 400)]
    scan_retention_days: u16,
    /// How much it keeps of the people behind scans and other actions: with `full` everything; with `truncated`, as new
    /// accounts have it, the network of an address (the first 24 bits of IPv4, 48 of IPv6), names and major versions of the
    /// user agent, and coordinates to 0.01°; with `none` no address, no user agent and no coordinates. It holds for what is
    /// recorded from now on.
    #[schema(value_type = String, example = "truncated")]
    personal_data: &'static str,
    /// Days after which the address, the user agent, the device and the exact point go out of scans and other actions, 1 to
    /// 3650; absent is never, as for new accounts, and `null` in an update takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3650, example = 90)]
    personal_data_days: Option<u16>,
    /// The caller's own members; replaced as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<Map<String, Value>>,
    /// When it was created, in milliseconds since 1970.
    #[schema(read_only)]
    created_at: i64,
    /// When it was last changed.
    #[schema(read_only)]
    updated_at: i64,
}

impl From<Account> for AccountDocument {
    fn from(account: Account) -> Self {
        Self {
            id: account.id.to_string(),
            name: account.name,
            user_rights: account.user_rights.as_str(),
            user_registration: account.user_registration.as_str(),
            provider_sign_in: account.provider_sign_in,
            second_factor_required: account.second_factor_required,
            thng_writable_custom_fields: account.thng_writable_custom_fields,
            private_targets: account.targets.private,
            target_hosts: account.targets.only,
            scan_retention_days: account.scan_retention_days,
            personal_data: account.personal_data.as_str(),
            personal_data_days: account.personal_data_days,
            custom_fields: account.custom_fields,
            created_at: account.created_at.0,
            updated_at: account.updated_at.0,
        }
    }
}

/// A domain of an account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainDocument {
    /// Host, with the port when it is not the scheme's default.
    #[schema(example = "tn.gg")]
    domain: String,
    /// Only for development: its codes lead to an address of this machine or of a local network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, read_only)]
    development: bool,
    /// Seconds for which browsers and shared caches may keep redirects of its links (`Cache-Control: public, max-age=…, must-revalidate`), 0 to
    /// 86400; absent: they must not (`no-store`). A redirect that is kept is not counted as a scan, and a change, a pause or a
    /// take-down of its link is seen that much later. The redirect of a link that ends is not kept beyond its `validUntil`.
    /// Answers of closed and unknown links, and redirects of accounts that have rules, are never kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 86_400, example = 60)]
    redirect_max_age: Option<u32>,
}

impl From<ShortDomain> for DomainDocument {
    fn from(domain: ShortDomain) -> Self {
        Self {
            domain: domain.host.to_string(),
            development: domain.is_development(),
            redirect_max_age: domain.redirect_max_age,
        }
    }
}

/// Lists the accounts of the key: one.
#[utoipa::path(get, path = "/accounts", tag = "Accounts", operation_id = "listAccounts",
    params(("perPage" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Rows of a page"),
        ("page" = Option<u32>, Query, deprecated, minimum = 1, maximum = 100_000, description = "Number of the page")),
    responses((status = 200, description = "The accounts", body = [AccountDocument],
        headers(("x-result-count" = i64, description = "Deprecated: how many there are")))),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_accounts(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    query: Query,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    number(&query, "perPage", MAX_PER_PAGE, DEFAULT_PER_PAGE, &mut faults);
    let page = number(&query, "page", MAX_PAGE, 1, &mut faults);
    ApiError::check_parameters(faults)?;
    let accounts = tenants::list_accounts(&core, &caller).await?;
    let count = accounts.len().to_string();
    // One account fits every page size: all of it is on the first page.
    let items: Vec<AccountDocument> = accounts.into_iter().filter(|_| page == 1).map(Into::into).collect();
    Ok(([(RESULT_COUNT, count)], Json(items)).into_response())
}

/// Reads an account.
#[utoipa::path(get, path = "/accounts/{id}", tag = "Accounts", operation_id = "readAccount",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "The account", body = AccountDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read_account(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<AccountDocument>, ApiError> {
    Ok(Json(tenants::read_account(&core, &caller, &id).await?.into()))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/accounts/{id}", tag = "Accounts", operation_id = "updateAccount",
    params(("id" = String, Path, description = "Id of the account")),
    request_body(content = AccountDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole account", body = AccountDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update_account(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<AccountDocument>, ApiError> {
    let change = AccountChange::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(tenants::update_account(&core, &caller, &id, change).await?.into()))
}

/// Lists the short domains of an account, its first one first.
#[utoipa::path(get, path = "/accounts/{id}/shortDomains", tag = "Accounts", operation_id = "listShortDomains",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Hosts", body = [String], example = json!(["tn.gg"]))),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_short_domains(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<Vec<String>>, ApiError> {
    let domains = tenants::list_short_domains(&core, &caller, &id).await?;
    Ok(Json(domains.into_iter().map(|domain| domain.host.to_string()).collect()))
}

/// Lists the domains of an account: those that it has short URLs on.
#[utoipa::path(get, path = "/accounts/{id}/domains", tag = "Accounts", operation_id = "listDomains",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Domains", body = [DomainDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_domains(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<Vec<DomainDocument>>, ApiError> {
    let domains = tenants::list_short_domains(&core, &caller, &id).await?;
    Ok(Json(domains.into_iter().map(DomainDocument::from).collect()))
}

/// Changes how long redirects of a domain may be kept; `null` lets nobody keep them.
#[utoipa::path(put, path = "/accounts/{id}/domains/{domain}", tag = "Accounts", operation_id = "updateDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account")),
    request_body(content = Object, description = "The members to change; the others stay"),
    responses((status = 200, description = "The domain", body = DomainDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update_domain(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((id, domain)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Json<DomainDocument>, ApiError> {
    let change = ShortDomainChange::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(
        tenants::update_short_domain(&core, &caller, (id.as_str(), domain.as_str()), change).await?.into(),
    ))
}
