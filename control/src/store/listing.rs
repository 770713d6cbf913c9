//! The statements that list products and Thngs, and how they are run.
//!
//! Each way to narrow a list has a statement of its own, so that each has its index.

use sqlx::{FromRow, postgres::PgRow, sqlite::SqliteRow};

use super::{Conn, StoreError, dialect, on_db};
use crate::domain::{filter::Filter, page::PageRequest};

/// One statement in both orders.
pub(super) struct Both {
    pub(super) ascending: &'static str,
    pub(super) descending: &'static str,
}

impl Both {
    pub(super) const fn ordered(&self, page: PageRequest) -> &'static str {
        if page.is_ascending() { self.ascending } else { self.descending }
    }
}

/// A statement over the account's rows of a table `t` that also meet `$condition`, in both orders.
///
/// Parameters 1 to 4 are account, position and limit; those of the condition begin at 5.
macro_rules! both {
    ($columns:expr, $from:expr, $condition:expr) => {
        $crate::store::listing::Both {
            ascending: concat!(
                $columns,
                $from,
                " WHERE t.account_id = $1 AND (t.created_at, t.seq) > ($2, $3)",
                $condition,
                " ORDER BY t.created_at, t.seq LIMIT $4"
            ),
            descending: concat!(
                $columns,
                $from,
                " WHERE t.account_id = $1 AND (t.created_at, t.seq) < ($2, $3)",
                $condition,
                " ORDER BY t.created_at DESC, t.seq DESC LIMIT $4"
            ),
        }
    };
}
pub(super) use both;

/// The statements of one table of resources.
pub(super) struct Statements {
    /// Kind of the resource in the table of identifiers.
    pub(super) kind: &'static str,
    pub(super) all: Both,
    pub(super) by_name: Both,
    pub(super) by_identifier: Both,
    /// `None` where rows have no product.
    pub(super) by_product: Option<Both>,
    pub(super) pg_by_ids: Both,
    pub(super) sqlite_by_ids: Both,
}

// SQLite has no statistics and would walk the whole account in order to save the sort; CROSS JOIN
// makes it begin with the few rows that are asked for. Postgres chooses by itself.
macro_rules! statements {
    ($kind:expr, $columns:expr, $table:literal, $by_product:expr) => {
        $crate::store::listing::Statements {
            kind: $kind,
            all: both!($columns, concat!(" FROM ", $table, " t"), ""),
            by_name: both!($columns, concat!(" FROM ", $table, " t"), " AND t.name = $5"),
            by_identifier: both!(
                $columns,
                concat!(" FROM identifiers i CROSS JOIN ", $table, " t"),
                " AND i.account_id = $1 AND i.kind = $5 AND i.key = $6 AND i.value = $7 AND t.id = i.resource_id"
            ),
            by_product: $by_product,
            pg_by_ids: both!($columns, concat!(" FROM ", $table, " t"), " AND t.id = ANY($5)"),
            sqlite_by_ids: both!(
                $columns,
                concat!(" FROM json_each($5) j CROSS JOIN ", $table, " t"),
                " AND t.id = j.value"
            ),
        }
    };
}
pub(super) use statements;

/// Which rows of an account's resources to list.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// All of them.
    All,
    /// Those that a filter lets through.
    Filtered(&'a Filter),
    /// Those with one of these ids.
    Ids(&'a [String]),
}

/// Up to [`PageRequest::limit`] rows in order of creation; of a list of ids every row after the position.
pub(super) async fn fetch<R>(
    conn: &mut Conn,
    statements: &Statements,
    account: &str,
    selection: Selection<'_>,
    page: PageRequest,
) -> Result<Vec<R>, StoreError>
where
    R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
{
    let (at, seq) = page.start();
    let limit = i64::from(page.limit());
    let rows = match selection {
        Selection::All => {
            let sql = statements.all.ordered(page);
            on_db!(conn, |c| sqlx::query_as(sql)
                .bind(account)
                .bind(at)
                .bind(seq)
                .bind(limit)
                .fetch_all(c)
                .await)
        }
        Selection::Filtered(Filter::Name(name)) => {
            let sql = statements.by_name.ordered(page);
            on_db!(conn, |c| sqlx::query_as(sql)
                .bind(account)
                .bind(at)
                .bind(seq)
                .bind(limit)
                .bind(name)
                .fetch_all(c)
                .await)
        }
        Selection::Filtered(Filter::Identifier(identifier)) => {
            let sql = statements.by_identifier.ordered(page);
            on_db!(conn, |c| sqlx::query_as(sql)
                .bind(account)
                .bind(at)
                .bind(seq)
                .bind(limit)
                .bind(statements.kind)
                .bind(&identifier.key)
                .bind(&identifier.value)
                .fetch_all(c)
                .await)
        }
        Selection::Filtered(Filter::Product(product)) => {
            let Some(by_product) = &statements.by_product else { return Ok(Vec::new()) };
            let sql = by_product.ordered(page);
            on_db!(conn, |c| sqlx::query_as(sql)
                .bind(account)
                .bind(at)
                .bind(seq)
                .bind(limit)
                .bind(product.as_str())
                .fetch_all(c)
                .await)
        }
        Selection::Ids(ids) => {
            let (pg, sqlite) = (statements.pg_by_ids.ordered(page), statements.sqlite_by_ids.ordered(page));
            let limit = ids.len() as i64;
            dialect::fetch_in_list!(conn, R, pg, sqlite, [account, at, seq, limit], ids)
        }
    };
    Ok(rows?)
}
