//! Filters of lists on the columns of scans, for every engine: only fixed fragments and placeholders are put together.
//!
//! A scan has what the column or the facets of a text hold; a field that it never has meets no condition.

use kernel::{
    domain::grant::Limit,
    store::{StoreError, conditions::Engine, listing::Selection},
};
use shared::{
    filter::{
        Expr, Operator, Term, Value,
        write::{FilterWriter, sign},
    },
    id::{ActionId, ThngId},
};

use super::{
    look_up::{Asked, Texts},
    plan::By,
    rows::KIND,
};
use crate::domain::ids;

/// A bound value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bind {
    Text(String),
    Whole(i64),
    Bytes(Vec<u8>),
}

/// What the conditions are written for.
#[derive(Debug, Clone, Copy)]
enum Dialect<'t> {
    /// Tables of months, with texts that scans share; these of an account meet filters.
    Tables { engine: Engine, account: i32, texts: &'t Texts },
    /// ClickHouse, where a scan has its texts and facets itself.
    ClickHouse,
}

/// Conditions that grow, with the values of their placeholders.
#[derive(Debug)]
pub(super) struct Conditions<'t> {
    pub(super) text: String,
    /// In the order of the placeholders: `$1` in tables, `{p1:…}` in ClickHouse.
    pub(super) binds: Vec<Bind>,
    dialect: Dialect<'t>,
    /// Whether another index than that of shapes is to be taken.
    hides_shape: bool,
}

impl<'t> Conditions<'t> {
    /// Scans of an account in tables, where these texts meet filters. They are found by an index; one that must not be taken
    /// is hidden: there may be no statistics that say so.
    pub(super) fn in_tables(engine: Engine, account: i32, texts: &'t Texts, by: &By) -> Self {
        let mut all = Self::at(Dialect::Tables { engine, account, texts });
        // Postgres knows how many scans a shape has.
        all.hides_shape = engine == Engine::Sqlite && *by != By::AllShapes;
        let fragment = if *by == By::Account { "t.account = " } else { "t.account + 0 = " };
        all.push(fragment).bind(Bind::Whole(i64::from(account)));
        all
    }

    /// No conditions yet, on scans in ClickHouse.
    pub(super) fn in_clickhouse() -> Self {
        Self::at(Dialect::ClickHouse)
    }

    fn at(dialect: Dialect<'t>) -> Self {
        Self { text: String::new(), binds: Vec::new(), dialect, hides_shape: false }
    }

    pub(super) fn push(&mut self, fragment: &'static str) -> &mut Self {
        self.text.push_str(fragment);
        self
    }

    pub(super) fn bind(&mut self, bind: Bind) -> &mut Self {
        let number = self.binds.len() + 1;
        self.text.push_str(&match (self.dialect, &bind) {
            (Dialect::Tables { .. }, _) => format!("${number}"),
            (Dialect::ClickHouse, Bind::Text(_)) => format!("{{p{number}:String}}"),
            (Dialect::ClickHouse, Bind::Whole(_)) => format!("{{p{number}:Int64}}"),
            (Dialect::ClickHouse, Bind::Bytes(_)) => format!("unhex({{p{number}:String}})"),
        });
        self.binds.push(bind);
        self
    }

    /// The scans in tables with these ids, by the time that each holds; the key tells those of one time apart.
    pub(super) fn ids(&mut self, ids: &[ActionId]) -> &mut Self {
        if ids.is_empty() {
            return self.push("FALSE");
        }
        let (times, keys): (Vec<_>, Vec<_>) = ids.iter().map(ids::split).unzip();
        // One placeholder each: with a list as one parameter Postgres reads the whole index.
        self.push("t.timestamp").within(times.into_iter().map(|at| Bind::Whole(at.0)));
        self.push(" AND t.key").within(keys.into_iter().map(|key| Bind::Bytes(key.to_vec())))
    }

    fn within(&mut self, values: impl Iterator<Item = Bind>) -> &mut Self {
        for (index, value) in values.enumerate() {
            self.push(if index == 0 { " IN (" } else { ", " }).bind(value);
        }
        self.push(")")
    }

    fn column(&mut self, name: &'static str) -> &mut Self {
        match self.dialect {
            Dialect::Tables { .. } => self.push("t.").push(name),
            Dialect::ClickHouse => self.push(name),
        }
    }

