//! Parameters of lists, as the OpenAPI document describes them.

use utoipa::IntoParams;

/// The parameters by which a list is paged; its attribute names them as `PageParams`.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields describe parameters and are read by nobody")]
pub struct PageParams {
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
pub struct ListParams {
    /// Up to 100 ids, separated by commas.
    ids: Option<String>,
    /// Conditions on fields: `=`, `~` (begins with), `<`, `>`, `<=`, `>=`; `&` joins, `|` gives alternatives, `!`
    /// negates, parentheses group, `\` takes the meaning from a sign. `tags=a|b` is `(tags=a|tags=b)`. Up to 64
    /// conditions in 4,096 bytes. A key or value with percent-escapes stands for what is written and for what it
    /// decodes to.
    ///
    /// Thngs: `createdAt`, `identifiers.*`, `customFields.*`, `name`, `product`, `collections`, `tags`. Products,
    /// places, collections, batches: `name`, `identifiers.*`, `tags`. Actions: `timestamp`, `type`, `thng`, `product`,
    /// `collection`, `user`, `tags`, `identifiers.*`, `customFields.*`, `context.city`, `context.countryCode`.
    /// Files: `name`, `tags`. Jobs and tasks: `status`, `type`; logs of jobs: `jobId`, `type`. Projects and applications: `name`.
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
pub struct NumberedParams {
    /// Number of the page; a `nextPageToken` beside it counts more. `x-result-count` tells how many rows there are.
    #[deprecated]
    #[param(minimum = 1, maximum = 100_000)]
    page: Option<u32>,
}
