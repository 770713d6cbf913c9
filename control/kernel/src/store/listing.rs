//! Lists: one statement builder for every list of the product.
//!
//! A table that can be listed says in a `Table` what its rows are and where its fields are found; then
//! `page` gives pages of it. To add one:
//!
//! ```text
//! const LIST: Table = Table {
//!     select: concat!(columns!(), " FROM app_users t"),       // the alias is t; columns are qualified
//!     order: ("t.created_at", "t.seq"),                       // or ("t.timestamp", "t.seq") in histories
//!     columns: &[("name", Column::Text("t.name"))],           // every other field is a facet
//!     identifiers: None,                                      // Some(kind) if the table of that name is used
//!     faceted: true,                                          // the table has a column `facets`
//!     itself: "t.id",                                         // what is meant by the caller's own id
//! };
//!
//! pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<AppUser>, StoreError> {
//!     listing::page::<Row, AppUser>(conn, &LIST, selection, |user| user.stamp.position()).await
//! }
//! ```
//!
//! Tables of named resources are listed by `documents`.
//!
//! The reach of a confined key and `project=` are conditions on `scopes.projects` and `scopes.users`: a table
//! that is not faceted gives these fields a column or clause. What a path says (`/thngs/:id/actions/scans`)
//! comes as [`Selection::within`], as fields with the value that they must have.

use shared::{
    filter::{Expr, Operator, Term, Value},
    id::{AccountId, ProjectId},
};
use sqlx::{AssertSqlSafe, FromRow, Row, postgres::PgRow, sqlite::SqliteRow};

use super::{
    Conn, STATEMENT_TIMEOUT, StoreError,
    conditions::{Bind, Engine, Statement},
    on_db,
    texts::Texts,
    watch::Watch,
};
use crate::domain::{
    grant::Limit,
    listing::ListRequest,
    page::{Page, Position},
};

pub use super::conditions::Column;

/// A query with the values of its placeholders.
macro_rules! bound {
    ($query:expr, $binds:expr) => {
        $binds.into_iter().fold($query, |query, bind| match bind {
            Bind::Text(text) => query.bind(text),
            Bind::Whole(number) => query.bind(number),
            Bind::Real(number) => query.bind(number),
            Bind::Texts(texts) => query.bind(texts),
        })
    };
}

/// A table as lists read it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// `SELECT … FROM … t`, without conditions.
    pub select: &'static str,
    /// The columns of the list's order: a time, and the order of insertion.
    pub order: (&'static str, &'static str),
    /// Where fields are found that are no facets.
    pub columns: &'static [(&'static str, Column)],
    /// The kind of the rows in the table of identifiers.
    pub identifiers: Option<&'static str>,
    /// Whether there is a column `facets`.
    pub faceted: bool,
    /// The column that holds the id of a caller who sees only what is its own.
    pub itself: &'static str,
}

impl Table {
    /// The column of a field; `None` where the field is a facet or unknown.
    #[must_use]
    pub fn find_column(&self, field: &str) -> Option<Column> {
        self.columns.iter().find(|(name, _)| *name == field).map(|(_, column)| *column)
    }
}

/// Which rows of a table to list.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// The account.
    pub account: AccountId,
    /// The limit of the caller's view.
    pub limit: &'a Limit,
    /// The request.
    pub request: &'a ListRequest,
    /// Fields with the value that they must have, such as `thng`.
    pub within: &'a [(&'static str, &'a str)],
}

/// One page of a table.
///
/// # Errors
/// The database failed, or [`StoreError::Timeout`] when too many rows had to be looked at.
pub async fn page<R, T>(
    conn: &mut Conn,
    table: &Table,
    selection: &Selection<'_>,
    position: impl Fn(&T) -> Position,
) -> Result<Page<T>, StoreError>
where
    R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    T: TryFrom<R, Error = StoreError>,
{
    page_of(conn, table, selection, T::try_from, position).await
}

/// One page of a table whose rows are read by `read`.
///
/// # Errors
/// As [`page`].
pub async fn page_of<R, T>(
    conn: &mut Conn,
    table: &Table,
    selection: &Selection<'_>,
    read: impl Fn(R) -> Result<T, StoreError>,
    position: impl Fn(&T) -> Position,
) -> Result<Page<T>, StoreError>
where
    R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
{
    let page = selection.request.page;
    let conditions = conditions(engine(conn), table, selection)?;
    let rows: Vec<R> = fetch(conn, ordered(table, conditions.clone(), selection)).await?;
    let rows = rows.into_iter().map(read).collect::<Result<Vec<T>, StoreError>>()?;
    let mut page = Page::cut(rows, page, position);
    if selection.request.counted {
        let counts: Vec<(i64,)> = fetch(conn, count(&conditions)).await?;
        page.total = counts.first().and_then(|(count,)| u64::try_from(*count).ok());
    }
    Ok(page)
}

/// A list's statement, and how the database goes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The statement of one page.
    pub sql: String,
    /// The lines of the plan.
    pub plan: Vec<String>,
}

