//! By which index the scans of a list are found in a month.
//!
//! Neither database can tell: SQLite has no statistics, and Postgres none of a month that has just begun. So what a filter
//! names is looked at first, by indexes and as far as a few thousand entries. Where many scans meet it, the list goes
//! through the account in its order and ends with the page. Places have no index: where a month has scans in a city, but
//! few, the list goes through the account.

use std::collections::BTreeSet;

use kernel::{
    on_db,
    store::{Conn, Raw, StoreError, dialect, listing::Selection},
};
use shared::filter::{Expr, Operator, Term};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    filter::is_of_type,
    look_up::{Asked, Texts},
    months::of_month,
};
use crate::domain::month::Month;

const IN_TIME: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM scans t WHERE t.timestamp >= $1 AND t.timestamp <= $2 \
    LIMIT $3) AS found";

const PG_OF_SHAPES: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM scans t WHERE t.shape = ANY($1) LIMIT $2) AS found";
const SQLITE_OF_SHAPES: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM scans t \
    WHERE t.shape IN (SELECT value FROM json_each($1)) LIMIT $2) AS found";

/// Scans that are read as a whole and sorted: some 20 ms.
const FEW: i64 = 20_000;

/// Shapes each of which is read up to the length of a page.
const FEW_SHAPES: usize = 50;

/// How the scans of a month are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// In their order, by the account, or by the account and a link.
    Account,
    /// By ids, by a Thng, or by their time, which are few.
    Few,
    /// By each of some shapes, in their order.
    Shapes(BTreeSet<i32>),
    /// By many shapes that have few scans.
    AllShapes,
}

/// How the scans of a list are found; `None` when a month has none.
pub(super) async fn choose(
    conn: &mut Conn,
    month: Month,
    selection: &Selection<'_>,
    (expr, texts): (&Expr, &Texts),
) -> Result<Option<By>, StoreError> {
    if !may_meet(expr, texts) {
        return Ok(None);
    }
    if selection.request.ids.is_some() || names(expr, &|term| term.field == "thng") {
        return Ok(Some(By::Few));
    }
    if let Some((from, to)) = time(expr) {
        let sql = AssertSqlSafe(of_month(IN_TIME, month));
        let count: i64 =
            on_db!(conn, |c| sqlx::query_scalar(sql).bind(from).bind(to).bind(FEW + 1).fetch_one(c).await)?;
        match count {
            0 => return Ok(None),
            1..=FEW => return Ok(Some(By::Few)),
            _ => {}
        }
    }
    let is_of_link = |term: &Term| {
        term.field == "customFields.shortId" && Asked::of(term).is_some_and(|asked| texts.is_none(&asked))
    };
    let shapes = shapes(expr, texts);
    Ok(match shapes {
        Some(shapes) if shapes.is_empty() => None,
        _ if names(expr, &is_of_link) => Some(By::Account),
        Some(shapes) if shapes.len() <= FEW_SHAPES => Some(By::Shapes(shapes)),
        Some(shapes) if count_of_shapes(conn, month, &shapes).await? <= FEW => Some(By::AllShapes),
        Some(_) | None => Some(By::Account),
    })
}

async fn count_of_shapes(conn: &mut Conn, month: Month, shapes: &BTreeSet<i32>) -> Result<i64, StoreError> {
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_OF_SHAPES, SQLITE_OF_SHAPES), month));
    let shapes: Vec<i32> = shapes.iter().copied().collect();
    Ok(match conn.raw() {
        Raw::Pg(c) => sqlx::query_scalar(sql).bind(shapes).bind(FEW + 1).fetch_one(c).await?,
        Raw::Sqlite(c) => sqlx::query_scalar(sql).bind(Json(shapes)).bind(FEW + 1).fetch_one(c).await?,
    })
}

/// Whether a scan of the month may meet a filter, as far as texts tell.
fn may_meet(expr: &Expr, texts: &Texts) -> bool {
    match expr {
        Expr::And(branches) => branches.iter().all(|branch| may_meet(branch, texts)),
        Expr::Or(branches) => branches.iter().any(|branch| may_meet(branch, texts)),
        Expr::Not(_) => true,
        Expr::Term(term) => match (term.field.as_str(), term.operator) {
            ("type", operator) => is_of_type(operator, term.value.as_str()),
            ("customFields.shortId", _) => true,
            _ => Asked::of(term).is_none_or(|asked| !texts.is_none(&asked)),
        },
    }
}

/// Whether every scan that meets a filter meets such an equation.
fn names(expr: &Expr, is_such: &impl Fn(&Term) -> bool) -> bool {
    match expr {
        Expr::And(branches) => branches.iter().any(|branch| names(branch, is_such)),
        Expr::Term(term) => term.operator == Operator::Equal && is_such(term),
        Expr::Or(_) | Expr::Not(_) => false,
    }
}

/// The shapes that every scan that meets a filter has one of; `None` when they are not known.
fn shapes(expr: &Expr, texts: &Texts) -> Option<BTreeSet<i32>> {
    match expr {
        Expr::And(branches) => {
            let sets = branches.iter().filter_map(|branch| shapes(branch, texts));
            sets.reduce(|one, other| one.intersection(&other).copied().collect())
        }
        Expr::Or(branches) => {
            let sets: Option<Vec<BTreeSet<i32>>> =
                branches.iter().map(|branch| shapes(branch, texts)).collect();
            sets.map(|sets| sets.into_iter().flatten().collect())
        }
        Expr::Not(_) => None,
        Expr::Term(term) if term.field == "customFields.shortId" => None,
        Expr::Term(term) => {
            let asked = Asked::of(term).filter(|asked| !asked.is_of_place)?;
            texts.find(&asked).cloned()
        }
    }
}

/// A filter without what the choice of its shapes implies: several named shapes would have no order by an index.
pub(super) fn without_shapes(expr: &Expr, texts: &Texts) -> Expr {
    match expr {
        Expr::And(branches) => {
            Expr::And(branches.iter().map(|branch| without_shapes(branch, texts)).collect())
        }
        other if shapes(other, texts).is_some() => Expr::And(Vec::new()),
        other => other.clone(),
    }
}

/// The time of every scan that meets a filter, if it has a limit: the first and the last millisecond.
fn time(expr: &Expr) -> Option<(i64, i64)> {
    match expr {
        Expr::And(branches) => {
            let ranges = branches.iter().filter_map(time);
            ranges.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))
        }
        Expr::Term(term) if term.field == "timestamp" => {
            let at: i64 = term.value.as_str().parse().ok()?;
            match term.operator {
                Operator::Equal => Some((at, at)),
                Operator::Less => Some((i64::MIN, at.saturating_sub(1))),
                Operator::AtMost => Some((i64::MIN, at)),
                Operator::Greater => Some((at.saturating_add(1), i64::MAX)),
                Operator::AtLeast => Some((at, i64::MAX)),
                Operator::Prefix => None,
            }
        }
        Expr::Term(_) | Expr::Or(_) | Expr::Not(_) => None,
    }
}
