//! What an import remembers beside its file, so that it goes on where it was cut short.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    data_dir::write_atomic,
    system::{self},
};

/// Version of the state file's form.
const VERSION: u32 = 1;

/// What an import is of: it goes on only under the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject {
    /// BLAKE3 of the file's content.
    pub(super) content: String,
    /// Base of the API.
    pub(super) api: String,
    /// The short domain that was asked for.
    pub(super) domain: Option<String>,
    /// The resource of rows that name none.
    pub(super) platform_id: Option<String>,
    /// Form of the file.
    pub(super) format: String,
    /// Rows of a chunk.
    pub(super) chunk_rows: usize,
    /// Whether rows are created though they are there.
    #[serde(default)]
    pub(super) again: bool,
}

/// How far an import is: everything before `offset` is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    version: u32,
    /// What is imported.
    pub(super) subject: Subject,
    /// A random name: part of every chunk's idempotency key.
    pub(super) run: String,
    /// Chunks that are settled.
    pub(super) chunks: u64,
    /// Bytes of the file that are settled.
    pub(super) offset: u64,
    /// Lines of the file that are settled.
    pub(super) line: u64,
    /// Creation time of the newest redirection before the import, where there was one: what is not newer is
    /// there already.
    #[serde(default)]
    pub(super) until: Option<i64>,
    /// Rows that were created.
    pub(super) created: u64,
    /// Rows that had been created before.
    #[serde(default)]
    pub(super) there: u64,
    /// Links of another shortener that were changed.
    #[serde(default)]
    pub(super) changed: u64,
    /// Links of another shortener whose short id is that of another link.
    #[serde(default)]
    pub(super) skipped: u64,
    /// Things that were made.
    #[serde(default)]
    pub(super) things: u64,
    /// Rows that were rejected.
    pub(super) rejected: u64,
    /// Bytes of the rejects file that are settled.
    pub(super) rejects_bytes: u64,
    /// Bytes of the results file that are settled.
    #[serde(default)]
    pub(super) results_bytes: u64,
    /// Bytes that the file of known rows had before the import: what is behind them does not count.
    #[serde(default)]
    pub(super) known_bytes: u64,
    /// Whether the whole file is settled.
    pub(super) done: bool,
}

impl State {
    /// The state of an import that has not begun.
    pub(super) fn new(subject: Subject) -> io::Result<Self> {
        Ok(Self {
            version: VERSION,
            subject,
            run: system::random_name().map_err(io::Error::other)?,
            chunks: 0,
            offset: 0,
            line: 0,
            until: None,
            created: 0,
            there: 0,
            changed: 0,
            skipped: 0,
            things: 0,
            rejected: 0,
            rejects_bytes: 0,
            results_bytes: 0,
            known_bytes: 0,
            done: false,
        })
    }

    /// Rows that are settled.
    pub(super) fn rows(&self) -> u64 {
        self.created + self.there + self.changed + self.skipped + self.rejected
    }

    /// How many rows had which end, for people.
    pub(super) fn counts(&self) -> String {
        let mut text = format!("{} created, ", self.created);
        let others = [(self.changed, "changed"), (self.there, "already there"), (self.skipped, "skipped")];
        for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("{count} {word}, "));
        }
        text.push_str(&format!("{} rejected", self.rejected));
        if self.things > 0 {
            text.push_str(&format!(", {} Things made", self.things));
        }
        text
    }

    /// Reads the state that an earlier run left, if there is one.
    pub(super) fn find(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => serde_json::from_slice::<Self>(&text).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the state, whole or not at all, and onto the disk.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        write_atomic(path, &serde_json::to_vec_pretty(self)?, 0o600)
    }

    /// The idempotency key of a chunk: the same whenever this import sends it.
    pub(super) fn chunk_key(&self, chunk: u64) -> String {
        let content = self.subject.content.get(..16).unwrap_or_default();
        format!("import-{content}-{}-{chunk}", self.run)
    }
}

/// The path of a file that stands beside `file`.
pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// BLAKE3 of a file, in hexadecimal; reads it once.
pub(super) fn hash(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finalize().to_hex().to_string(), size)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(buffer.get(..read).unwrap_or_default());
        size += read as u64;
    }
}