/// What [`page`] would run, for tests and benchmarks.
pub async fn explain(
    conn: &mut Conn,
    table: &Table,
    selection: &Selection<'_>,
) -> Result<Explained, StoreError> {
    let engine = engine(conn);
    let sql = ordered(table, conditions(engine, table, selection)?, selection);
    let (prefix, column) = match engine {
        Engine::Postgres => ("EXPLAIN ", 0),
        Engine::Sqlite => ("EXPLAIN QUERY PLAN ", 3),
    };
    let asked = format!("{prefix}{}", sql.text);
    let plan = on_db!(conn, |c| {
        let query = sqlx::query(AssertSqlSafe(asked)).persistent(false);
        let rows = bound!(query, sql.binds).fetch_all(c).await?;
        rows.iter().map(|row| row.try_get(column)).collect::<Result<Vec<String>, sqlx::Error>>()
    })?;
    Ok(Explained { sql: sql.text, plan })
}

/// The rows that meet every condition, without order.
fn conditions(engine: Engine, table: &Table, selection: &Selection<'_>) -> Result<Statement, StoreError> {
    let request = selection.request;
    let mut sql = Statement::new(engine);
    sql.push(table.select);
    // SQLite has no statistics and would walk the whole account in order to save the sort: the sign takes
    // the index from it where few rows are named.
    let sqlite =
        if names_rows(table, request) { " WHERE +t.account_id = " } else { " WHERE t.account_id = " };
    sql.push_either(" WHERE t.account_id = ", sqlite);
    sql.bind(Bind::Text(selection.account.to_string()));
    if let Some(ids) = &request.ids {
        sql.push_either(" AND t.id = ANY(", " AND t.id IN (SELECT value FROM json_each(");
        sql.bind(Bind::Texts(Texts(ids.clone())));
        sql.push_either(")", "))");
    }
    let mut narrow = |field: &str, value: &str| {
        sql.push(" AND ");
        sql.condition(table, &Expr::Term(equal(field, value)))
    };
    for (field, value) in selection.within {
        narrow(field, value)?;
    }
    if let Some(project) = &request.project {
        narrow("scopes.projects", project.as_str())?;
    }
    match selection.limit {
        Limit::Account => {}
        Limit::Projects(projects) => {
            let of = |project: &ProjectId| Expr::Term(equal("scopes.projects", project.as_str()));
            sql.push(" AND ");
            sql.condition(table, &Expr::Or(projects.iter().map(of).collect()))?;
        }
        Limit::User(user) => narrow("scopes.users", user)?,
        Limit::Itself(id) => {
            sql.push(" AND ");
            sql.push(table.itself);
            sql.push(" = ");
            sql.bind(Bind::Text(id.clone()));
        }
    }
    if let Some(filter) = &request.filter {
        sql.push(" AND ");
        sql.condition(table, filter.expr())?;
    }
    Ok(sql)
}

/// One page of these rows, in order.
fn ordered(table: &Table, mut sql: Statement, selection: &Selection<'_>) -> Statement {
    let page = selection.request.page;
    let ((at, seq), ascending) = (table.order, page.is_ascending());
    if let Some(after) = page.after {
        sql.push(" AND (");
        sql.push(at);
        sql.push(", ");
        sql.push(seq);
        sql.push(if ascending { ") > (" } else { ") < (" });
        sql.bind(Bind::Whole(after.at.0));
        sql.push(", ");
        sql.bind(Bind::Whole(after.seq));
        sql.push(")");
    }
    sql.push(" ORDER BY ");
    if sql.engine == Engine::Sqlite && names_rows(table, selection.request) {
        sql.push("+");
    }
    sql.push(at);
    sql.push(if ascending { ", " } else { " DESC, " });
    sql.push(seq);
    sql.push(if ascending { " LIMIT " } else { " DESC LIMIT " });
    // Literal numbers, which are not user input: Postgres then knows how few rows it has to find.
    sql.text.push_str(&format!("{} OFFSET {}", page.limit(), page.skipped()));
    sql
}

fn count(rows: &Statement) -> Statement {
    let text = format!("VALUES ((SELECT COUNT(*) FROM ({}) AS listed))", rows.text);
    Statement { text, ..rows.clone() }
}

/// Whether the request names a few rows, by id or by an identifier.
fn names_rows(table: &Table, request: &ListRequest) -> bool {
    let is_identifier = |expr: &Expr| match expr {
        Expr::Term(term) => term.operator == Operator::Equal && term.field.starts_with("identifiers."),
        Expr::And(_) | Expr::Or(_) | Expr::Not(_) => false,
    };
    let by_identifier = request.filter.as_ref().is_some_and(|filter| match filter.expr() {
        Expr::And(branches) => branches.iter().any(is_identifier),
        other => is_identifier(other),
    });
    request.ids.is_some() || (table.identifiers.is_some() && by_identifier)
}

const fn engine(conn: &Conn) -> Engine {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => Engine::Postgres,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Engine::Sqlite,
    }
}

fn equal(field: &str, value: &str) -> Term {
    Term { field: field.to_owned(), operator: Operator::Equal, value: Value::new(value) }
}

/// Runs a statement that is planned for its own values: frequent and rare values differ too much for one plan.
async fn fetch<R>(conn: &mut Conn, sql: Statement) -> Result<Vec<R>, StoreError>
where
    R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
{
    let _watch = Watch::begin(conn, STATEMENT_TIMEOUT).await?;
    let rows = on_db!(conn, |c| {
        let query = sqlx::query_as(AssertSqlSafe(sql.text)).persistent(false);
        bound!(query, sql.binds).fetch_all(c).await
    })?;
    Ok(rows)
}
