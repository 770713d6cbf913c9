//! Filters of lists on the columns of scans: only fixed fragments and placeholders are put together.
//!
//! A scan has what the column or the facets of a text hold; a field that it never has meets no condition.

use kernel::{
    domain::{facets, grant::Limit},
    store::{StoreError, conditions::Engine, listing::Selection},
};
use shared::{
    filter::{Expr, Operator, Term, Value},
    id::{ActionId, ThngId},
};

use super::rows::KIND;
use crate::domain::{columns::Kind, ids};

/// A bound value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bind {
    Text(String),
    Whole(i64),
    Bytes(Vec<u8>),
}

/// Conditions that grow, with the values of their placeholders.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    pub(super) text: String,
    pub(super) binds: Vec<Bind>,
    engine: Engine,
    account: i32,
}

impl Conditions {
    /// None but the account, which follows as the first condition.
    pub(super) fn new(engine: Engine, account: i32) -> Self {
        Self { text: String::new(), binds: Vec::new(), engine, account }
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

    /// The scans of a selection.
    pub(super) fn select(&mut self, selection: &Selection<'_>) -> Result<(), StoreError> {
        let request = selection.request;
        let is_few = request.ids.is_some()
            || selection.within.iter().any(|(field, _)| *field == "thng")
            || matches!(selection.limit, Limit::Itself(_))
            || request.filter.as_ref().is_some_and(|filter| names_thng(filter.expr()));
        self.account(is_few);
        if let Some(ids) = &request.ids {
            let ids: Vec<ActionId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
            self.push(" AND ").ids(&ids);
        }
        for (field, value) in selection.within {
            self.and(&equal(field, value))?;
        }
        if let Some(project) = &request.project {
            self.and(&equal("scopes.projects", project.as_str()))?;
        }
        match selection.limit {
            Limit::Account => {}
            Limit::Projects(projects) => {
                let of = |project: &_| equal("scopes.projects", ToString::to_string(project).as_str());
                self.and(&Expr::Or(projects.iter().map(of).collect()))?;
            }
            Limit::User(user) => self.and(&equal("scopes.users", user))?,
            Limit::Itself(id) => self.and(&equal("thng", id))?,
        }
        if let Some(filter) = &request.filter {
            self.and(filter.expr())?;
        }
        Ok(())
    }

    /// The account. Where few rows are named otherwise, its index must not be taken: there may be no statistics that say
    /// so.
    pub(super) fn account(&mut self, is_few: bool) {
        let account = Bind::Whole(i64::from(self.account));
        self.push(if is_few { "t.account + 0 = " } else { "t.account = " }).bind(account);
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

    fn and(&mut self, expr: &Expr) -> Result<(), StoreError> {
        self.push(" AND ");
        self.condition(expr)
    }

    fn condition(&mut self, expr: &Expr) -> Result<(), StoreError> {
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
                self.push("(t.short_id = ").bind(Bind::Text(value.to_owned())).push(" OR ");
                self.facet(term);
                self.push(")");
            }
            ("customFields.shortId", Operator::Prefix) => {
                match self.engine {
                    Engine::Postgres => self.push("(starts_with(t.short_id, "),
                    Engine::Sqlite => self.push("(instr(t.short_id, "),
                };
                self.bind(Bind::Text(value.to_owned()));
                self.push(if self.engine == Engine::Postgres { ") OR " } else { ") = 1 OR " });
                self.facet(term);
                self.push(")");
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
        let (column, kind) = if term.field.starts_with("context.") {
            ("(t.place IN (SELECT x.id FROM scan_texts x WHERE x.account = ", Kind::Place)
        } else {
            ("(t.shape IN (SELECT x.id FROM scan_texts x WHERE x.account = ", Kind::Shape)
        };
        let account = Bind::Whole(i64::from(self.account));
        self.push(column).bind(account).push(" AND x.kind = ").bind(Bind::Whole(kind.number().into()));
        let value = term.value.as_str();
        let (facet, [before, after]) = match (term.operator, self.engine) {
            (Operator::Equal, Engine::Postgres) => {
                (facets::facet(&term.field, value), [" AND jsonb_exists(x.facets, ", ")"])
            }
            (Operator::Equal, Engine::Sqlite) => (
                facets::facet(&term.field, value),
                [" AND EXISTS (SELECT 1 FROM json_each(x.facets) f WHERE f.value = ", ")"],
            ),
            (_, Engine::Postgres) => (
                format!("{}={value}", term.field),
                [
                    " AND EXISTS (SELECT 1 FROM jsonb_array_elements_text(x.facets) f (value) \
                     WHERE starts_with(f.value, ",
                    "))",
                ],
            ),
            (_, Engine::Sqlite) => (
                format!("{}={value}", term.field),
                [" AND EXISTS (SELECT 1 FROM json_each(x.facets) f WHERE instr(f.value, ", ") = 1)"],
            ),
        };
        self.push(before).bind(Bind::Text(facet)).push(after).push("))");
    }
}

fn equal(field: &str, value: &str) -> Expr {
    Expr::Term(Term { field: field.to_owned(), operator: Operator::Equal, value: Value::new(value) })
}

/// Whether every scan that meets a filter is about one Thng that it names.
fn names_thng(expr: &Expr) -> bool {
    match expr {
        Expr::And(branches) => branches.iter().any(names_thng),
        Expr::Term(term) => term.field == "thng" && term.operator == Operator::Equal,
        Expr::Or(_) | Expr::Not(_) => false,
    }
}

fn is_of_type(operator: Operator, value: &str) -> bool {
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
const fn sign(operator: Operator) -> Option<&'static str> {
    match operator {
        Operator::Equal => Some(" = "),
        Operator::Prefix => None,
        Operator::Less => Some(" < "),
        Operator::AtMost => Some(" <= "),
        Operator::Greater => Some(" > "),
        Operator::AtLeast => Some(" >= "),
    }
}
