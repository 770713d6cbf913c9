//! Parameters of lists: filter, order and page, and which fields each type of resource can be filtered by.

use shared::id::ProjectId;

use super::{
    filter::{
        Field, Filter,
        Holds::{self, Count, Id, Labels, Millis, Scalars, StatusCode, Text},
    },
    page::PageRequest,
};

/// How the list of one type is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListType {
    /// The fields that it may be filtered by.
    pub fields: &'static [Field],
    /// Whether `page=n` and `x-result-count` are supported: deprecated, kept where they existed.
    pub numbered: bool,
}

const fn field(name: &'static str, holds: Holds) -> Field {
    Field { name, holds }
}

const fn by(fields: &'static [Field]) -> ListType {
    ListType { fields, numbered: false }
}

const fn numbered(fields: &'static [Field]) -> ListType {
    ListType { fields, numbered: true }
}

/// A list that takes no filter.
pub const PLAIN: ListType = by(&[]);
/// Thngs.
pub const THNGS: ListType = by(&[
    field("createdAt", Millis),
    field("identifiers.*", Labels),
    field("customFields.*", Scalars),
    field("name", Text),
    field("product", Id),
    field("collections", Id),
    field("tags", Labels),
]);
/// Products.
pub const PRODUCTS: ListType =
    by(&[field("name", Text), field("identifiers.*", Labels), field("tags", Labels)]);
/// Actions.
pub const ACTIONS: ListType = by(&[
    field("timestamp", Millis),
    field("type", Text),
    field("thng", Id),
    field("product", Id),
    field("collection", Id),
    field("user", Id),
    field("tags", Labels),
    field("identifiers.*", Labels),
    field("customFields.*", Scalars),
    field("context.city", Labels),
    field("context.countryCode", Labels),
]);
/// Types of actions.
pub const ACTION_TYPES: ListType = by(&[field("name", Text)]);
/// Points of a property's history.
pub const PROPERTIES: ListType = by(&[field("timestamp", Millis)]);
/// Where a Thng was.
pub const LOCATIONS: ListType = by(&[field("timestamp", Millis)]);
/// Entries of the audit trail.
pub const AUDIT: ListType = by(&[
    field("createdAt", Millis),
    field("actor", Text),
    field("key", Text),
    field("operation", Text),
    field("resource", Text),
    field("resourceId", Text),
    field("requestId", Text),
]);
/// Redirections.
pub const REDIRECTIONS: ListType = by(&[
    field("createdAt", Millis),
    field("updatedAt", Millis),
    field("title", Text),
    field("tags", Labels),
    field("customFields.*", Scalars),
    field("shortId", Text),
    field("shortDomain", Text),
    field("type", Text),
    field("platformId", Id),
    field("product", Id),
    field("thng", Id),
    field("defaultRedirectUrl", Text),
    field("status", Text),
    field("statusCode", StatusCode),
    field("validFrom", Millis),
    field("validUntil", Millis),
    field("maxScans", Count),
]);
/// Places.
pub const PLACES: ListType = numbered(PRODUCTS.fields);
/// Files.
pub const FILES: ListType = numbered(&[field("name", Text), field("tags", Labels)]);
// Spec gap: the platform API lists no fields of these types; clients look them up by name before they create.
/// Collections.
pub const COLLECTIONS: ListType = numbered(PRODUCTS.fields);
/// Projects.
pub const PROJECTS: ListType = numbered(&[field("name", Text)]);
/// Roles.
pub const ROLES: ListType = by(&[field("name", Text)]);
/// Applications.
pub const APPLICATIONS: ListType = numbered(PROJECTS.fields);
/// Batches.
pub const BATCHES: ListType = numbered(PRODUCTS.fields);
/// Tasks of a batch.
pub const TASKS: ListType = by(&[field("status", Text), field("type", Text)]);
/// Requests to erase personal data.
pub const ERASURES: ListType = TASKS;
/// Jobs.
pub const JOBS: ListType = numbered(&[field("status", Text), field("type", Text)]);
/// Print orders.
pub const PRINT_ORDERS: ListType = by(&[field("status", Text), field("name", Text)]);
/// Failed operations of jobs.
pub const JOB_LOGS: ListType = by(&[field("jobId", Id), field("type", Text)]);
/// Cases of assessments.
pub const CASES: ListType =
    by(&[field("status", Text), field("kind", Text), field("thng", Id), field("product", Id)]);
/// Webhooks.
pub const WEBHOOKS: ListType = by(&[field("name", Text), field("status", Text)]);
/// Reactions.
pub const REACTIONS: ListType = WEBHOOKS;
/// What webhooks are to be sent, and were.
pub const DELIVERIES: ListType = by(&[field("status", Text), field("type", Text)]);
/// Users of applications.
pub const USERS: ListType = numbered(&[]);

/// A request for a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListRequest {
    /// Which part of it.
    pub page: PageRequest,
    /// Only these ids, at most 100.
    pub ids: Option<Vec<String>>,
    /// Only rows that meet this.
    pub filter: Option<Filter>,
    /// Only resources scoped to this project.
    pub project: Option<ProjectId>,
    /// Whether to count the whole list.
    pub counted: bool,
}
