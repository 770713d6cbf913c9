//! Lists of redirections: by conditions, and by the words of `q`.

use shared::{
    filter::{Expr, Operator},
    id::AccountId,
    time::UnixMillis,
};

use super::{
    Conn, StoreError,
    listing::{self, Column, Explained, Selection, Table},
    on_db,
    redirections::Row,
};
use crate::domain::{
    filter::Filter,
    listing::ListRequest,
    page::{Page, PageRequest, Position},
    redirection::Redirection,
    words::WordQuery,
};

const IS_FILLED: &str = "SELECT done FROM redirection_fill WHERE id = 1";

/// Columns of a list. `t` is a redirection with what people say about it; tombstones are none.
macro_rules! select {
    ($source:literal, $words:literal) => {
        concat!(
            "SELECT t.seq, t.domain, d.scheme, d.case_sensitive, t.folded, t.short_id, t.account_id, t.type, \
             t.platform_id, t.thng_id, t.product_id, t.target, t.forward_query, t.availability, t.scopes, t.hits, \
             t.created_at, t.updated_at, t.rev, h.name AS thng_name, h.commission_state, h.verdict, t.doc FROM ",
            $source,
            "(SELECT r.seq, r.domain, r.folded, r.short_id, r.account_id, r.type, r.platform_id, r.thng_id, \
             r.product_id, r.target, r.forward_query, r.availability, r.scopes, r.hits, r.created_at, r.updated_at, \
             r.rev, x.doc, x.facets",
            $words,
            " FROM redirections r LEFT JOIN redirection_details x ON x.seq = r.seq WHERE r.deleted_rev IS NULL) t ",
            "JOIN short_domains d ON d.host = t.domain LEFT JOIN thngs h ON h.id = t.thng_id"
        )
    };
}

const COLUMNS: &[(&str, Column)] = &[
    ("createdAt", Column::Whole("t.created_at")),
    ("updatedAt", Column::Whole("t.updated_at")),
    ("shortId", Column::Text("t.short_id")),
    ("shortDomain", Column::Text("t.domain")),
    ("type", Column::Text("t.type")),
    ("platformId", Column::Text("t.platform_id")),
    ("product", Column::Text("t.product_id")),
    ("thng", Column::Text("t.thng_id")),
    ("defaultRedirectUrl", Column::Text("t.target")),
    ("title", Column::Text("(t.doc ->> 'title')")),
    (
        "scopes.projects",
        Column::Clause {
            pg: "jsonb_exists(t.scopes -> 'projects', {})",
            sqlite: "EXISTS (SELECT 1 FROM json_each(t.scopes, '$.projects') s WHERE s.value = {})",
        },
    ),
    (
        "scopes.users",
        Column::Clause {
            pg: "jsonb_exists(t.scopes -> 'users', {})",
            sqlite: "EXISTS (SELECT 1 FROM json_each(t.scopes, '$.users') s WHERE s.value = {})",
        },
    ),
    (
        WORDS,
        Column::Clause {
            pg: "(t.words @@ CAST({} AS tsquery))",
            sqlite: "(w.rowid = t.seq AND w.redirection_words MATCH {})",
        },
    ),
];

/// What the words of a query are compared with; no field of filters.
const WORDS: &str = "words";

/// In order of creation.
const LIST: Table = Table {
    select: select!("", ""),
    order: ("t.created_at", "t.seq"),
    columns: COLUMNS,
    identifiers: None,
    faceted: true,
    // No redirection is a caller.
    itself: "t.short_id",
};

/// The same by words. Where the next links have enough of them, Postgres walks the account.
const PG_BY_WORDS: Table = Table { select: select!("", ", x.words"), ..LIST };

/// By words that are rare among the next links: the index of words finds all that have them, and they are sorted.
///
/// Postgres knows no word that is not among the most frequent, and takes it for so frequent that it walks the account: 5 s
/// among a million links for a word that none has, against 13 ms so. It cannot walk by this order.
const PG_BY_INDEX: Table = Table { order: ("(t.created_at + 0)", "t.seq"), ..PG_BY_WORDS };
const SQLITE_BY_INDEX: Table = Table { select: select!("redirection_words w CROSS JOIN ", ""), ..LIST };

// Positions of the list's own order, so that the next page follows whichever way this one was found.
const BOUND: &str = "SELECT created_at FROM redirections WHERE account_id = $1 AND deleted_rev IS NULL \
    AND (created_at, seq) < ($2, $3) ORDER BY created_at DESC, seq DESC LIMIT 1 OFFSET 10000";
const BOUND_ASCENDING: &str = "SELECT created_at FROM redirections WHERE account_id = $1 AND deleted_rev IS NULL \
    AND (created_at, seq) > ($2, $3) ORDER BY created_at, seq LIMIT 1 OFFSET 10000";

/// The next links in which SQLite looks for words without their index: to read the index for a word that most links have
/// takes longer than they do.
const SQLITE_NEXT: u32 = 1_000;

