//! Pages of scans, month by month.

use std::time::Instant;

use kernel::{
    domain::{action::Action, page::PageRequest},
    on_db,
    store::{Conn, STATEMENT_TIMEOUT, StoreError, conditions::Engine, listing::Selection, watch::Watch},
};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::AssertSqlSafe;

use super::{
    filter::{Bind, Conditions},
    months::{self, is_gone, of_month},
    rows::{self, Row},
    sql_scans::SqlScans,
};
use crate::domain::month::Month;

const LIST: &str = "SELECT t.seq, t.created_at, t.timestamp, t.shape, t.agent, t.place, t.referer, t.language, t.rule, \
    t.key, t.thng, t.ip, t.short_id, t.entry, t.redirect_url FROM scans t";
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
fn may_hold(month: Month, page: PageRequest) -> bool {
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
    let left = ends.checked_duration_since(Instant::now()).ok_or(StoreError::Timeout)?;
    let sql = statement(engine(conn), account, selection, most)?;
    let rows = fetch(conn, month, sql, left).await?;
    rows::actions(conn, month, rows).await
}

fn statement(
    engine: Engine,
    account: i32,
    selection: &Selection<'_>,
    most: usize,
) -> Result<Conditions, StoreError> {
    let page = selection.request.page;
    let mut sql = Conditions::new(engine, account);
    sql.select(selection)?;
    if let Some(after) = page.after {
        // The first one is what the index holds.
        let [first, both] = if page.is_ascending() { [" >= ", " > "] } else { [" <= ", " < "] };
        sql.push(" AND t.created_at").push(first).bind(Bind::Whole(after.at.0));
        sql.push(" AND (t.created_at, t.seq)").push(both).push("(").bind(Bind::Whole(after.at.0));
        sql.push(", ").bind(Bind::Whole(after.seq)).push(")");
    }
    let order = if page.is_ascending() {
        " ORDER BY t.created_at, t.seq LIMIT "
    } else {
        " ORDER BY t.created_at DESC, t.seq DESC LIMIT "
    };
    sql.push(order);
    // A literal number, which is no input: Postgres then knows how few rows it has to find.
    sql.text.push_str(&most.to_string());
    Ok(sql)
}

/// The rows of a month that meet conditions.
pub(super) async fn fetch(
    conn: &mut Conn,
    month: Month,
    sql: Conditions,
    limit: std::time::Duration,
) -> Result<Vec<Row>, StoreError> {
    let _watch = Watch::begin(conn, limit).await?;
    let text = format!("{} WHERE {}", of_month(LIST, month), of_month(&sql.text, month));
    // Frequent and rare values differ too much for one plan.
    Ok(on_db!(conn, |c| {
        let query = sqlx::query_as(AssertSqlSafe(text)).persistent(false);
        let query = sql.binds.into_iter().fold(query, |query, bind| match bind {
            Bind::Text(text) => query.bind(text),
            Bind::Whole(number) => query.bind(number),
            Bind::Bytes(bytes) => query.bind(bytes),
        });
        query.fetch_all(c).await
    })?)
}

pub(super) const fn engine(conn: &Conn) -> Engine {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => Engine::Postgres,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Engine::Sqlite,
    }
}
