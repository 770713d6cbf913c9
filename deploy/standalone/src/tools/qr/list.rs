//! The list of codes that were fetched, beside their files: `waymark-qr.csv`, a line for each.
//!
//! A later run goes on from it, and it says what a printer wants to know of each code.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

/// The list's name in the folder of the files.
pub(super) const NAME: &str = "waymark-qr.csv";

/// One code that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) short_id: String,
    /// The file's name.
    pub(super) file: String,
    /// The file's size.
    pub(super) bytes: u64,
    /// Version of the symbol, 1 to 40.
    pub(super) version: String,
    /// Modules along a side.
    pub(super) modules: String,
    /// Level of error correction.
    pub(super) ecl: String,
    /// Side of a module in millimetres; empty for an image in pixels.
    pub(super) x_dimension_mm: String,
    /// What was asked for.
    pub(super) request: String,
}

/// The list, open for more.
pub(super) struct List {
    file: File,
    known: HashMap<String, Entry>,
    is_empty: bool,
}

impl List {
    /// Opens the list of a folder, or begins it.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).read(true).append(true).open(folder.join(NAME))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // A line that a run was cut off in is no entry.
        let known: HashMap<String, Entry> = csv::Reader::from_reader(text.as_slice())
            .into_deserialize::<Entry>()
            .filter_map(Result::ok)
            .map(|entry| (entry.short_id.clone(), entry))
            .collect();
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, known, is_empty: text.is_empty() })
    }

    /// What earlier runs fetched, by short id.
    pub(super) fn take_known(&mut self) -> HashMap<String, Entry> {
        std::mem::take(&mut self.known)
    }

    /// Appends a code whose file is written.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut out = csv::WriterBuilder::new().has_headers(self.is_empty).from_writer(Vec::new());
        out.serialize(entry).map_err(io::Error::from)?;
        let text = out.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        self.is_empty = false;
        self.file.write_all(&text)
    }
}
