//! The texts that a filter names, looked up before any scan is read.

use std::collections::{BTreeSet, HashMap, HashSet};

use kernel::{
    domain::facets,
    on_db,
    store::{Conn, StoreError},
};
use shared::filter::{Expr, Operator, Term};
use sqlx::AssertSqlSafe;

use super::months::of_month;
use crate::domain::month::Month;

const EQUAL: &str =
    "SELECT x.id FROM scan_facets x WHERE x.account = $1 AND x.facet = $2 ORDER BY x.id LIMIT $3";
// All facets of a field are between two signs.
const PREFIX: &str = "SELECT DISTINCT x.id FROM scan_facets x WHERE x.account = $1 AND x.facet >= $2 AND x.facet < $3 \
    AND substr(x.facet, 1, length($2)) = $2 ORDER BY x.id LIMIT $4";

/// Most texts that a statement names one by one.
const MOST_TEXTS: usize = 1_000;

/// What a term asks of facets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// Of which texts: those of places, or those of shapes.
    pub(super) is_of_place: bool,
    /// The facet, or what it begins with.
    pub(super) facet: String,
    /// Above all facets of the field that begin so; none where the facet is whole.
    pub(super) end: Option<String>,
}

impl Asked {
    /// What a term asks; `None` where a column answers it alone.
    pub(super) fn of(term: &Term) -> Option<Self> {
        let (field, value) = (term.field.as_str(), term.value.as_str());
        let is_of_place = field.starts_with("context.");
        match (field, term.operator) {
            ("timestamp" | "type", _) | ("thng", Operator::Equal) => None,
            (_, Operator::Equal) => Some(Self { is_of_place, facet: facets::facet(field, value), end: None }),
            (_, Operator::Prefix) => {
                let (facet, end) = (format!("{field}={value}"), format!("{field}>"));
                Some(Self { is_of_place, facet, end: Some(end) })
            }
            // The order of custom fields is that of numbers, and no scan has one.
            (_, Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast) => None,
        }
    }
}

/// The texts of an account in a month that a filter asks for.
#[derive(Debug, Default)]
pub(super) struct Texts(HashMap<Asked, Option<BTreeSet<i32>>>);

impl Texts {
    /// Looks up whatever a filter asks for.
    pub(super) async fn look_up(
        conn: &mut Conn,
        month: Month,
        account: i32,
        expr: &Expr,
    ) -> Result<Self, StoreError> {
        let mut all = HashSet::new();
        collect(expr, &mut all);
        let mut found = HashMap::new();
        for asked in all {
            let ids = fetch(conn, month, account, &asked).await?;
            found.insert(asked, (ids.len() <= MOST_TEXTS).then(|| ids.into_iter().collect()));
        }
        Ok(Self(found))
    }

    /// The texts that meet a term; `None` when there are too many to name.
    pub(super) fn find(&self, asked: &Asked) -> Option<&BTreeSet<i32>> {
        self.0.get(asked)?.as_ref()
    }

    /// Whether texts are known to be none.
    pub(super) fn is_none(&self, asked: &Asked) -> bool {
        self.find(asked).is_some_and(BTreeSet::is_empty)
    }
}

fn collect(expr: &Expr, all: &mut HashSet<Asked>) {
    match expr {
        Expr::And(branches) | Expr::Or(branches) => branches.iter().for_each(|branch| collect(branch, all)),
        Expr::Not(one) => collect(one, all),
        Expr::Term(term) => all.extend(Asked::of(term)),
    }
}

async fn fetch(conn: &mut Conn, month: Month, account: i32, asked: &Asked) -> Result<Vec<i32>, StoreError> {
    let most = i64::try_from(MOST_TEXTS + 1).unwrap_or(i64::MAX);
    let sql = AssertSqlSafe(of_month(if asked.end.is_none() { EQUAL } else { PREFIX }, month));
    Ok(on_db!(conn, |c| {
        let query = sqlx::query_scalar(sql).bind(account).bind(&asked.facet);
        match &asked.end {
            None => query.bind(most).fetch_all(c).await,
            Some(end) => query.bind(end).bind(most).fetch_all(c).await,
        }
    })?)
}
