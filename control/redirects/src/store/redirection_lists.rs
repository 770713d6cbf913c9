//! Lists of redirections: by conditions, and by the words of `q`.

use shared::{
    filter::{Expr, Operator, Term},
    id::AccountId,
    time::UnixMillis,
};

use super::{
    Conn, StoreError,
    listing::{self, Column, Explained, Selection, Table},
    on_db,
    redirection_columns::redirection_columns,
    redirection_fill,
    redirections::Row,
};
use crate::domain::{
    filter::Filter,
    listing::ListRequest,
    page::{Page, Position},
    redirection::Redirection,
    words::WordQuery,
};

/// Links that the first attempt scans. Reading the index for a word that most links have takes longer than that.
const PG_FIRST: u32 = 10_000;

/// SQLite returns them all, and their words are compared here: see [`WordQuery::admits`].
const SQLITE_FIRST: u32 = 1_000;

/// Columns of a list. `t` is a redirection with its details. Tombstones are none, and Digital Links are shown with their resource.
macro_rules! select {
    ($source:literal, $words:literal) => {
        concat!(
            "SELECT ",
            redirection_columns!("t."),
            ", d.scheme, d.case_sensitive, d.digital_links, d.paths, h.name AS thng_name, h.commission_state, h.verdict, t.doc FROM ",
            $source,
            "(SELECT ",
            redirection_columns!("r."),
            ", x.doc, x.facets",
            $words,
            " FROM redirections r LEFT JOIN redirection_details x ON x.seq = r.seq WHERE r.deleted_rev IS NULL \
             AND r.folded NOT LIKE '01/%') t \
             JOIN short_domains d ON d.host = t.domain LEFT JOIN thngs h ON h.id = t.thng_id"
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
        "status",
        Column::Text("(CASE WHEN (t.availability -> 'isPaused') IS NULL THEN 'active' ELSE 'paused' END)"),
    ),
    ("statusCode", Column::Text("CAST(COALESCE(t.status_code, 307) AS TEXT)")),
    ("validFrom", Column::Whole("CAST(t.availability ->> 'validFrom' AS BIGINT)")),
    ("validUntil", Column::Whole("CAST(t.availability ->> 'validUntil' AS BIGINT)")),
    ("maxScans", Column::Whole("CAST(t.availability ->> 'maxScans' AS BIGINT)")),
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

/// First attempt: scan the next 10,000 links in list order.
const PG_BY_WORDS: Table = Table { select: select!("", ", x.words"), ..LIST };

/// Second attempt: use the GIN index. The `+ 0` stops the planner from walking the order index, which it prefers because it
/// overestimates rare words.
const PG_BY_INDEX: Table = Table { order: ("(t.created_at + 0)", "t.seq"), ..PG_BY_WORDS };
const SQLITE_BY_INDEX: Table = Table { select: select!("redirection_words w CROSS JOIN ", ""), ..LIST };

// Positions of the list's own order, so that a page follows on another one that the other attempt found.
const BOUND: &str = "SELECT created_at FROM redirections WHERE account_id = $1 AND deleted_rev IS NULL \
    AND (created_at, seq) < ($2, $3) ORDER BY created_at DESC, seq DESC LIMIT 1 OFFSET $4";
const BOUND_ASCENDING: &str = "SELECT created_at FROM redirections WHERE account_id = $1 AND deleted_rev IS NULL \
    AND (created_at, seq) > ($2, $3) ORDER BY created_at, seq LIMIT 1 OFFSET $4";

/// Redirections in order of creation.
///
/// # Errors
/// As [`listing::page`].
pub async fn list(
    conn: &mut Conn,
    words: WordQuery,
    selection: &Selection<'_>,
) -> Result<Page<Redirection>, StoreError> {
    let first = match conn {
        Conn::Pg(_) | Conn::PgTx(_) => PG_FIRST,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => SQLITE_FIRST,
    };
    list_with(conn, words, selection, first).await
}

/// The same, with another number of links for the first attempt: for tests.
///
/// # Errors
/// As [`listing::page`].
pub async fn list_with(
    conn: &mut Conn,
    words: WordQuery,
    selection: &Selection<'_>,
    first: u32,
) -> Result<Page<Redirection>, StoreError> {
    let words = narrow(conn, words, selection).await?;
    if words.is_empty() {
        return page(conn, &LIST, selection).await;
    }
    // The first attempt ends with a full page, and counts nothing.
    if !selection.request.counted {
        let bound = bound(conn, selection, first).await?;
        if let Some(found) = scan(conn, &words, selection, (first, bound)).await? {
            return Ok(found);
        }
    }
    let (table, query) = by_index(conn, &words, selection.account);
    let within = with_words(&query, selection);
    page(conn, table, &Selection { within: &within, ..*selection }).await
}

/// What [`list`] runs as its second attempt, for tests and benchmarks.
pub async fn explain(
    conn: &mut Conn,
    words: WordQuery,
    selection: &Selection<'_>,
) -> Result<Explained, StoreError> {
    let words = narrow(conn, words, selection).await?;
    if words.is_empty() {
        return listing::explain(conn, &LIST, selection).await;
    }
    let (table, query) = by_index(conn, &words, selection.account);
    let within = with_words(&query, selection);
    listing::explain(conn, table, &Selection { within: &within, ..*selection }).await
}

/// Adds to the words of `q` the tokens of what else must be equal.
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
    for term in required(request).into_iter().filter(|term| term.operator == Operator::Equal) {
        match term.field.as_str() {
            "product" => by_column.push(("product", term.value.as_str())),
            field if field == "tags" || field.starts_with("customFields.") => {
                words.require(field, term.value.as_str());
            }
            _ => {}
        }
    }
    // Columns are set on every link, tokens only on filled ones; use the tokens only when the fill is done.
    if !by_column.is_empty() && redirection_fill::is_done(conn).await? {
        by_column.into_iter().for_each(|(field, value)| words.require(field, value));
    }
    Ok(words)
}

/// The conditions of a filter that must all be met.
fn required(request: &ListRequest) -> Vec<&Term> {
    fn collect<'r>(expr: &'r Expr, found: &mut Vec<&'r Term>) {
        match expr {
            Expr::And(branches) => branches.iter().for_each(|branch| collect(branch, found)),
            Expr::Term(term) => found.push(term),
            Expr::Or(_) | Expr::Not(_) => {}
        }
    }
    let mut found = Vec::new();
    if let Some(filter) = &request.filter {
        collect(filter.expr(), &mut found);
    }
    found
}

