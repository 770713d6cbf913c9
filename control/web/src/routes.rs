//! The route table: a row is a path with operations, and the policy that holds for them.
//!
//! What the layers around a handler do with a request is a column of its row. The router decides which row a request
//! belongs to; nothing compares paths, so another spelling of a path is either the same row or none.

use std::{collections::BTreeMap, time::Duration};

use axum::{Router, http::Method, routing::MethodRouter};
use serde_json::Value;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{PathItem, Paths},
    schema::Schema,
};
use utoipa_axum::router::OpenApiRouter;

/// Longest handling of a request: above the store's own limits, below what proxies wait for.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// What the macro `routes!` gives: schemas, documentation and handlers of one path.
type Documented<S> = (Vec<(String, RefOr<Schema>)>, Paths, MethodRouter<S>);

/// Which rate limit counts a request before anything is done for it, beside those of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimit {
    /// None.
    #[default]
    OfKey,
    /// By it passwords and codes could be guessed, or users be made: the limit of logins, for each address.
    Login,
    /// Anybody writes to an account by it, without a key: as many as logins, for each address, counted apart.
    Report,
}

/// What an operation does with an `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Idempotency {
    /// Nothing: the header has no effect.
    #[default]
    Ignored,
    /// The layer [`once`](crate::once) keeps the answer.
    Kept,
    /// The operation keeps it in its own transaction.
    InTransaction,
}

/// Query parameters, each with its meaning.
pub type Queries = &'static [(&'static str, &'static str)];

/// Those of rows with the column `waits`; `timeout` comes along.
const WAITS: Queries = &[(
    "wait",
    "`edges`: answer when every edge has what follows for Digital Links; `X-Waymark-Edges` says how far they are, and the status \
     is 202 where one lags",
)];

/// Describes the body that operations take: gives their `requestBody`.
#[derive(Debug, Clone, Copy)]
pub struct BodyOf(fn() -> Value);

impl BodyOf {
    /// The `requestBody` of the OpenAPI document. Members that it does not name are unknown.
    #[must_use]
    pub fn described(self) -> Value {
        (self.0)()
    }
}

impl PartialEq for BodyOf {
    fn eq(&self, other: &Self) -> bool {
        self.described() == other.described()
    }
}

impl Eq for BodyOf {}

/// What holds for an operation, besides what its handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The rate limit.
    pub rate_limit: RateLimit,
    /// Longest handling of a request.
    pub time_limit: Duration,
    /// What repeats get.
    pub idempotency: Idempotency,
    /// Values of `Sec-Fetch-Site` with which a browser may open it as a page; empty where it is none.
    pub page_from: &'static [&'static str],
    /// A session reaches it whose operator must turn a second factor on before anything else.
    pub enrols: bool,
    /// Edges pass requests for it on, at short domains.
    pub by_edges: bool,
    /// It answers with an `ETag`.
    pub answers_tag: bool,
    /// It looks at `If-Match`.
    pub takes_tag: bool,
    /// It looks at `Range` and `If-Range`.
    pub takes_range: bool,
    /// It answers a code as an image, at least where `Accept` names none but images.
    pub draws: bool,
    /// It waits for edges behind a success, where `wait` asks for it.
    pub waits: bool,
    /// It takes no place beside requests of other accounts.
    pub takes_no_place: bool,
    /// Query parameters besides those that the operations declare.
    pub queries: Queries,
    /// The body of those operations of the row that take one.
    pub body: Option<BodyOf>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rate_limit: RateLimit::default(),
            time_limit: TIME_LIMIT,
            idempotency: Idempotency::default(),
            page_from: &[],
            enrols: false,
            by_edges: false,
            answers_tag: false,
            takes_tag: false,
            takes_range: false,
            draws: false,
            waits: false,
            takes_no_place: false,
            queries: &[],
            body: None,
        }
    }
}

