//! The operations on one resource of a kind, by its id or an identifier.

/// `read`, `update` and `delete` of a kind, whose service has functions of these names. `$name` is the kind in a sentence and
/// `$kind` in the ids of operations; `$removes` says what `delete` does.
macro_rules! one {
    (
        $service:ident,
        $change:ident,
        $document:ident,
        $path:literal,
        $tag:literal,
        $name:literal,
        $kind:literal,
        $removes:literal
    ) => {
        #[doc = concat!("Reads a ", $name, ".")]
        #[utoipa::path(get, path = $path, tag = $tag, operation_id = concat!("read", $kind),
            summary = concat!("Reads a ", $name, "."),
            params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
                ("withScopes" = Option<bool>, Query, description = "Show `scopes`")),
            responses((status = 200, description = concat!("The ", $name), body = $document)),
            extensions(("x-maturity" = json!("General Availability"))))]
        pub(super) async fn read(
            State(catalog): State<Catalog>,
            Authenticated(caller): Authenticated,
            Path(reference): Path<String>,
            query: Query,
        ) -> Result<Json<$document>, ApiError> {
            let mut faults = Vec::new();
            let with_scopes = flag(&query, "withScopes", &mut faults);
            ApiError::check_parameters(faults)?;
            let found = $service::read(&catalog, &caller, &reference).await?;
            Ok(Json($document::new(found, with_scopes)))
        }

        /// Changes the members given; the others stay.
        #[utoipa::path(put, path = $path, tag = $tag, operation_id = concat!("update", $kind),
            params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
            request_body(content = $document, description = "The members to change; the others may be left out"),
            responses((status = 200, description = concat!("The whole ", $name), body = $document)),
            extensions(("x-maturity" = json!("General Availability"))))]
        pub(super) async fn update(
            State(catalog): State<Catalog>,
            Authenticated(caller): Authenticated,
            Path(reference): Path<String>,
            JsonBody(body): JsonBody,
        ) -> Result<Json<$document>, ApiError> {
            let change = $change::parse(&body, Purpose::Update)
                .map_err(ApiError::invalid)?;
            let changed = $service::update(&catalog, &caller, &reference, change).await?;
            Ok(Json($document::new(changed, false)))
        }

        #[doc = $removes]
        #[utoipa::path(delete, path = $path, tag = $tag, operation_id = concat!("delete", $kind), summary = $removes,
            params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
            responses((status = 200, description = "Removed; the body is empty")),
            extensions(("x-maturity" = json!("General Availability"))))]
        pub(super) async fn delete(
            State(catalog): State<Catalog>,
            Authenticated(caller): Authenticated,
            Path(reference): Path<String>,
        ) -> Result<(), ApiError> {
            Ok($service::delete(&catalog, &caller, &reference).await?)
        }
    };
}
pub(super) use one;
