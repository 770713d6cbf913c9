//! Pages of scans, month by month.

use std::time::{Duration, Instant};

use kernel::{
    domain::{action::Action, page::PageRequest},
    on_db,
    store::{Conn, STATEMENT_TIMEOUT, StoreError, conditions::Engine, listing::Selection, watch::Watch},
};
use shared::{
    filter::write::FilterWriter,
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use sqlx::{AssertSqlSafe, Row as _};

use super::{
    filter::{Bind, Conditions, whole},
    look_up::Texts,
    months::{self, is_gone, of_month},
    plan::{self, By},
    rows::{self, Row},
    sql_scans::SqlScans,
};
use crate::domain::month::Month;

macro_rules! bound {
    ($query:expr, $binds:expr) => {
        $binds.into_iter().fold($query, |query, bind| match bind {
            Bind::Text(text) => query.bind(text),
            Bind::Whole(number) => query.bind(number),
            Bind::Bytes(bytes) => query.bind(bytes),
        })
    };
}

const LIST: &str = "SELECT t.seq, t.created_at, t.timestamp, t.shape, t.agent, t.place, t.referer, t.language, t.rule, \
    t.key, t.thng, t.ip, t.short_id, t.entry, t.redirect_url FROM scans t";
const SELECT: &str = "SELECT";
const FIRST_SINCE: &str = "SELECT MIN(created_at) FROM scans WHERE account = $1 AND created_at >= $2";

impl SqlScans {
    pub(super) async fn list(&self, selection: &Selection<'_>) -> Result<Vec<Action>, StoreError> {
        let Some(account) = self.find_account(selection.account).await? else { return Ok(Vec::new()) };
        let (page, ends) = (selection.request.page, Instant::now() + STATEMENT_TIMEOUT);
        let mut conn = self.db.read().await?;
        let mut months = months::list(&mut conn).await?;
        months.retain(|month| may_hold(*month, page));
        if !page.is_ascending() {
            months.reverse();
        }
        let (most, mut found) = (page.limit() as usize, Vec::new());
        for month in months {
            match list_month(&mut conn, month, account, selection, most - found.len(), ends).await {
                Ok(actions) => found.extend(actions),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    /// How the database goes about a list in each month, for tests: no lines where it is not asked.
    ///
    /// # Errors
    /// As [`crate::ScanStore::page`].
    pub async fn explain(&self, selection: &Selection<'_>) -> Result<Vec<Vec<String>>, StoreError> {
        let Some(account) = self.find_account(selection.account).await? else { return Ok(Vec::new()) };
        let mut conn = self.db.read().await?;
        let (prefix, column) = match engine(&conn) {
            Engine::Postgres => ("EXPLAIN ", 0),
            Engine::Sqlite => ("EXPLAIN QUERY PLAN ", 3),
        };
        let mut plans = Vec::new();
        for month in months::list(&mut conn).await? {
            let most = selection.request.page.limit() as usize;
            let Some(sql) = statement(&mut conn, month, account, selection, most).await? else {
                plans.push(Vec::new());
                continue;
            };
            let text = AssertSqlSafe(format!("{prefix}{}", of_month(&sql.text, month)));
            plans.push(on_db!(&mut conn, |c| {
                let rows = bound!(sqlx::query(text).persistent(false), sql.binds).fetch_all(c).await?;
                rows.iter().map(|row| row.try_get(column)).collect::<Result<Vec<String>, sqlx::Error>>()
            })?);
        }
        Ok(plans)
    }

    pub(super) async fn first_since(
        &self,
        account: AccountId,
        since: UnixMillis,
    ) -> Result<Option<UnixMillis>, StoreError> {
        let Some(account) = self.find_account(account).await? else { return Ok(None) };
        let mut conn = self.db.read().await?;
        for month in months::list(&mut conn).await?.into_iter().filter(|month| month.end() > since) {
            let sql = AssertSqlSafe(of_month(FIRST_SINCE, month));
            let found: Result<Option<i64>, sqlx::Error> =
                on_db!(&mut conn, |c| sqlx::query_scalar(sql).bind(account).bind(since.0).fetch_one(c).await);
            match found.map_err(StoreError::from) {
                Ok(None) => {}
                Ok(Some(at)) => return Ok(Some(UnixMillis(at))),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Whether a page may begin in a month or after it, in the order of the list.
pub(super) fn may_hold(month: Month, page: PageRequest) -> bool {
    page.after.is_none_or(|after| {
        if page.is_ascending() { month.end() > after.at } else { month.start() <= after.at }
    })
}

async fn list_month(
    conn: &mut Conn,
    month: Month,
    account: i32,
    selection: &Selection<'_>,
    most: usize,
    ends: Instant,
) -> Result<Vec<Action>, StoreError> {
    let left = || ends.checked_duration_since(Instant::now()).ok_or(StoreError::Timeout);
    let watch = Watch::begin(conn, left()?).await?;
    let Some(sql) = statement(conn, month, account, selection, most).await? else { return Ok(Vec::new()) };
    drop(watch);
    read(conn, month, &sql, left()?).await
}

/// The statement of a list in a month; `None` when it has no scan there.
async fn statement(
    conn: &mut Conn,
    month: Month,
    account: i32,
    selection: &Selection<'_>,
    most: usize,
) -> Result<Option<Statement>, StoreError> {
    let expr = whole(selection);
    let texts = Texts::look_up(conn, month, account, &expr).await?;
    let Some(by) = plan::choose(conn, month, selection, (&expr, &texts)).await? else { return Ok(None) };
    let (request, page) = (selection.request, selection.request.page);
    let mut sql = Conditions::in_tables(engine(conn), account, &texts, &by);
    if let Some(ids) = &request.ids {
        let ids: Vec<ActionId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        sql.push(" AND ").ids(&ids);
    }
    let left = match &by {
        By::Shapes(_) => plan::without_shapes(&expr, &texts),
        By::Account | By::Few | By::AllShapes => expr,
    };
    sql.push(" AND ").condition(&left)?;
    if let Some(after) = page.after {
        // The first one is what the index holds.
        let [first, both] = if page.is_ascending() { [" >= ", " > "] } else { [" <= ", " < "] };
        sql.push(" AND t.created_at").push(first).bind(Bind::Whole(after.at.0));
        sql.push(" AND (t.created_at, t.seq)").push(both).push("(").bind(Bind::Whole(after.at.0));
        sql.push(", ").bind(Bind::Whole(after.seq)).push(")");
    }
    let direction = if page.is_ascending() { "" } else { " DESC" };
    // A literal number, which is no input: Postgres then knows how few rows it has to find.
    let end = format!(" ORDER BY created_at{direction}, seq{direction} LIMIT {most}");
    let (conditions, binds) = (sql.text, sql.binds);
    let text = match by {
        By::Shapes(shapes) => {
            let one = |shape: &i32| {
                format!("{SELECT} * FROM ({LIST} WHERE t.shape = {shape} AND {conditions}{end}) AS s{shape}")
            };
            shapes.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ") + &end
        }
        By::Account | By::Few | By::AllShapes => format!("{LIST} WHERE {conditions}{end}"),
    };
    Ok(Some(Statement { text, binds }))
}

/// A statement of scans, and the values of its placeholders.
#[derive(Debug)]
pub(super) struct Statement {
    text: String,
    binds: Vec<Bind>,
}

impl Statement {
    /// The scans that meet conditions.
    pub(super) fn of(conditions: Conditions<'_>) -> Self {
        Self { text: format!("{LIST} WHERE {}", conditions.text), binds: conditions.binds }
    }
}

/// The scans of a statement in a month.
pub(super) async fn read(
    conn: &mut Conn,
    month: Month,
    sql: &Statement,
    limit: Duration,
) -> Result<Vec<Action>, StoreError> {
    let rows = fetch(conn, month, sql, limit).await?;
    match rows::actions(conn, month, rows).await {
        // Texts are gone where retention removed scans meanwhile: then these are gone, too.
        Err(StoreError::Row(_)) => {
            let rows = fetch(conn, month, sql, limit).await?;
            rows::actions(conn, month, rows).await
        }
        actions => actions,
    }
}

async fn fetch(
    conn: &mut Conn,
    month: Month,
    sql: &Statement,
    limit: Duration,
) -> Result<Vec<Row>, StoreError> {
    let _watch = Watch::begin(conn, limit).await?;
    let text = of_month(&sql.text, month);
    // Frequent and rare values differ too much for one plan.
    Ok(on_db!(conn, |c| {
        bound!(sqlx::query_as(AssertSqlSafe(text)).persistent(false), sql.binds.clone()).fetch_all(c).await
    })?)
}

pub(super) const fn engine(conn: &Conn) -> Engine {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => Engine::Postgres,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Engine::Sqlite,
    }
}
