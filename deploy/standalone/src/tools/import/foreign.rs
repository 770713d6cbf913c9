//! Rows of a file of another shortener.

use shorteners::{Columns, Lines, Link, Source};

use super::{
    records::Record,
    rows::{self, Item},
};

/// Turns records into what they ask for.
#[derive(Debug)]
pub(super) struct Foreign {
    source: Source,
    /// The header as it stands in the file; empty for JSON.
    pub(super) header: Vec<String>,
    /// The delimiter and the columns; none for JSON.
    csv: Option<(u8, Columns)>,
    /// Columns and members that are not known.
    unknown: Vec<String>,
}

impl Foreign {
    /// Rows of a CSV file with this header; the error says what it lacks.
    pub(super) fn csv(source: Source, header: Option<Record>, delimiter: u8) -> Result<Self, String> {
        let header = rows::header(header, delimiter)?;
        let columns = Columns::new(source, &header).map_err(|error| error.to_string())?;
        // The first two are those that a file of rejects has.
        let is_known = |name: &str| source.knows(name) || ["line", "reason"].contains(&name);
        let unknown = header.iter().filter(|name| !is_known(name.as_str())).cloned().collect();
        Ok(Self { source, header, csv: Some((delimiter, columns)), unknown })
    }

    /// Rows of a JSON file, and the text that has one on each line.
    pub(super) fn json(source: Source, lines: Lines) -> (Self, Vec<u8>) {
        (Self { source, header: Vec::new(), csv: None, unknown: lines.unknown }, lines.text)
    }

    /// Columns and members that the import does not read.
    pub(super) fn ignored(&self) -> Vec<&str> {
        self.unknown.iter().map(String::as_str).collect()
    }

    /// What a record asks for; the error names everything that is wrong with it.
    pub(super) fn parse(&self, record: &[u8]) -> Result<Item, String> {
        let link = match &self.csv {
            Some((delimiter, columns)) => columns.read(rows::fields(record, *delimiter)?),
            None => {
                let link = serde_json::from_slice(record)
                    .map_err(|error| format!("the link is not a JSON object: {error}"))?;
                shorteners::read(self.source, link)
            }
        };
        let Link { body, dropped } = link.map_err(|faults| faults.join(" "))?;
        Ok(Item { body, dropped, thing: None })
    }
}
