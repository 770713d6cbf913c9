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

use crate::data_dir::write_atomic;

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
    /// Whether the code is for development only: it leads to this machine or into a local network.
    #[serde(default)]
    pub(super) development: bool,
    /// What was asked for.
    pub(super) request: String,
}

/// The list, open for more.
pub(super) struct List {
    file: File,
    known: HashMap<String, Entry>,
    is_empty: bool,
}

/// The columns of the list, in its first line.
const HEADER: &str = "shortId,file,bytes,version,modules,ecl,xDimensionMm,development,request\n";

impl List {
    /// Opens the list of a folder, or begins it.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let (path, mut text) = (folder.join(NAME), Vec::new());
        let mut file = append(&path)?;
        file.read_to_end(&mut text)?;
        // A line that a run was cut off in is no entry.
        let known: HashMap<String, Entry> = csv::Reader::from_reader(text.as_slice())
            .into_deserialize::<Entry>()
            .filter_map(Result::ok)
            .map(|entry| (entry.short_id.clone(), entry))
            .collect();
        let mut list = Self { file, known, is_empty: text.is_empty() };
        if !list.is_empty && !text.starts_with(HEADER.as_bytes()) {
            // An older release wrote fewer columns: its entries are kept under the present ones.
            let entries: Vec<Entry> = list.known.values().cloned().collect();
            write_atomic(&path, HEADER.as_bytes(), 0o644)?;
            list.file = append(&path)?;
            entries.iter().try_for_each(|entry| list.add(entry))?;
        } else if text.last().is_some_and(|byte| *byte != b'\n') {
            list.file.write_all(b"\n")?;
        }
        Ok(list)
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

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_an_older_release_is_kept_under_the_present_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let older = "shortId,file,bytes,version,modules,ecl,xDimensionMm,request\nQ1,Q1.pdf,9,2,25,Q,0.5,x\n";
        std::fs::write(&path, older).unwrap();
        let mut list = List::open(folder.path()).unwrap();
        let entry = list.take_known().remove("Q1").unwrap();
        assert!(!entry.development);
        list.add(&Entry { short_id: "Q2".to_owned(), development: true, ..entry }).unwrap();
        let expected = format!("{HEADER}Q1,Q1.pdf,9,2,25,Q,0.5,false,x\nQ2,Q1.pdf,9,2,25,Q,0.5,true,x\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(List::open(folder.path()).unwrap().take_known().len(), 2);
    }
}
