//! Filters of lists: the fields of each type, and how each can be compared.
//!
//! The language is [`shared::filter`]. Labels and custom fields may have several values; a condition holds when one of
//! them meets it, so `!tags=a` selects rows without the tag. A custom field equals a value when its text does, whether
//! it is a string, a number or a boolean. Its order is that of numbers.

use percent_encoding::percent_decode_str;
use shared::{
    filter::{Expr, InvalidFilter, Operator, Term, Value},
    redirect_status::{InvalidRedirectStatus, RedirectStatus},
    time::UnixMillis,
};

use super::{facets, limits::shorten};

/// The type of a field, which determines its comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// One text: by every operator, in the order of code points.
    Text,
    /// One id: by `=`.
    Id,
    /// Milliseconds since 1970: by `=` and by order.
    Millis,
    /// A number of something: by `=` and by order.
    Count,
    /// The status code of a redirect: by `=`.
    StatusCode,
    /// Labels: by `=` and `~`.
    Labels,
    /// The caller's own scalars: by `=` and `~`, and in the order of numbers.
    Scalars,
}

/// A field that a list may be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name; `x.*` means `x.<any key>`.
    pub name: &'static str,
    /// Its type.
    pub holds: Holds,
}

impl Field {
    /// Whether `name` is this field, or one of its keys.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.strip_prefix(prefix).is_some_and(|key| !key.is_empty()),
            None => name == self.name,
        }
    }
}

/// A filter whose fields the type has, each compared with a value that it can have.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Expr);

impl Filter {
    /// Parses a filter. A text that does not parse is decoded once more, because some clients encode twice.
    ///
    /// Others encode each key and value of an object twice: where one still holds percent-escapes, the condition
    /// holds for both readings.
    ///
    /// # Errors
    /// The fault, as a sentence for the client; for a field that the type does not have, with the fields that it has.
    pub fn parse(text: &str, fields: &[Field]) -> Result<Self, String> {
        let expr = parse_or_decode(text).map_err(|fault| format!("filter: {fault}."))?;
        Ok(Self(with_readings(expr, fields)?))
    }

    /// What has a time from `from` to `to`, both inclusive, in a field; `None` when neither is given.
    #[must_use]
    pub fn between(field: &str, from: Option<UnixMillis>, to: Option<UnixMillis>) -> Option<Self> {
        let bound = |operator, at: UnixMillis| {
            let value = Value::new(at.0.to_string());
            Self(Expr::Term(Term { field: field.to_owned(), operator, value }))
        };
        let from = from.map(|at| bound(Operator::AtLeast, at));
        let to = to.map(|at| bound(Operator::AtMost, at));
        from.into_iter().chain(to).reduce(Self::and)
    }

    /// What meets this and another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Expr::And(vec![self.0, other.0]))
    }

    /// The tree.
    #[must_use]
    pub const fn expr(&self) -> &Expr {
        &self.0
    }
}

fn parse_or_decode(text: &str) -> Result<Expr, InvalidFilter> {
    text.parse().or_else(|fault| {
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        decoded.parse().map_err(|_| fault)
    })
}

/// The same tree with an alternative for each way to read a condition that the type admits.
///
/// There are at most four: key and value each as written and decoded.
fn with_readings(expr: Expr, fields: &[Field]) -> Result<Expr, String> {
    let each = |branches: Vec<Expr>| -> Result<Vec<Expr>, String> {
        branches.into_iter().map(|branch| with_readings(branch, fields)).collect()
    };
    Ok(match expr {
        Expr::And(branches) => Expr::And(each(branches)?),
        Expr::Or(branches) => Expr::Or(each(branches)?),
        Expr::Not(branch) => Expr::Not(Box::new(with_readings(*branch, fields)?)),
        Expr::Term(term) => {
            let written = check(&term, fields);
            let mut readings: Vec<Expr> = decoded(&term)
                .into_iter()
                .filter(|term| check(term, fields).is_ok())
                .map(Expr::Term)
                .collect();
            match (written, readings.is_empty()) {
                (Ok(()), true) => Expr::Term(term),
                (Ok(()), false) => {
                    readings.insert(0, Expr::Term(term));
                    Expr::Or(readings)
                }
                (Err(fault), true) => return Err(fault),
                // The literal reading can never match.
                (Err(_), false) if readings.len() > 1 => Expr::Or(readings),
                (Err(_), false) => readings.swap_remove(0),
            }
        }
    })
}

/// A condition with its key, its value or both decoded once more, if that changes the text.
fn decoded(term: &Term) -> Vec<Term> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        (decoded != text).then_some(decoded)
    };
    let with = |field: &str, value: &str| Term {
        field: field.to_owned(),
        operator: term.operator,
        value: Value::new(value),
    };
    let (field, value) = (term.field.as_str(), term.value.as_str());
    let (other_field, other_value) = (decode(field), decode(value));
    let fields = [Some(field), other_field.as_deref()].into_iter().flatten();
    let readings = fields.flat_map(|field| {
        [Some(value), other_value.as_deref()].into_iter().flatten().map(move |value| (field, value))
    });
    readings.skip(1).map(|(field, value)| with(field, value)).collect()
}

