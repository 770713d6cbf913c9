//! Compiles a filter to SQL: only fixed fragments and placeholders are concatenated, every value is bound.

use shared::{
    filter::{
        Expr, Operator, Term, Value,
        write::{FilterWriter, sign},
    },
    gtin,
};

use super::{StoreError, listing::Table, texts::Texts};
use crate::domain::facets;

/// The engine that a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Postgres.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// A bound value.
#[derive(Debug, Clone)]
pub enum Bind {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A list of texts.
    Texts(Texts),
}

/// A statement that grows.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The engine that it is written for.
    pub engine: Engine,
    /// Its text so far.
    pub text: String,
    /// Values of its placeholders, in their order.
    pub binds: Vec<Bind>,
}

/// Where a field of a table is found; fields that have no entry are facets.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// A column of texts.
    Text(&'static str),
    /// A column of whole numbers.
    Whole(&'static str),
    /// A condition on rows with the value, which replaces `{}`.
    #[allow(dead_code, reason = "for tables whose fields stand in others")]
    Clause {
        /// For Postgres.
        pg: &'static str,
        /// For SQLite.
        sqlite: &'static str,
    },
}

/// A statement to which conditions on a table are written.
struct OfTable<'s> {
    statement: &'s mut Statement,
    table: &'s Table,
}

impl FilterWriter for OfTable<'_> {
    type Error = StoreError;

    fn fragment(&mut self, fragment: &'static str) {
        self.statement.push(fragment);
    }

    fn term(&mut self, term: &Term) -> Result<(), StoreError> {
        self.statement.term(self.table, term)
    }
}

impl Statement {
    /// An empty statement.
    #[must_use]
    pub const fn new(engine: Engine) -> Self {
        Self { engine, text: String::new(), binds: Vec::new() }
    }

    /// Adds a fragment.
    pub fn push(&mut self, fragment: &'static str) {
        self.text.push_str(fragment);
    }

    /// A fragment that the engines spell differently.
    pub fn push_either(&mut self, pg: &'static str, sqlite: &'static str) {
        self.push(match self.engine {
            Engine::Postgres => pg,
            Engine::Sqlite => sqlite,
        });
    }

    /// Binds a value; returns its placeholder.
    fn placeholder(&mut self, bind: Bind) -> String {
        self.binds.push(bind);
        format!("${}", self.binds.len())
    }

    /// Puts a placeholder.
    pub fn bind(&mut self, bind: Bind) {
        let placeholder = self.placeholder(bind);
        self.text.push_str(&placeholder);
    }

    /// Appends a fragment, with a placeholder for each `{}`.
    fn fill(&mut self, pg: &'static str, sqlite: &'static str, bind: Bind) {
        let placeholder = self.placeholder(bind);
        let fragment = if self.engine == Engine::Postgres { pg } else { sqlite };
        self.text.push_str(&fragment.replace("{}", &placeholder));
    }

    /// Puts the condition of a filter; `account` is the placeholder of the account's id.
    pub fn condition(&mut self, table: &Table, expr: &Expr) -> Result<(), StoreError> {
        OfTable { statement: self, table }.condition(expr)
    }

    fn term(&mut self, table: &Table, term: &Term) -> Result<(), StoreError> {
        let value = term.value.as_str().to_owned();
        let unfit = || StoreError::Row(format!("{} cannot be filtered so: {term}", table.select));
        match (table.find_column(&term.field), term.operator) {
            (Some(Column::Text(column)), operator) => self.text(column, operator, value),
            (Some(Column::Whole(column)), operator) => {
                let value = value.parse().map_err(|_| unfit())?;
                self.push("(");
                self.push(column);
                self.push(sign(operator).ok_or_else(unfit)?);
                self.bind(Bind::Whole(value));
                self.push(")");
            }
            (Some(Column::Clause { pg, sqlite }), Operator::Equal) => {
                self.fill(pg, sqlite, Bind::Text(value))
            }
            (Some(Column::Clause { .. }), _) => return Err(unfit()),
            (None, operator) => match (table.identifiers, term.field.strip_prefix("identifiers.")) {
                (Some(kind), Some(key)) => self.identifier(kind, key, operator, value),
                (Some(_) | None, _) if !table.faceted => return Err(unfit()),
                (Some(_) | None, _) => self.facet(&term.field, operator, &term.value).ok_or_else(unfit)?,
            },
        }
        Ok(())
    }

    /// Compares texts, in the order of code points.
    fn text(&mut self, column: &'static str, operator: Operator, value: String) {
        self.push("(");
        match sign(operator) {
            None => {
                let value = self.placeholder(Bind::Text(value));
                let prefix = match self.engine {
                    Engine::Postgres => format!("starts_with({column}, {value})"),
                    Engine::Sqlite => format!("substr({column}, 1, length({value})) = {value}"),
                };
                self.text.push_str(&prefix);
            }
            Some(sign) => {
                self.push(column);
                if operator != Operator::Equal {
                    self.push_either(" COLLATE \"C\"", "");
                }
                self.push(sign);
                self.bind(Bind::Text(value));
            }
        }
        self.push(")");
    }

    /// A subquery on the table of identifiers, in the account of the row.
    fn identifier(&mut self, kind: &'static str, key: &str, operator: Operator, value: String) {
        self.push("t.id IN (SELECT i.resource_id FROM identifiers i WHERE i.account_id = $1 AND i.kind = ");
        self.bind(Bind::Text(kind.to_owned()));
        self.push(" AND i.key = ");
        self.bind(Bind::Text(key.to_owned()));
        self.push(" AND ");
        if kind == "product" && key == "gs1:01" && operator == Operator::Equal {
            self.push("(");
            self.text("i.value", operator, gtin::canonical(&value));
            // As older releases kept it.
            self.push(" OR ");
            self.text("i.value", operator, value);
            self.push("))");
            return;
        }
        self.text("i.value", operator, value);
        self.push(")");
    }

    fn facet(&mut self, field: &str, operator: Operator, value: &Value) -> Option<()> {
        match operator {
            Operator::Equal => {
                let facet = facets::facet(field, value.as_str());
                match self.engine {
                    Engine::Postgres => {
                        self.push("(t.facets @> ");
                        self.bind(Bind::Texts(Texts(vec![facet])));
                        self.push(")");
                    }
                    Engine::Sqlite => {
                        self.push("EXISTS (SELECT 1 FROM json_each(t.facets) f WHERE f.value = ");
                        self.bind(Bind::Text(facet));
                        self.push(")");
                    }
                }
            }
            Operator::Prefix => {
                let prefix = format!("{field}={}", value.as_str());
                self.push_either(
                    "EXISTS (SELECT 1 FROM unnest(t.facets) f (value) WHERE ",
                    "EXISTS (SELECT 1 FROM json_each(t.facets) f WHERE ",
                );
                self.text("f.value", operator, prefix);
                self.push(")");
            }
            // The order of custom fields is that of numbers, which facets do not keep.
            Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast => {
                let key = field.strip_prefix("customFields.")?;
                self.fill(
                    "CASE WHEN jsonb_typeof(t.doc -> 'customFields' -> {}) = 'number' \
                     THEN (t.doc -> 'customFields' ->> {})::float8",
                    "EXISTS (SELECT 1 FROM json_each(t.doc, '$.customFields') f WHERE f.key = {} \
                     AND f.type IN ('integer', 'real') AND f.value",
                    Bind::Text(key.to_owned()),
                );
                self.push(sign(operator)?);
                self.bind(Bind::Real(value.number()?));
                self.push_either(" END", ")");
            }
        }
        Some(())
    }
}