/// The first and the last millisecond in which a link may have been created, by the filter.
fn created(request: &ListRequest) -> (i64, i64) {
    let (mut from, mut to) = (i64::MIN, i64::MAX);
    for term in required(request).into_iter().filter(|term| term.field == "createdAt") {
        let Ok(at) = term.value.as_str().parse::<i64>() else { continue };
        match term.operator {
            Operator::Equal => (from, to) = (from.max(at), to.min(at)),
            Operator::AtLeast => from = from.max(at),
            Operator::Greater => from = from.max(at.saturating_add(1)),
            Operator::AtMost => to = to.min(at),
            Operator::Less => to = to.min(at.saturating_sub(1)),
            Operator::Prefix => {}
        }
    }
    (from, to)
}

/// When the link was created that follows the next `first` ones; `None` if no link follows that the filter may admit.
///
/// It counts from the first link that the filter may admit by its time, so that the scan reaches old links, too.
async fn bound(
    conn: &mut Conn,
    selection: &Selection<'_>,
    first: u32,
) -> Result<Option<UnixMillis>, StoreError> {
    let (page, (from, to)) = (selection.request.page, created(selection.request));
    let (sql, (at, seq)) = if page.is_ascending() {
        (BOUND_ASCENDING, page.start().max((from, i64::MIN)))
    } else {
        (BOUND, page.start().min((to, i64::MAX)))
    };
    // Not prepared: a plan for any offset would read the whole account.
    let found: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(sql)
        .persistent(false)
        .bind(selection.account.as_str())
        .bind(at)
        .bind(seq)
        .bind(i64::from(first))
        .fetch_optional(c)
        .await)?;
    Ok(found.filter(|at| (from..=to).contains(at)).map(UnixMillis))
}

/// When the link of an account was created that comes `count` links behind the next one after a position, in the order of
/// creation; `None` where there are not so many.
pub async fn created_behind(
    conn: &mut Conn,
    account: AccountId,
    after: Option<Position>,
    count: u32,
) -> Result<Option<UnixMillis>, StoreError> {
    let (at, seq) = after.map_or((i64::MIN, i64::MIN), |after| (after.at.0, after.seq));
    let found: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(BOUND_ASCENDING)
        .persistent(false)
        .bind(account.as_str())
        .bind(at)
        .bind(seq)
        .bind(i64::from(count))
        .fetch_optional(c)
        .await)?;
    Ok(found.map(UnixMillis))
}

/// The page by the links up to `bound`; `None` if they do not fill it and others follow.
async fn scan(
    conn: &mut Conn,
    words: &WordQuery,
    selection: &Selection<'_>,
    (first, bound): (u32, Option<UnixMillis>),
) -> Result<Option<Page<Redirection>>, StoreError> {
    let request = selection.request;
    let (from, to) = if request.page.is_ascending() { (None, bound) } else { (bound, None) };
    let filter = request.filter.clone().into_iter().chain(Filter::between("createdAt", from, to));
    let mut next = ListRequest { filter: filter.reduce(Filter::and), ..request.clone() };
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => {
            let query = words.for_postgres(selection.account);
            let within = with_words(&query, selection);
            let selection = Selection { request: &next, within: &within, ..*selection };
            let found = page(conn, &PG_BY_WORDS, &selection).await?;
            Ok(Some(found).filter(|found| found.next.is_some() || bound.is_none()))
        }
        Conn::Sqlite(_) | Conn::SqliteTx(_) => {
            next.page.per_page = first;
            let found = page(conn, &LIST, &Selection { request: &next, ..*selection }).await?;
            // A link may have been created since the bound was read.
            let is_all = bound.is_none() && found.next.is_none();
            let limit = request.page.limit() as usize;
            let with = found.items.into_iter().filter(|link| words.admits(link)).take(limit).collect();
            let with = Page::cut(with, request.page, position);
            Ok(Some(with).filter(|with| with.next.is_some() || is_all))
        }
    }
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

/// The table of the second attempt, and the query for its index.
fn by_index(conn: &Conn, words: &WordQuery, account: AccountId) -> (&'static Table, String) {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => (&PG_BY_INDEX, words.for_postgres(account)),
        Conn::Sqlite(_) | Conn::SqliteTx(_) => (&SQLITE_BY_INDEX, words.for_sqlite(account)),
    }
}

fn with_words<'a>(query: &'a str, selection: &Selection<'a>) -> Vec<(&'static str, &'a str)> {
    std::iter::once((WORDS, query)).chain(selection.within.iter().copied()).collect()
}
