//! HTTP: file records. Their content is in `file_content`.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use shared::time::UnixMillis;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use crate::{
    domain::{
        access::Actor,
        body::Purpose,
        file::{CONTENT_URL_MS, File, FileChange, Purport, UPLOAD_URL_MS, content_path, sign},
        listing::FILES,
    },
    service::{Catalog, files},
};

/// A file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "serials.csv")]
    name: String,
    /// Media type of the content; without one, that of the upload.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(example = "text/csv")]
    kind: Option<String>,
    /// Whether reading the content takes a key or a signed URL.
    private_access: bool,
    /// Bytes of the content, once it was uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    size: Option<u64>,
    /// Where to `PUT` the content, without a key, within an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    upload_url: Option<String>,
    /// Where to `GET` the content; that of a private file opens it without a key for an hour.
    #[schema(read_only)]
    content_url: String,
}

impl FileDocument {
    fn new(catalog: &Catalog, actor: &Actor, info: &RequestInfo, file: File, with_scopes: bool) -> Self {
        let now = catalog.clock.now();
        let is_private = file.is_private();
        let url = |purport, valid_ms: i64| {
            let expires = UnixMillis(now.0.saturating_add(valid_ms));
            let signature = sign(&catalog.secrets.file_url, file.id, purport, expires);
            format!("{}{}?expires={}&signature={signature}", info.base, content_path(file.id), expires.0)
        };
        let content_url = if is_private {
            url(Purport::Download, CONTENT_URL_MS)
        } else {
            format!("{}{}", info.base, content_path(file.id))
        };
        Self {
            id: file.id.to_string(),
            upload_url: files::may_upload(actor).then(|| url(Purport::Upload, UPLOAD_URL_MS)),
            content_url,
            common: CommonDocument::new(file.stamp, file.details.common, with_scopes),
            name: file.name,
            kind: file.details.kind,
            private_access: is_private,
            size: file.content.map(|content| content.size_bytes),
        }
    }
}

/// Lists files, newest first.
#[utoipa::path(get, path = "/files", tag = "Files", operation_id = "listFiles",
    params(PageParams, NumberedParams, ListParams),
    responses((status = 200, description = "One page", body = [FileDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info.clone(), &query, &FILES)?;
    let page = files::list(&catalog, &caller, &listing.request).await?;
    let document = |file| FileDocument::new(&catalog, &caller, &info, file, listing.with_scopes);
    Ok(listing.answer(&catalog, page, document))
}

/// Makes a file; its content is then put to `uploadUrl`.
#[utoipa::path(post, path = "/files", tag = "Files", operation_id = "createFile",
    params(("project" = Option<String>, Query, description = "Id of a project that it shall belong to")),
    request_body = FileDocument,
    responses((status = 201, description = "The file", body = FileDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = FileChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let file = files::create(&catalog, &caller, change, query.find("project")).await?;
    let id = file.id;
    Ok(created(&info, id.as_str(), FileDocument::new(&catalog, &caller, &info, file, false)))
}

/// Reads a file's record.
#[utoipa::path(get, path = "/files/{id}", tag = "Files", operation_id = "readFile",
    params(("id" = String, Path, description = "Id"),
        ("withScopes" = Option<bool>, Query, description = "Show `scopes`")),
    responses((status = 200, description = "The file", body = FileDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Json<FileDocument>, ApiError> {
    let mut faults = Vec::new();
    let with_scopes = flag(&query, "withScopes", &mut faults);
    ApiError::check_parameters(faults)?;
    let file = files::read(&catalog, &caller, &id).await?;
    Ok(Json(FileDocument::new(&catalog, &caller, &info, file, with_scopes)))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/files/{id}", tag = "Files", operation_id = "updateFile",
    params(("id" = String, Path, description = "Id")),
    request_body(content = FileDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole file", body = FileDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Json<FileDocument>, ApiError> {
    let change = FileChange::parse(&body, Purpose::Update).map_err(ApiError::invalid)?;
    let file = files::update(&catalog, &caller, &id, change).await?;
    Ok(Json(FileDocument::new(&catalog, &caller, &info, file, false)))
}

/// Removes a file and its content.
#[utoipa::path(delete, path = "/files/{id}", tag = "Files", operation_id = "deleteFile",
    params(("id" = String, Path, description = "Id")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(files::delete(&catalog, &caller, &id).await?)
}