    /// What a term asks of facets, unless no text is known to have it.
    fn asked(&self, term: &Term) -> Option<Asked> {
        Asked::of(term).filter(|asked| match self.dialect {
            Dialect::Tables { texts, .. } => !texts.is_none(asked),
            Dialect::ClickHouse => true,
        })
    }

    /// Scans with a facet, or with one that begins so.
    fn facet(&mut self, term: &Term) {
        let Some(asked) = self.asked(term) else {
            self.push(self.constant(false));
            return;
        };
        match self.dialect {
            Dialect::Tables { account, texts, .. } => self.facet_of_texts(asked, account, texts),
            Dialect::ClickHouse => self.facet_of_scan(&asked),
        }
    }

    fn facet_of_scan(&mut self, asked: &Asked) {
        let facets = if asked.is_of_place { "place_facets" } else { "shape_facets" };
        let facet = Bind::Text(asked.facet.clone());
        if asked.end.is_none() {
            self.push("has(").push(facets).push(", ").bind(facet).push(")");
        } else {
            self.push("arrayExists(facet -> startsWith(facet, ").bind(facet);
            self.push("), ").push(facets).push(")");
        }
    }

    fn facet_of_texts(&mut self, asked: Asked, account: i32, texts: &Texts) {
        self.push(match (asked.is_of_place, self.hides_shape) {
            (true, _) => "(t.place IN ",
            (false, true) => "(t.shape + 0 IN ",
            (false, false) => "(t.shape IN ",
        });
        match texts.find(&asked) {
            // Numbers of this store, which are no input.
            Some(ids) => {
                let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
                self.text.push_str(&format!("({}", ids.join(", ")));
            }
            None => {
                self.push("(SELECT x.id FROM scan_facets x WHERE x.account = ");
                self.bind(Bind::Whole(i64::from(account))).push(" AND x.facet ");
                match asked.end {
                    None => {
                        self.push("= ").bind(Bind::Text(asked.facet));
                    }
                    Some(end) => {
                        self.push(">= ").bind(Bind::Text(asked.facet.clone()));
                        self.push(" AND x.facet < ").bind(Bind::Text(end));
                        self.push(" AND substr(x.facet, 1, length(").bind(Bind::Text(asked.facet.clone()));
                        self.push(")) = ").bind(Bind::Text(asked.facet));
                    }
                }
            }
        }
        self.push("))");
    }

    /// The end of a condition on the short id, which is among the facets where it is no text.
    fn or_facet(&mut self, term: &Term) {
        if self.asked(term).is_some() {
            self.push(" OR ");
            self.facet(term);
        }
        self.push(")");
    }
}

impl FilterWriter for Conditions<'_> {
    type Error = StoreError;

    fn fragment(&mut self, fragment: &'static str) {
        self.push(fragment);
    }

    fn constant(&self, holds: bool) -> &'static str {
        match (self.dialect, holds) {
            (Dialect::Tables { .. }, true) => "TRUE",
            (Dialect::Tables { .. }, false) => "FALSE",
            (Dialect::ClickHouse, true) => "1",
            (Dialect::ClickHouse, false) => "0",
        }
    }

    fn negation(&self) -> [&'static str; 2] {
        match self.dialect {
            Dialect::Tables { .. } => ["(", " IS NOT TRUE)"],
            Dialect::ClickHouse => ["(ifNull(", ", 0) = 0)"],
        }
    }

    fn term(&mut self, term: &Term) -> Result<(), StoreError> {
        let value = term.value.as_str();
        match (term.field.as_str(), term.operator) {
            ("timestamp", operator) => {
                let unfit = || StoreError::Row(format!("scans cannot be filtered so: {term}"));
                let sign = sign(operator).ok_or_else(unfit)?;
                let number = value.parse().map_err(|_| unfit())?;
                self.push("(").column("timestamp").push(sign).bind(Bind::Whole(number)).push(")");
            }
            ("type", operator) => {
                self.push(self.constant(is_of_type(operator, value)));
            }
            ("thng", Operator::Equal) => match value.parse::<ThngId>() {
                Ok(id) => {
                    self.push("(").column("thng").push(" = ").bind(Bind::Bytes(ids::pack(&id))).push(")");
                }
                Err(_) => {
                    self.push(self.constant(false));
                }
            },
            ("customFields.shortId", Operator::Equal) => {
                self.push("(").column("short_id").push(" = ").bind(Bind::Text(value.to_owned()));
                self.or_facet(term);
            }
            ("customFields.shortId", Operator::Prefix) => {
                let [before, behind] = match self.dialect {
                    Dialect::Tables { engine: Engine::Postgres, .. } => ["(starts_with(", ")"],
                    Dialect::Tables { engine: Engine::Sqlite, .. } => ["(instr(", ") = 1"],
                    Dialect::ClickHouse => ["(startsWith(", ")"],
                };
                self.push(before)
                    .column("short_id")
                    .push(", ")
                    .bind(Bind::Text(value.to_owned()))
                    .push(behind);
                self.or_facet(term);
            }
            (_, Operator::Equal | Operator::Prefix) => self.facet(term),
            // The order of custom fields is that of numbers, and no scan has one.
            (_, Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast) => {
                self.push(self.constant(false));
            }
        }
        Ok(())
    }
}

