//! Filters of lists as conditions on the columns of `scans`: only fixed fragments and names of parameters are put together.

use kernel::store::StoreError;
use shared::{
    filter::{Expr, Operator, Term},
    id::ThngId,
};

use super::super::{
    filter::{is_of_type, sign},
    look_up::Asked,
};
use super::params::{Params, hex};
use crate::domain::ids;

/// Conditions that grow, with the values of their parameters.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) text: String,
    pub(super) params: Params,
}

impl Conditions {
    /// Adds a filter.
    ///
    /// # Errors
    /// Scans cannot be filtered so.
    pub(super) fn condition(&mut self, expr: &Expr) -> Result<(), StoreError> {
        match expr {
            Expr::And(branches) => self.join(branches, " AND ", "1"),
            Expr::Or(branches) => self.join(branches, " OR ", "0"),
            Expr::Not(one) => {
                self.push("(ifNull(");
                self.condition(one)?;
                // NULL does not match, so the negation includes scans without the field.
                self.push(", 0) = 0)");
                Ok(())
            }
            Expr::Term(term) => self.term(term),
        }
    }

    pub(super) fn push(&mut self, fragment: &'static str) -> &mut Self {
        self.text.push_str(fragment);
        self
    }

    fn bind(&mut self, value: &str, kind: &'static str) -> &mut Self {
        let name = self.params.add(value);
        self.text.push_str(&format!("{{{name}:{kind}}}"));
        self
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
                let number: i64 = value.parse().map_err(|_| unfit())?;
                self.push("(timestamp").push(sign).bind(&number.to_string(), "Int64").push(")");
            }
            ("type", operator) => {
                self.push(if is_of_type(operator, value) { "1" } else { "0" });
            }
            ("thng", Operator::Equal) => match value.parse::<ThngId>() {
                Ok(id) => {
                    self.push("(thng = unhex(").bind(&hex(&ids::pack(&id)), "String").push("))");
                }
                Err(_) => {
                    self.push("0");
                }
            },
            ("customFields.shortId", Operator::Equal) => {
                self.push("(short_id = ").bind(value, "String").push(" OR ");
                self.facet(term);
                self.push(")");
            }
            ("customFields.shortId", Operator::Prefix) => {
                self.push("(startsWith(short_id, ").bind(value, "String").push(") OR ");
                self.facet(term);
                self.push(")");
            }
            (_, Operator::Equal | Operator::Prefix) => self.facet(term),
            // The order of custom fields is that of numbers, and no scan has one.
            (_, Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast) => {
                self.push("0");
            }
        }
        Ok(())
    }

    /// Scans with a facet, or with one that begins so.
    fn facet(&mut self, term: &Term) {
        let Some(asked) = Asked::of(term) else {
            self.push("0");
            return;
        };
        let facets = if asked.is_of_place { "place_facets" } else { "shape_facets" };
        if asked.end.is_none() {
            self.push("has(").push(facets).push(", ").bind(&asked.facet, "String").push(")");
        } else {
            self.push("arrayExists(facet -> startsWith(facet, ").bind(&asked.facet, "String");
            self.push("), ").push(facets).push(")");
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::filter::Value;

    use super::*;

    fn term(field: &str, operator: Operator, value: &str) -> Expr {
        Expr::Term(Term { field: field.to_owned(), operator, value: Value::new(value) })
    }

    #[test]
    fn values_are_parameters() {
        let expr = Expr::And(vec![
            term("customFields.shortId", Operator::Equal, "a' OR 1"),
            Expr::Not(Box::new(term("context.city", Operator::Prefix, "B"))),
            Expr::Or(Vec::new()),
        ]);
        let mut conditions = Conditions::default();
        conditions.condition(&expr).unwrap();
        assert_eq!(
            conditions.text,
            "((short_id = {p1:String} OR has(shape_facets, {p2:String})) AND \
             (ifNull(arrayExists(facet -> startsWith(facet, {p3:String}), place_facets), 0) = 0) AND (0))"
        );
        assert!(
            conditions
                .params
                .query()
                .starts_with("&param_p1=a%27%20OR%201&param_p2=customFields%2EshortId%3D")
        );
    }

    #[test]
    fn a_time_that_is_no_number_is_an_error() {
        let mut conditions = Conditions::default();
        assert!(conditions.condition(&term("timestamp", Operator::Prefix, "1")).is_err());
        assert!(conditions.condition(&term("timestamp", Operator::Less, "1 OR 1")).is_err());
    }
}