/// One row: operations of one path that have their policy in common.
pub struct Row<S> {
    documented: Documented<S>,
    policy: Policy,
}

/// The columns of a row, behind `routes!(…)`.
pub trait Columns<S>: Sized {
    /// The row so far.
    fn row(self) -> Row<S>;

    /// Which rate limit counts requests.
    #[must_use]
    fn rate_limit(self, limit: RateLimit) -> Row<S> {
        self.with(|policy| policy.rate_limit = limit)
    }

    /// How long the handling of a request may take; 30 seconds without it.
    #[must_use]
    fn time_limit(self, limit: Duration) -> Row<S> {
        self.with(|policy| policy.time_limit = limit)
    }

    /// A repeat with the same `Idempotency-Key` gets the first answer.
    #[must_use]
    fn idempotent(self) -> Row<S> {
        self.idempotency(Idempotency::Kept)
    }

    /// What the operation does with an `Idempotency-Key`.
    #[must_use]
    fn idempotency(self, idempotency: Idempotency) -> Row<S> {
        self.with(|policy| policy.idempotency = idempotency)
    }

    /// A browser opens it as a page, from these sites.
    #[must_use]
    fn page_from(self, sites: &'static [&'static str]) -> Row<S> {
        self.with(|policy| policy.page_from = sites)
    }

    /// Reached before a second factor is on, where one is required.
    #[must_use]
    fn enrols(self) -> Row<S> {
        self.with(|policy| policy.enrols = true)
    }

    /// Edges pass requests for it on.
    #[must_use]
    fn by_edges(self) -> Row<S> {
        self.with(|policy| policy.by_edges = true)
    }

    /// Answers with an `ETag`.
    #[must_use]
    fn answers_tag(self) -> Row<S> {
        self.with(|policy| policy.answers_tag = true)
    }

    /// Looks at `If-Match`.
    #[must_use]
    fn takes_tag(self) -> Row<S> {
        self.with(|policy| policy.takes_tag = true)
    }

    /// Looks at `Range` and `If-Range`.
    #[must_use]
    fn takes_range(self) -> Row<S> {
        self.with(|policy| policy.takes_range = true)
    }

    /// Answers a code as an image.
    #[must_use]
    fn draws(self) -> Row<S> {
        self.with(|policy| policy.draws = true)
    }

    /// Waits for edges where it is asked for; knows the query parameters for it.
    #[must_use]
    fn waits(self) -> Row<S> {
        self.with(|policy| (policy.waits, policy.queries) = (true, WAITS))
    }

    /// Takes no place beside requests of other accounts, because it waits for something that these do not wait for.
    #[must_use]
    fn takes_no_place(self) -> Row<S> {
        self.with(|policy| policy.takes_no_place = true)
    }

    /// Knows these query parameters besides those that the operations declare.
    #[must_use]
    fn queries(self, queries: Queries) -> Row<S> {
        self.with(|policy| policy.queries = queries)
    }

    /// Takes a body that this describes: its members are the known ones.
    #[must_use]
    fn body(self, describe: fn() -> Value) -> Row<S> {
        self.with(|policy| policy.body = Some(BodyOf(describe)))
    }

    /// Changes the policy of the row.
    #[doc(hidden)]
    fn with(self, change: impl FnOnce(&mut Policy)) -> Row<S> {
        let mut row = self.row();
        change(&mut row.policy);
        row
    }
}

impl<S> Columns<S> for Documented<S> {
    fn row(self) -> Row<S> {
        Row { documented: self, policy: Policy::default() }
    }
}

impl<S> Columns<S> for Row<S> {
    fn row(self) -> Row<S> {
        self
    }
}

/// The policy of every operation, by method and path as the table writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<String, Vec<(Method, Policy)>>);