fn check(term: &Term, fields: &[Field]) -> Result<(), String> {
    let (name, value) = (term.field.as_str(), term.value.as_str());
    let Some(field) = fields.iter().find(|field| field.is(name)) else {
        return Err(unknown(name, fields));
    };
    let shown = shorten(name);
    let by = |operators: &str| Err(format!("filter: {shown} compares by {operators} only."));
    if name.contains('\0') || value.contains('\0') {
        return Err("filter must not hold the character U+0000.".to_owned());
    }
    let is_order = !matches!(term.operator, Operator::Equal | Operator::Prefix);
    let is_prefix = term.operator == Operator::Prefix;
    match field.holds {
        Holds::Text => Ok(()),
        Holds::Id | Holds::StatusCode if term.operator != Operator::Equal => by("="),
        Holds::Id if !shared::id::is_valid(value) => Err(format!("filter: {shown} is compared with an id.")),
        Holds::Id => Ok(()),
        Holds::StatusCode if !is_status_code(value) => {
            Err(format!("filter: {shown} {InvalidRedirectStatus}."))
        }
        Holds::StatusCode => Ok(()),
        Holds::Millis | Holds::Count if is_prefix => by("= < >"),
        Holds::Count if value.parse::<i64>().is_err() => {
            Err(format!("filter: {shown} is compared with an integer."))
        }
        Holds::Millis if value.parse::<i64>().is_err() => {
            Err(format!("filter: {shown} is compared with milliseconds since 1970."))
        }
        Holds::Millis | Holds::Count => Ok(()),
        Holds::Labels if is_order => by("= ~"),
        Holds::Scalars if is_order && term.value.number().is_none() => {
            Err(format!("filter: the order of {shown} is that of numbers."))
        }
        Holds::Labels | Holds::Scalars if is_prefix && !facets::holds_prefix(name, value) => {
            Err(format!("filter: the prefix of {shown} is too long."))
        }
        Holds::Labels | Holds::Scalars => Ok(()),
    }
}

/// Whether a text is a code as lists compare it: without a sign or zeros before it.
fn is_status_code(text: &str) -> bool {
    RedirectStatus::ALL.iter().any(|status| status.as_u16().to_string() == text)
}

fn unknown(field: &str, allowed: &[Field]) -> String {
    let names: Vec<&str> = allowed.iter().map(|field| field.name).collect();
    if names.is_empty() {
        "filter is not available for this list.".to_owned()
    } else {
        format!("filter: {:?} is not one of the fields {}.", shorten(field), names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::listing::{ACTIONS, PRODUCTS, REDIRECTIONS, THNGS};

    #[test]
    fn filters_parse() {
        let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        for (text, expected) in [
            ("name=Te st", "name=Te st"),
            ("name=paged ü+ 100%", "name=paged ü+ 100%"),
            ("name%3D_x", "name=_x"),
            ("name%3Da%20b", "name=a b"),
            // What clients encode twice is read both ways, key by key and value by value.
            ("name=a%20b", "name=a%20b|name=a b"),
            ("name=100%", "name=100%"),
            ("name=%FF", "name=%FF"),
            ("na%6De=x", "name=x"),
            ("tags=b&!name=a%20b", "tags=b&!(name=a%20b|name=a b)"),
            ("name%3Da%26tags%3Db", "name=a&tags=b"),
            ("createdAt>5&createdAt<=7", "createdAt>5&createdAt<=7"),
            ("customFields.a.b>1.5", "customFields.a.b>1.5"),
            ("identifiers.gs1:21~v", "identifiers.gs1:21~v"),
            (&format!("product={id}|collections!={id}"), &format!("product={id}|!collections={id}")),
        ] {
            let filter = Filter::parse(text, THNGS.fields).unwrap();
            assert_eq!(filter.expr().to_string(), expected, "{text}");
        }
        assert!(Filter::parse(&format!("user={id}&context.city~B"), ACTIONS.fields).is_ok());
    }

    #[test]
    fn status_codes_are_those_that_links_can_have() {
        let value = Err("filter: statusCode must be 301, 302, 307 or 308.".to_owned());
        let operator = Err("filter: statusCode compares by = only.".to_owned());
        for (text, expected) in [
            ("statusCode=301", Ok("statusCode=301")),
            ("statusCode!=307", Ok("!statusCode=307")),
            ("statusCode=301|statusCode=308", Ok("statusCode=301|statusCode=308")),
            ("statusCode=303", value.clone()),
            ("statusCode=0301", value.clone()),
            ("statusCode=+301", value.clone()),
            ("statusCode=moved", value.clone()),
            ("statusCode=", value),
            ("statusCode~30", operator.clone()),
            ("statusCode>301", operator),
        ] {
            let found = Filter::parse(text, REDIRECTIONS.fields).map(|filter| filter.expr().to_string());
            assert_eq!(found, expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn faults_name_what_is_wrong() {
        for (text, fault) in [
            ("", "filter: expected the name of a field at character 1."),
            ("name", "filter: expected one of = ~ < > <= >= at character 5."),
            ("product=x", "filter: product is compared with an id."),
            ("product~U", "filter: product compares by = only."),
            ("createdAt=x", "filter: createdAt is compared with milliseconds since 1970."),
            ("createdAt~1", "filter: createdAt compares by = < > only."),
            ("tags<a", "filter: tags compares by = ~ only."),
            ("customFields.a<b", "filter: the order of customFields.a is that of numbers."),
            ("name=\0", "filter must not hold the character U+0000."),
            ("name%3D%00", "filter must not hold the character U+0000."),
        ] {
            assert_eq!(Filter::parse(text, THNGS.fields), Err(fault.to_owned()), "{text:?}");
        }
        for text in ["color=red", "identifiers=v", "identifiers.=v", "customFieldsx=v", "name=a&color=red"] {
            let fault = Filter::parse(text, THNGS.fields).unwrap_err();
            assert!(fault.contains("fields createdAt, identifiers.*, customFields.*, name"), "{fault}");
        }
        assert!(Filter::parse("product=x", PRODUCTS.fields).unwrap_err().contains("fields name"));
        assert!(Filter::parse("name=x", &[]).unwrap_err().contains("not available"));
        let long = format!("tags~{}", "x".repeat(250));
        assert!(Filter::parse(&long, THNGS.fields).unwrap_err().contains("too long"));
    }
}
