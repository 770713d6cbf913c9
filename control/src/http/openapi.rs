//! The OpenAPI document: what the macros cannot know, and what every operation shares.

use serde::Serialize;
use shared::problem::Code;
use utoipa::{
    IntoParams, OpenApi, ToSchema,
    openapi::{
        ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder,
        path::{HttpMethod, Operation, Parameter, ParameterIn, PathItem},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

/// The parameters of every list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields describe parameters and are read by nobody")]
pub(super) struct PageParams {
    /// Rows of a page.
    #[param(rename = "perPage", minimum = 1, maximum = 100, default = 30)]
    per_page: Option<u32>,
    /// `DESCENDING` (newest first, the default) or `ASCENDING`.
    #[param(rename = "sortOrder", example = "DESCENDING")]
    sort_order: Option<String>,
    /// Comes with the `Link` to the next page and is used as it is.
    #[param(rename = "nextPageToken")]
    next_page_token: Option<String>,
}

/// The parameters by which lists are narrowed.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields describe parameters and are read by nobody")]
pub(super) struct ListParams {
    /// Up to 100 ids, separated by commas.
    ids: Option<String>,
    /// Conditions on fields: `=`, `~` (begins with), `<`, `>`, `<=`, `>=`; `&` joins, `|` gives alternatives, `!`
    /// negates, parentheses group, `\` takes the meaning from a sign. Up to 64 conditions in 4,096 bytes.
    ///
    /// Thngs: `createdAt`, `identifiers.*`, `customFields.*`, `name`, `product`, `collections`, `tags`. Products,
    /// places, collections: `name`, `identifiers.*`, `tags`. Actions: `timestamp`, `type`, `thng`, `product`,
    /// `collection`, `user`, `tags`, `identifiers.*`, `customFields.*`, `context.city`, `context.countryCode`.
    /// Files: `name`, `tags`. Projects and applications: `name`.
    ///
    /// Equality has an index on Postgres, as has the order of `createdAt` and `timestamp`. `~`, negation and the
    /// order of `customFields.*` look at one row after the other, on SQLite also equality of `tags`,
    /// `customFields.*` and the `identifiers.*` of actions. A list that takes longer than 5 seconds answers 503.
    #[param(example = "name~Red&tags=shoe")]
    filter: Option<String>,
    /// Only what is scoped to this project.
    #[param(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    project: Option<String>,
    /// Show `scopes`.
    #[param(rename = "withScopes")]
    with_scopes: Option<bool>,
}

/// The deprecated parameter of the lists that can be asked for by number.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields describe parameters and are read by nobody")]
pub(super) struct NumberedParams {
    /// Number of the page; a `nextPageToken` beside it counts more. `x-result-count` tells how many rows there are.
    #[deprecated]
    #[param(minimum = 1, maximum = 100_000)]
    page: Option<u32>,
}

/// The body of every error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
struct ProblemSchema {
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// Every fault found, each naming its member or parameter.
    #[schema(example = json!(["The thng UKXAGyEf8SQ5eTDmVgGpHqAa was not found."]))]
    errors: Vec<String>,
    /// A stable number; the docs list them.
    #[schema(example = 40401)]
    code: u32,
    /// Where the code is explained.
    #[schema(example = "https://api.example.com/docs#error-40401")]
    more_info: String,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Waymark", description = "Products, Thngs, short URLs and what happens to them. \
        Every path answers with and without the prefix `/v2`."),
    servers((url = "/"), (url = "/v2")),
    components(schemas(ProblemSchema))
)]
struct Base;

/// The document that the routes are added to.
pub(super) fn base() -> Document {
    Base::openapi()
}

/// Adds to every operation what all have in common: keys and errors.
pub(super) fn complete(document: &mut Document) {
    let components = document.components.get_or_insert_default();
    let header =
        ApiKeyValue::with_description("Authorization", "The API key; `Token KEY` and `Bearer KEY` too.");
    components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(header)));
    let query = ApiKeyValue::with_description("access_token", "The API key, where no header can be sent.");
    components.add_security_scheme("accessToken", SecurityScheme::ApiKey(ApiKey::Query(query)));
    document.security = Some(vec![
        SecurityRequirement::new("key", Vec::<String>::new()),
        SecurityRequirement::new("accessToken", Vec::<String>::new()),
    ]);
    for item in document.paths.paths.values_mut() {
        for (method, operation) in operations_mut(item) {
            add_errors(&method, operation);
        }
    }
}

/// The operations of a path, in a fixed order.
pub(super) fn operations(item: &PathItem) -> Vec<(&'static str, &Operation)> {
    let all = [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put), ("DELETE", &item.delete)];
    all.into_iter().filter_map(|(name, operation)| operation.as_ref().map(|o| (name, o))).collect()
}

/// The parameters of an operation; ours are all written out where they are used.
pub(super) fn parameters(operation: &Operation) -> Vec<&Parameter> {
    let all = operation.parameters.as_deref().unwrap_or_default();
    all.iter()
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .collect()
}

fn operations_mut(item: &mut PathItem) -> Vec<(HttpMethod, &mut Operation)> {
    let all = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Delete, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| operation.as_mut().map(|o| (method, o))).collect()
}

fn add_errors(method: &HttpMethod, operation: &mut Operation) {
    let always = [
        Code::KeyUnknown,
        Code::Forbidden,
        Code::NotFound,
        Code::TooManyRequests,
        Code::Internal,
        Code::Unavailable,
    ];
    let body = [Code::Invalid, Code::TooLarge, Code::UnsupportedMediaType];
    let has_body = matches!(method, HttpMethod::Post | HttpMethod::Put);
    let has_query = parameters(operation).iter().any(|one| matches!(one.parameter_in, ParameterIn::Query));
    let mut codes = always.to_vec();
    if has_body {
        codes.extend(body);
    } else if has_query {
        codes.push(Code::InvalidParameter);
    }
    for code in codes {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description(code.text()).content("application/json", content);
        let responses = &mut operation.responses.responses;
        responses.entry(code.status().to_string()).or_insert(RefOr::T(response.build()));
    }
}