impl Policies {
    /// Those of no operations: everywhere holds what holds by default.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The policy of an operation, by its path in the table: `/thngs/{id}`. Where there is none, what holds by default.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Policy {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let operations = self.0.get(path).into_iter().flatten();
        operations.filter(|(of, _)| of == method).map(|(_, policy)| *policy).next().unwrap_or_default()
    }

    /// Every operation: method, path and policy.
    pub fn iter(&self) -> impl Iterator<Item = (&Method, &str, &Policy)> {
        self.0.iter().flat_map(|(path, operations)| {
            operations.iter().map(move |(method, policy)| (method, path.as_str(), policy))
        })
    }

    fn add(&mut self, path: &str, item: &PathItem, policy: Policy) {
        let all = [
            (Method::GET, &item.get),
            (Method::PUT, &item.put),
            (Method::POST, &item.post),
            (Method::DELETE, &item.delete),
            (Method::PATCH, &item.patch),
        ];
        let declared = all.into_iter().filter(|(_, operation)| operation.is_some());
        let operations = self.0.entry(path.to_owned()).or_default();
        operations.extend(declared.map(|(method, _)| (method, policy)));
    }

    fn merge(&mut self, other: Self) {
        for (path, operations) in other.0 {
            self.0.entry(path).or_default().extend(operations);
        }
    }
}

/// The rows of a subject, or of all.
pub struct Routes<S> {
    router: OpenApiRouter<S>,
    policies: Policies,
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No rows.
    #[must_use]
    pub fn new() -> Self {
        Self { router: OpenApiRouter::new(), policies: Policies::default() }
    }

    /// No rows, and a document to which theirs is added.
    #[must_use]
    pub fn with_openapi(document: OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), policies: Policies::default() }
    }

    /// Adds a row. Operations of one path with another policy are another row.
    #[must_use]
    pub fn routes(mut self, row: impl Columns<S>) -> Self {
        let Row { documented, policy } = row.row();
        for (path, item) in &documented.1.paths {
            self.policies.add(path, item, policy);
        }
        Self { router: self.router.routes(documented), ..self }
    }

    /// Adds the rows of another table.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.policies.merge(other.policies);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// Handlers, documentation and policies.
    pub fn split(self) -> (Router<S>, OpenApi, Policies) {
        let (router, document) = self.router.split_for_parts();
        (router, document, self.policies)
    }
}

#[cfg(test)]
mod tests {
    use utoipa_axum::routes;

    use super::*;

    #[utoipa::path(get, path = "/codes/{id}", responses((status = 200)))]
    async fn read() {}

    #[utoipa::path(post, path = "/codes/{id}", responses((status = 201)))]
    async fn send() {}

    #[utoipa::path(delete, path = "/codes/{id}", responses((status = 204)))]
    async fn remove() {}

    #[test]
    fn each_operation_has_the_policy_of_its_row() {
        let codes = Routes::<()>::new()
            .routes(routes!(read, remove))
            .routes(routes!(send).rate_limit(RateLimit::Login).idempotent());
        let (_, document, policies) = Routes::new().merge(codes).split();
        assert_eq!(document.paths.paths.len(), 1);
        assert_eq!(policies.iter().count(), 3);
        let login =
            Policy { rate_limit: RateLimit::Login, idempotency: Idempotency::Kept, ..Policy::default() };
        for (method, path, expected) in [
            (Method::POST, "/codes/{id}", login),
            (Method::GET, "/codes/{id}", Policy::default()),
            (Method::HEAD, "/codes/{id}", Policy::default()),
            (Method::PUT, "/codes/{id}", Policy::default()),
            (Method::POST, "/codes/1", Policy::default()),
        ] {
            assert_eq!(policies.find(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_head_request_has_the_policy_of_its_get() {
        let hour = Duration::from_secs(3_600);
        let (_, _, policies) = Routes::<()>::new().routes(routes!(read).time_limit(hour)).split();
        assert_eq!(policies.find(&Method::HEAD, "/codes/{id}").time_limit, hour);
    }
}