/// Adds to the words of `q` what else the index of words finds.
async fn narrow(
    conn: &mut Conn,
    mut words: WordQuery,
    selection: &Selection<'_>,
) -> Result<WordQuery, StoreError> {
    let request = selection.request;
    let mut by_column = Vec::new();
    for (field, value) in selection.within.iter().filter(|(field, _)| *field == "product") {
        by_column.push((*field, *value));
    }
    by_column.extend(request.project.iter().map(|id| ("scopes.projects", id.as_str())));
    require_equal(request, &mut words, &mut by_column);
    // These are right for every link; its tokens are there when it has some.
    if !by_column.is_empty() && is_filled(conn).await? {
        by_column.into_iter().for_each(|(field, value)| words.require(field, value));
    }
    Ok(words)
}

/// Asks the index of words for what a filter says must be equal. It is checked once more, by the filter itself.
fn require_equal<'r>(
    request: &'r ListRequest,
    words: &mut WordQuery,
    by_column: &mut Vec<(&'static str, &'r str)>,
) {
    let Some(filter) = &request.filter else { return };
    let branches = match filter.expr() {
        Expr::And(branches) => branches.as_slice(),
        Expr::Or(_) | Expr::Not(_) | Expr::Term(_) => std::slice::from_ref(filter.expr()),
    };
    for branch in branches {
        let Expr::Term(term) = branch else { continue };
        if term.operator != Operator::Equal {
            continue;
        }
        match term.field.as_str() {
            "product" => by_column.push(("product", term.value.as_str())),
            field if field == "tags" || field.starts_with("customFields.") => {
                words.require(field, term.value.as_str());
            }
            _ => {}
        }
    }
}

/// Whether every link has its words.
async fn is_filled(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(IS_FILLED).fetch_one(c).await)?)
}

/// Redirections in order of creation.
///
/// # Errors
/// As [`listing::page`].
pub async fn list(
    conn: &mut Conn,
    words: WordQuery,
    selection: &Selection<'_>,
) -> Result<Page<Redirection>, StoreError> {
    let words = narrow(conn, words, selection).await?;
    if words.is_empty() {
        return page(conn, &LIST, selection).await;
    }
    let request = selection.request;
    if matches!(conn, Conn::Pg(_) | Conn::PgTx(_)) {
        let query = words.for_postgres(selection.account);
        let within = with_words(&query, selection);
        let selection = Selection { within: &within, ..*selection };
        let Some(bound) = bound(conn, selection.account, request.page).await? else {
            return page(conn, &PG_BY_WORDS, &selection).await;
        };
        let (from, to) = if request.page.is_ascending() { (None, Some(bound)) } else { (Some(bound), None) };
        let filter = request.filter.clone().into_iter().chain(Filter::between("createdAt", from, to));
        let next = ListRequest { filter: filter.reduce(Filter::and), ..request.clone() };
        let found = page(conn, &PG_BY_WORDS, &Selection { request: &next, ..selection }).await?;
        if found.next.is_some() {
            return Ok(found);
        }
        return page(conn, &PG_BY_INDEX, &selection).await;
    }
    let next = ListRequest { page: PageRequest { per_page: SQLITE_NEXT, ..request.page }, ..request.clone() };
    let found = page(conn, &LIST, &Selection { request: &next, ..*selection }).await?;
    let with: Vec<_> = found.items.into_iter().filter(|link| words.admits(link)).collect();
    let with = Page::cut(with, request.page, position);
    if with.next.is_some() {
        return Ok(with);
    }
    let query = words.for_sqlite(selection.account);
    let within = with_words(&query, selection);
    page(conn, &SQLITE_BY_INDEX, &Selection { within: &within, ..*selection }).await
}

async fn page(
    conn: &mut Conn,
    table: &Table,
    selection: &Selection<'_>,
) -> Result<Page<Redirection>, StoreError> {
    listing::page::<Row, Redirection>(conn, table, selection, position).await
}

const fn position(row: &Redirection) -> Position {
    Position { at: row.redirect.created_at, seq: row.seq }
}

fn with_words<'a>(query: &'a str, selection: &Selection<'a>) -> Vec<(&'static str, &'a str)> {
    std::iter::once((WORDS, query)).chain(selection.within.iter().copied()).collect()
}

/// When the ten-thousandth of the next links was created; `None` where there are fewer.
async fn bound(
    conn: &mut Conn,
    account: AccountId,
    page: PageRequest,
) -> Result<Option<UnixMillis>, StoreError> {
    let sql = if page.is_ascending() { BOUND_ASCENDING } else { BOUND };
    let (at, seq) = page.start();
    let found: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(sql)
        .bind(account.as_str())
        .bind(at)
        .bind(seq)
        .fetch_optional(c)
        .await)?;
    Ok(found.map(UnixMillis))
}

/// What [`list`] would run where the next links do not have the words, for tests and benchmarks.
///
/// # Errors
/// The database failed.
pub async fn explain(
    conn: &mut Conn,
    words: WordQuery,
    selection: &Selection<'_>,
) -> Result<Explained, StoreError> {
    let words = narrow(conn, words, selection).await?;
    let (table, query) = match conn {
        _ if words.is_empty() => return listing::explain(conn, &LIST, selection).await,
        Conn::Pg(_) | Conn::PgTx(_) => (&PG_BY_INDEX, words.for_postgres(selection.account)),
        Conn::Sqlite(_) | Conn::SqliteTx(_) => (&SQLITE_BY_INDEX, words.for_sqlite(selection.account)),
    };
    let within = with_words(&query, selection);
    listing::explain(conn, table, &Selection { within: &within, ..*selection }).await
}
