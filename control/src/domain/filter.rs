//! The filters that lists understand: one `field=value`.
//!
//! Spec gap: the contract names no syntax; decisions 2 does. Conjunction, alternatives, negation and
//! comparison are refused with a sentence that says so.

use percent_encoding::percent_decode_str;
use shared::{id::ProductId, identifier::Identifier};

/// Fields that a list may be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `name`
    Name,
    /// `identifiers.<key>`
    Identifiers,
    /// `product`
    Product,
}

impl Field {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Identifiers => "identifiers.*",
            Self::Product => "product",
        }
    }
}

/// What the rows of a list must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// The name is this.
    Name(String),
    /// The identifier is this.
    Identifier(Identifier),
    /// The product is this.
    Product(ProductId),
}

/// Parses a filter; a text that was percent-encoded once too often is decoded once more.
///
/// # Errors
/// What is wrong, as a sentence for the caller that names the fields allowed.
pub fn parse(text: &str, allowed: &[Field]) -> Result<Filter, String> {
    if text.contains('=') {
        return parse_decoded(text, allowed);
    }
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    parse_decoded(&decoded, allowed)
}

fn parse_decoded(text: &str, allowed: &[Field]) -> Result<Filter, String> {
    let Some((field, value)) = split(text) else {
        return Err("filter must have the form <field>=<value>.".to_owned());
    };
    if field.ends_with(['!', '<', '>', '~']) {
        return Err("filter compares by = only.".to_owned());
    }
    let value =
        unescape(value).ok_or("filter takes one <field>=<value>; escape & and | in the value by \\.")?;
    if value.contains('\0') {
        return Err("filter must not hold the character U+0000.".to_owned());
    }
    let (kind, key) = match field.split_once('.') {
        Some(("identifiers", key)) if !key.is_empty() => (Field::Identifiers, key.to_owned()),
        Some(_) => return Err(unknown(field, allowed)),
        None if field == "name" => (Field::Name, String::new()),
        None if field == "product" => (Field::Product, String::new()),
        None => return Err(unknown(field, allowed)),
    };
    if !allowed.contains(&kind) {
        return Err(unknown(field, allowed));
    }
    match kind {
        Field::Name => Ok(Filter::Name(value)),
        Field::Identifiers => Ok(Filter::Identifier(Identifier { key, value })),
        Field::Product => match value.parse() {
            Ok(id) => Ok(Filter::Product(id)),
            Err(_) => Err("filter: product must be the id of a product.".to_owned()),
        },
    }
}

/// Splits at the first `=` that no backslash escapes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'=' => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

/// Takes the backslashes out; `None` when the value holds another condition.
fn unescape(value: &str) -> Option<String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '&' | '|' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

fn unknown(field: &str, allowed: &[Field]) -> String {
    let names: Vec<&str> = allowed.iter().map(|field| field.as_str()).collect();
    let field = super::limits::shorten(field);
    if names.is_empty() {
        "filter is not available for this list.".to_owned()
    } else {
        format!("filter: {field:?} is not one of the fields {}.", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_parse() {
        let all = [Field::Name, Field::Identifiers, Field::Product];
        let name = |text: &str| Some(Filter::Name(text.to_owned()));
        let identifier = |key: &str, value: &str| {
            Some(Filter::Identifier(Identifier { key: key.to_owned(), value: value.to_owned() }))
        };
        for (text, expected) in [
            ("name=Te st", name("Te st")),
            ("name=paged ü+ 100%", name("paged ü+ 100%")),
            ("name=", name("")),
            ("name=a=b", name("a=b")),
            (r"name=a\&b\\c", name(r"a&b\c")),
            ("name=a&b", None),
            ("name=a|b", None),
            ("name!=a", None),
            ("name~=a", None),
            ("identifiers.gs1:21=v", identifier("gs1:21", "v")),
            ("identifiers.=v", None),
            ("identifiers=v", None),
            ("name%3D_x", name("_x")),
            ("name%3Da%20b", name("a b")),
            ("color=red", None),
            ("customFields.a=red", None),
            ("product=x", None),
            ("name=\0", None),
            ("", None),
            ("name", None),
        ] {
            assert_eq!(parse(text, &all).ok(), expected, "{text}");
        }
        assert!(parse("product=x", &[Field::Name]).unwrap_err().contains("fields name"));
        assert!(parse("name=x", &[]).unwrap_err().contains("not available"));
    }
}