/// All conditions of a selection but its ids and its page.
pub(super) fn whole(selection: &Selection<'_>) -> Expr {
    let mut all: Vec<Expr> = selection.within.iter().map(|(field, value)| equal(field, value)).collect();
    let request = selection.request;
    all.extend(request.project.as_ref().map(|project| equal("scopes.projects", project.as_str())));
    match selection.limit {
        Limit::Account => {}
        Limit::Projects(projects) => {
            let of = |project: &_| equal("scopes.projects", ToString::to_string(project).as_str());
            all.push(Expr::Or(projects.iter().map(of).collect()));
        }
        Limit::User(user) => all.push(equal("scopes.users", user)),
        Limit::Itself(id) => all.push(equal("thng", id)),
    }
    all.extend(request.filter.as_ref().map(|filter| filter.expr().clone()));
    Expr::And(all)
}

fn equal(field: &str, value: &str) -> Expr {
    Expr::Term(Term { field: field.to_owned(), operator: Operator::Equal, value: Value::new(value) })
}

pub(super) fn is_of_type(operator: Operator, value: &str) -> bool {
    match operator {
        Operator::Equal => KIND == value,
        Operator::Prefix => KIND.starts_with(value),
        Operator::Less => KIND < value,
        Operator::AtMost => KIND <= value,
        Operator::Greater => KIND > value,
        Operator::AtLeast => KIND >= value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(field: &str, operator: Operator, value: &str) -> Expr {
        Expr::Term(Term { field: field.to_owned(), operator, value: Value::new(value) })
    }

    #[test]
    fn values_are_bound_on_every_engine() {
        let expr = Expr::And(vec![
            term("customFields.shortId", Operator::Equal, "a' OR 1"),
            Expr::Not(Box::new(term("context.city", Operator::Prefix, "B"))),
            Expr::Or(Vec::new()),
        ]);
        let mut conditions = Conditions::in_clickhouse();
        conditions.condition(&expr).unwrap();
        assert_eq!(
            conditions.text,
            "((short_id = {p1:String} OR has(shape_facets, {p2:String})) AND \
             (ifNull(arrayExists(facet -> startsWith(facet, {p3:String}), place_facets), 0) = 0) AND (0))"
        );
        assert_eq!(conditions.binds.first(), Some(&Bind::Text("a' OR 1".to_owned())));
        assert_eq!(conditions.binds.len(), 3);

        let texts = Texts::default();
        let mut conditions = Conditions::in_tables(Engine::Sqlite, 7, &texts, &By::Few);
        conditions.push(" AND ").condition(&expr).unwrap();
        assert_eq!(
            conditions.text,
            "t.account + 0 = $1 AND ((t.short_id = $2 OR (t.shape + 0 IN (SELECT x.id FROM scan_facets x \
             WHERE x.account = $3 AND x.facet = $4))) AND ((t.place IN (SELECT x.id FROM scan_facets x \
             WHERE x.account = $5 AND x.facet >= $6 AND x.facet < $7 AND substr(x.facet, 1, length($8)) = $9)) \
             IS NOT TRUE) AND (FALSE))"
        );
        assert_eq!(conditions.binds.first(), Some(&Bind::Whole(7)));
        assert_eq!(conditions.binds.get(1), Some(&Bind::Text("a' OR 1".to_owned())));
    }

    #[test]
    fn a_time_that_is_no_number_is_an_error() {
        let mut conditions = Conditions::in_clickhouse();
        assert!(conditions.condition(&term("timestamp", Operator::Prefix, "1")).is_err());
        assert!(conditions.condition(&term("timestamp", Operator::Less, "1 OR 1")).is_err());
    }
}
