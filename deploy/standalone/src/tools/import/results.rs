//! The file of results: for each row its short id and short URL, in the order of the file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use serde_json::json;

use super::chunks::{Outcome, Settled};

const COLUMNS: [&str; 7] =
    ["line", "result", "shortId", "shortUrl", "platformId", "defaultRedirectUrl", "reason"];

/// Writes results as CSV, or as NDJSON where the file's name ends so.
pub(super) struct Results {
    file: File,
    is_json: bool,
    size: u64,
}

impl Results {
    /// Begins the file, or goes on behind `size` bytes of it.
    pub(super) fn open(path: &Path, size: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
        // A file that was cut off elsewhere is started again: a later run has its rows again.
        let size = if file.metadata()?.len() < size { 0 } else { size };
        file.set_len(size)?;
        file.seek(SeekFrom::End(0))?;
        let ending = path.extension().and_then(|end| end.to_str());
        let mut results = Self { file, is_json: matches!(ending, Some("ndjson" | "jsonl")), size };
        if results.size == 0 && !results.is_json {
            results.append(&row(COLUMNS)?)?;
        }
        Ok(results)
    }

    /// Appends the rows of a chunk; they are on disk when this returns.
    pub(super) fn write(&mut self, settled: &Settled) -> io::Result<()> {
        let mut text = Vec::new();
        let rows = settled.rows.iter().map(|(row, outcome)| {
            let member = |name| row.item.body.get(name).and_then(|value| value.as_str()).unwrap_or_default();
            (row.line, outcome, [member("platformId"), member("defaultRedirectUrl")])
        });
        let faults = settled.faults.iter().map(|fault| (fault.line, Outcome::Refused(fault.reason.clone())));
        let faults: Vec<(u64, Outcome)> = faults.collect();
        let mut all: Vec<(u64, &Outcome, [&str; 2])> =
            rows.chain(faults.iter().map(|(line, outcome)| (*line, outcome, [""; 2]))).collect();
        all.sort_by_key(|(line, ..)| *line);
        for (line, outcome, [platform_id, target]) in all {
            let (result, id, url, reason) = match outcome {
                Outcome::Created(code) => ("created", code.short_id.as_str(), code.short_url.as_str(), ""),
                Outcome::There(code) => {
                    ("already there", code.short_id.as_str(), code.short_url.as_str(), "")
                }
                Outcome::Changed(code) => ("changed", code.short_id.as_str(), code.short_url.as_str(), ""),
                Outcome::Skipped(reason) => ("skipped", "", "", reason.as_str()),
                Outcome::New => ("new", "", "", ""),
                Outcome::Refused(reason) => ("rejected", "", "", reason.as_str()),
            };
            let cells = [&line.to_string(), result, id, url, platform_id, target, reason];
            if self.is_json {
                let mut object: serde_json::Map<_, _> = COLUMNS
                    .iter()
                    .zip(cells)
                    .filter(|(_, cell)| !cell.is_empty())
                    .map(|(name, cell)| ((*name).to_owned(), json!(cell)))
                    .collect();
                object.insert("line".to_owned(), line.into());
                serde_json::to_writer(&mut text, &object)?;
                text.push(b'\n');
            } else {
                text.extend(row(cells)?);
            }
        }
        self.append(&text)
    }

    /// Bytes that the file has.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.sync_data()?;
        self.size += text.len() as u64;
        Ok(())
    }
}

fn row(cells: [&str; 7]) -> io::Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(cells).map_err(io::Error::other)?;
    out.into_inner().map_err(|error| io::Error::other(error.to_string()))
}
