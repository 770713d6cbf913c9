//! The file of rejected lines: each with its line number, the reason, and the line itself.
//!
//! Its columns are those of the import with two before them, so that it can be put right and imported.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{records::Layout, rows};

/// One rejected line.
#[derive(Debug)]
pub(super) struct Reject {
    /// The line, counted from 1.
    pub(super) line: u64,
    /// Why.
    pub(super) reason: String,
    /// The record as it stands in the file.
    pub(super) record: Vec<u8>,
}

/// Writes rejects; the file is made with the first.
pub(super) struct Rejects {
    path: PathBuf,
    layout: Layout,
    header: Vec<String>,
    file: Option<File>,
    size: u64,
}

impl Rejects {
    /// Goes on behind `size` bytes; what an earlier run wrote behind them is cut off.
    pub(super) fn open(path: &Path, layout: Layout, header: &[String], size: u64) -> io::Result<Self> {
        let file = if size == 0 {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => None,
            }
        } else {
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.set_len(size)?;
            file.seek(SeekFrom::End(0))?;
            Some(file)
        };
        Ok(Self { path: path.to_owned(), layout, header: header.to_vec(), file, size })
    }

    /// Appends rejects; they are on disk when this returns.
    pub(super) fn write(&mut self, rejects: &[Reject]) -> io::Result<()> {
        if rejects.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        let fresh = self.file.is_none();
        match self.layout {
            Layout::Csv(delimiter) => {
                let mut out =
                    csv::WriterBuilder::new().flexible(true).delimiter(delimiter).from_writer(&mut text);
                if fresh {
                    let names = ["line", "reason"].into_iter().chain(self.own_columns());
                    out.write_record(names).map_err(io::Error::other)?;
                }
                for reject in rejects {
                    let fields = rows::fields(&reject.record, delimiter)
                        .unwrap_or_else(|_| vec![String::from_utf8_lossy(&reject.record).into_owned()]);
                    let (line, reason) = (reject.line.to_string(), reject.reason.as_str());
                    // A file of rejects that is imported again has the two columns already.
                    let skip = self.header.len() - self.own_columns().count();
                    let own = fields.iter().map(String::as_str).skip(if fields.len() == self.header.len() {
                        skip
                    } else {
                        0
                    });
                    out.write_record([line.as_str(), reason].into_iter().chain(own))
                        .map_err(io::Error::other)?;
                }
                out.flush()?;
            }
            Layout::Ndjson => {
                for reject in rejects {
                    let record: Value = serde_json::from_slice(&reject.record)
                        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&reject.record)));
                    let line = json!({"line": reject.line, "reason": reject.reason, "record": record});
                    serde_json::to_writer(&mut text, &line)?;
                    text.push(b'\n');
                }
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(&self.path)?),
        };
        file.write_all(&text)?;
        file.sync_data()?;
        self.size += text.len() as u64;
        Ok(())
    }

    /// Bytes that the file has.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn own_columns(&self) -> impl Iterator<Item = &str> {
        let leads = self.header.iter().take(2).map(String::as_str).eq(["line", "reason"]);
        self.header.iter().map(String::as_str).skip(if leads { 2 } else { 0 })
    }
}
