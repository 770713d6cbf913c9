//! Exports of other shorteners: what a row or object of their files says of a link, as the body of a create.
//!
//! Nothing is lost in silence: what Waymark has no member for is a custom field, or named in [`Link::dropped`]. Columns and
//! members that are not known are named as well. Pure: the caller reads files, and cuts CSV into cells.

mod columns;
pub mod encoding;
mod json;
mod link;
mod values;

use std::io;

use clap::ValueEnum;

pub use self::{
    json::{Lines, is_json, lines},
    link::{Columns, FROM, LINK, Link, read},
};

/// Another shortener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// CSV of its export, or JSON of its API (GET /v4/groups/ID/bitlinks).
    Bitly,
    /// JSON of its API (GET /rest/v3/short-urls), or CSV of its web client.
    Shlink,
    /// CSV of its table of links, or JSON of its API (action=stats).
    Yourls,
    /// JSON of its API (GET /api/v2/links), or CSV of its table of links.
    Kutt,
    /// CSV of its export, or JSON of its API (GET /links).
    Dub,
}

impl Source {
    /// The name on the command line, and in [`FROM`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitly => "bitly",
            Self::Shlink => "shlink",
            Self::Yourls => "yourls",
            Self::Kutt => "kutt",
            Self::Dub => "dub",
        }
    }

    /// Whether a column or member of this name is known, whatever its case.
    #[must_use]
    pub fn knows(self, name: &str) -> bool {
        columns::find(self, name).is_some()
    }
}

/// Why a file has no links that can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read to its end.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is JSON of more bytes than are held in memory.
    #[error("a JSON file has at most {} MiB; split it, or use CSV", json::MAX_BYTES >> 20)]
    TooLong,
    /// It begins like JSON, and is not.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// Its lists are nested too deep.
    #[error("it has no list of links")]
    NoList,
    /// A CSV without what each link needs.
    #[error("the first line names no column of {} for the short link, or for its target", .0.name())]
    NoColumns(Source),
}
