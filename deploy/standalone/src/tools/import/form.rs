//! What rows of a file are: redirections as Waymark writes them, or links of another shortener.

use super::{
    foreign::Foreign,
    rows::{Item, Rows},
};

/// Turns records into what they ask for.
#[derive(Debug)]
pub(super) enum Form {
    /// Columns of Waymark.
    Own(Rows),
    /// Columns of another shortener.
    Foreign(Foreign),
}

impl Form {
    /// The header as it stands in the file; empty for JSON.
    pub(super) fn header(&self) -> &[String] {
        match self {
            Self::Own(rows) => &rows.header,
            Self::Foreign(links) => &links.header,
        }
    }

    /// Columns of the file that the import does not read.
    pub(super) fn ignored(&self) -> Vec<&str> {
        match self {
            Self::Own(rows) => rows.ignored(),
            Self::Foreign(links) => links.ignored(),
        }
    }

    /// What a record asks for; the error is the reason why it is nothing.
    pub(super) fn parse(&self, record: &[u8]) -> Result<Item, String> {
        match self {
            Self::Own(rows) => rows.parse(record),
            Self::Foreign(links) => links.parse(record),
        }
    }
}
