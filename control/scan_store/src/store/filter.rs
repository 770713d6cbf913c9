//! Filters of lists on the columns of scans: only fixed fragments and placeholders are put together.
//!
//! A scan has what the column or the facets of a text hold; a field that it never has meets no condition.

use kernel::{
    domain::grant::Limit,
    store::{StoreError, conditions::Engine, listing::Selection},
};
use shared::{
    filter::{Expr, Operator, Term, Value},
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

/// Conditions that grow, with the values of their placeholders.
#[derive(Debug)]
pub(super) struct Conditions<'t> {
    pub(super) text: String,
    pub(super) binds: Vec<Bind>,
    engine: Engine,
    account: i32,
    texts: &'t Texts,
    /// Whether another index than that of shapes is to be taken.
    hides_shape: bool,
}

impl<'t> Conditions<'t> {
    /// None yet; filters are met by these texts.
    pub(super) fn new(engine: Engine, account: i32, texts: &'t Texts) -> Self {
        Self { text: String::new(), binds: Vec::new(), engine, account, texts, hides_shape: false }
    }

    pub(super) fn push(&mut self, fragment: &'static str) -> &mut Self {
        self.text.push_str(fragment);
        self
    }

    pub(super) fn bind(&mut self, bind: Bind) -> &mut Self {
        self.binds.push(bind);
        self.text.push('$');
        self.text.push_str(&self.binds.len().to_string());
        self
    }

    /// The account, found by an index. One that must not be taken is hidden: there may be no statistics that say so.
    pub(super) fn account(&mut self, by: &By) -> &mut Self {
        let account = Bind::Whole(i64::from(self.account));
        // Postgres knows how many scans a shape has.
        self.hides_shape = self.engine == Engine::Sqlite && *by != By::AllShapes;
        self.push(if *by == By::Account { "t.account = " } else { "t.account + 0 = " }).bind(account)
    }

    /// The scans with these ids, by the time that each holds; the key tells those of one time apart.
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

    pub(super) fn condition(&mut self, expr: &Expr) -> Result<(), StoreError> {
        match expr {
            Expr::And(branches) => self.join(branches, " AND ", "TRUE"),
            Expr::Or(branches) => self.join(branches, " OR ", "FALSE"),
            Expr::Not(one) => {
                self.push("(");
                self.condition(one)?;
                // NULL does not match, so the negation includes scans without the field.
                self.push(" IS NOT TRUE)");
                Ok(())
            }
            Expr::Term(term) => self.term(term),
        }
    }

    fn join(&mut self, branches: &[Expr], sign: &'static str, none: &'static str) -> Result<(), StoreError> {
        self.push("(");
        for (index, branch) in branches.iter().enumerate() {
            if index > 0 {
                self.push(sign);
            }
            self.condition(branch)?;
        }
        if branches.is_empty() {
            self.push(none);
        }
        self.push(")");
        Ok(())
    }

    fn term(&mut self, term: &Term) -> Result<(), StoreError> {
        let value = term.value.as_str();
        match (term.field.as_str(), term.operator) {
            ("timestamp", operator) => {
                let unfit = || StoreError::Row(format!("scans cannot be filtered so: {term}"));
                let sign = sign(operator).ok_or_else(unfit)?;
                let number = value.parse().map_err(|_| unfit())?;
                self.push("(t.timestamp").push(sign).bind(Bind::Whole(number)).push(")");
            }
            ("type", operator) => {
                self.push(if is_of_type(operator, value) { "TRUE" } else { "FALSE" });
            }
            ("thng", Operator::Equal) => match value.parse::<ThngId>() {
                Ok(id) => drop(self.push("(t.thng = ").bind(Bind::Bytes(ids::pack(&id))).push(")")),
                Err(_) => drop(self.push("FALSE")),
            },
            ("customFields.shortId", Operator::Equal) => {
                self.push("(t.short_id = ").bind(Bind::Text(value.to_owned()));
                self.or_facet(term);
            }
            ("customFields.shortId", Operator::Prefix) => {
                match self.engine {
                    Engine::Postgres => self.push("(starts_with(t.short_id, "),
                    Engine::Sqlite => self.push("(instr(t.short_id, "),
                };
                self.bind(Bind::Text(value.to_owned()));
                self.push(if self.engine == Engine::Postgres { ")" } else { ") = 1" });
                self.or_facet(term);
            }
            (_, Operator::Equal | Operator::Prefix) => self.facet(term),
            // The order of custom fields is that of numbers, and no scan has one.
            (_, Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast) => {
                self.push("FALSE");
            }
        }
        Ok(())
    }

    /// Scans with a text that has a facet, or one that begins so.
    fn facet(&mut self, term: &Term) {
        let texts = self.texts;
        let asked = Asked::of(term).filter(|asked| !texts.is_none(asked));
        let Some(asked) = asked else {
            self.push("FALSE");
            return;
        };
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
                let account = Bind::Whole(i64::from(self.account));
                self.bind(account).push(" AND x.facet ");
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
        if !Asked::of(term).is_some_and(|asked| self.texts.is_none(&asked)) {
            self.push(" OR ");
            self.facet(term);
        }
        self.push(")");
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

/// How SQL writes an operator that it has.
pub(super) const fn sign(operator: Operator) -> Option<&'static str> {
    match operator {
        Operator::Equal => Some(" = "),
        Operator::Prefix => None,
        Operator::Less => Some(" < "),
        Operator::AtMost => Some(" <= "),
        Operator::Greater => Some(" > "),
        Operator::AtLeast => Some(" >= "),
    }
}
