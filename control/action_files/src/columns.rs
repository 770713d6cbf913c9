//! The columns of a file and its schema.

use std::fmt::Write as _;

use parquet::{
    errors::ParquetError,
    schema::{parser::parse_message_type, types::TypePtr},
};

/// Name of the columns that hold as JSON what has no column of its own.
pub(crate) const MORE: &str = "more";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// Milliseconds since 1970.
    Millis,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list of texts.
    Texts,
    /// Any value as JSON.
    Json,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    /// The member of the document that it is within; `None` for the document itself.
    pub(crate) group: Option<&'static str>,
    /// Name of the member.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Whether each document has it.
    pub(crate) is_required: bool,
}

const fn always(name: &'static str, kind: Kind) -> Column {
    Column { group: None, name, kind, is_required: true }
}

const fn top(name: &'static str, kind: Kind) -> Column {
    Column { group: None, name, kind, is_required: false }
}

const fn within(group: &'static str, name: &'static str, kind: Kind) -> Column {
    Column { group: Some(group), name, kind, is_required: false }
}

pub(crate) const LOCATION: &str = "location";
pub(crate) const LATITUDE: &str = "latitude";
pub(crate) const LONGITUDE: &str = "longitude";
const CONTEXT: &str = "context";
const CUSTOM: &str = "customFields";

/// Members of a document that are groups of columns.
pub(crate) const GROUPS: [&str; 3] = [LOCATION, CONTEXT, CUSTOM];

/// Every column in its order; those of a group follow each other.
pub(crate) static COLUMNS: [Column; 36] = [
    always("id", Kind::Text),
    always("createdAt", Kind::Millis),
    always("timestamp", Kind::Millis),
    always("type", Kind::Text),
    top("thng", Kind::Text),
    top("product", Kind::Text),
    top("collection", Kind::Text),
    top("user", Kind::Text),
    top("createdByProject", Kind::Text),
    top("createdByApp", Kind::Text),
    top("createdByReaction", Kind::Text),
    top("scanSource", Kind::Text),
    top("tags", Kind::Texts),
    top("reactions", Kind::Json),
    top("locationSource", Kind::Text),
    within(LOCATION, LATITUDE, Kind::Number),
    within(LOCATION, LONGITUDE, Kind::Number),
    within(LOCATION, "place", Kind::Text),
    within(LOCATION, MORE, Kind::Json),
    within(CONTEXT, "ipAddress", Kind::Text),
    within(CONTEXT, "city", Kind::Text),
    within(CONTEXT, "region", Kind::Text),
    within(CONTEXT, "countryCode", Kind::Text),
    within(CONTEXT, "timeZone", Kind::Text),
    within(CONTEXT, "userAgent", Kind::Text),
    within(CONTEXT, "userAgentName", Kind::Text),
    within(CONTEXT, "operatingSystemName", Kind::Text),
    within(CONTEXT, "referer", Kind::Text),
    within(CONTEXT, "language", Kind::Text),
    within(CONTEXT, "entryUrl", Kind::Text),
    within(CONTEXT, MORE, Kind::Json),
    within(CUSTOM, "shortDomain", Kind::Text),
    within(CUSTOM, "shortId", Kind::Text),
    within(CUSTOM, "bot", Kind::Boolean),
    within(CUSTOM, MORE, Kind::Json),
    top(MORE, Kind::Json),
];

/// The schema of a file.
pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let mut text = String::from("message action {\n");
    let mut open = None;
    for column in &COLUMNS {
        if open != column.group {
            if open.is_some() {
                text.push_str("}\n");
            }
            if let Some(group) = column.group {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "optional group {group} {{");
            }
            open = column.group;
        }
        let (name, repetition) = (column.name, if column.is_required { "required" } else { "optional" });
        let _ = match column.kind {
            Kind::Text => writeln!(text, "{repetition} binary {name} (STRING);"),
            Kind::Json => writeln!(text, "{repetition} binary {name} (JSON);"),
            Kind::Millis => writeln!(text, "{repetition} int64 {name} (TIMESTAMP(MILLIS,true));"),
            Kind::Number => writeln!(text, "{repetition} double {name};"),
            Kind::Boolean => writeln!(text, "{repetition} boolean {name};"),
            Kind::Texts => writeln!(
                text,
                "{repetition} group {name} (LIST) {{ repeated group list {{ required binary element (STRING); }} }}"
            ),
        };
    }
    if open.is_some() {
        text.push_str("}\n");
    }
    text.push('}');
    parse_message_type(&text).map(Into::into)
}
