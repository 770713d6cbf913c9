//! What became of rows that earlier imports settled: a row is created once, whatever became of its code since.
//!
//! A file beside the imported ones has a line for each settled row: a hash of what the row asks for, its short id
//! and its short URL, separated by tabs. It is shared by all files of the folder, so that a renamed copy is known.
//! Of equal rows of one file each has a hash of its own, by how many came before it. Lines are only appended, and
//! the last line of a hash counts. Memory: about 100 bytes for each row of the folder's imports.

use std::{
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use redirects::domain::redirection::Draft;
use serde_json::json;
use shared::redirect_status::RedirectStatus;

use super::{
    chunks::{Outcome, Settled},
    existing::Code,
};

/// The file's name.
pub(super) const NAME: &str = "waymark-import.rows";

/// What a row asks for, and which of several equal ones it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RowKey([u8; 16]);

impl RowKey {
    fn new(draft: &Draft, domain: Option<&str>, ordinal: u32) -> Self {
        let kind = draft.resource_type.map(|kind| kind.as_str()).unwrap_or_default();
        let short_id = draft.short_id.as_ref().map(|id| id.as_str()).unwrap_or_default();
        let parts = [
            draft.platform_id.as_str(),
            domain.unwrap_or_default(),
            draft.writable.target.as_str(),
            short_id,
            kind,
            if draft.writable.forward_query { "query" } else { "" },
            &ordinal.to_string(),
        ];
        // Nothing for rows without it or a status code, whose keys are those of older releases. A draft's own window is never
        // refused.
        let availability = draft.writable.availability.apply(None).ok().flatten();
        let availability = availability.map(|availability| json!(availability).to_string());
        let mut hasher = blake3::Hasher::new();
        let status = draft.writable.status_code.or_default(RedirectStatus::default());
        let status = status.member().map(|(_, code)| code.to_string());
        for part in parts.into_iter().chain(availability.as_deref()).chain(status.as_deref()) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    fn as_text(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The rows that earlier imports settled.
#[derive(Debug, Default)]
pub(super) struct KnownRows {
    codes: HashMap<RowKey, Code>,
    /// How many equal rows came before, by the row's own key.
    seen: HashMap<RowKey, u32>,
    /// Short URLs that stand for a row of this import already.
    taken: HashSet<String>,
}

impl KnownRows {
    /// Reads the first `size` bytes of the file, if there is one: what is behind them is of this import or a later one.
    pub(super) fn read(path: &Path, size: u64) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut known = Self::default();
        for line in BufReader::new(file.take(size)).split(b'\n') {
            // A line that a run was cut off in is no row.
            let line = String::from_utf8(line?).unwrap_or_default();
            let mut cells = line.split('\t');
            if let (Some(key), Some(id), Some(url), None) =
                (cells.next().and_then(RowKey::parse), cells.next(), cells.next(), cells.next())
            {
                known.codes.insert(key, Code { short_id: id.to_owned(), short_url: url.to_owned() });
            }
        }
        Ok(known)
    }

    /// The key of the next row of the file.
    pub(super) fn key(&mut self, draft: &Draft, domain: Option<&str>) -> RowKey {
        let first = RowKey::new(draft, domain, 0);
        let seen = self.seen.entry(first).or_default();
        let key = if *seen == 0 { first } else { RowKey::new(draft, domain, *seen) };
        *seen += 1;
        key
    }

    /// The code that was created for a row, unless it stands for another row of this import.
    pub(super) fn take(&mut self, key: RowKey) -> Option<Code> {
        let code = self.codes.get(&key)?;
        self.taken.insert(code.short_url.clone()).then(|| code.clone())
    }

    /// Notes that a code stands for a row that is not known here.
    pub(super) fn took(&mut self, code: &Code) {
        if !self.codes.is_empty() {
            self.taken.insert(code.short_url.clone());
        }
    }
}

/// Appends the rows that an import settles.
pub(super) struct RowLog {
    path: PathBuf,
    file: Option<File>,
}

impl RowLog {
    /// Nothing is opened before the first row.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    fn open(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).read(true).append(true).mode(0o600).open(path)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(file)
    }

    /// Appends the rows of a chunk that have a code; they are on disk when this returns.
    pub(super) fn write(&mut self, settled: &Settled) -> io::Result<()> {
        let mut text = String::new();
        for (row, outcome) in &settled.rows {
            if let (Some(key), Outcome::Created(code) | Outcome::There(code)) = (row.key, outcome) {
                text.push_str(&format!("{}\t{}\t{}\n", key.as_text(), code.short_id, code.short_url));
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Self::open(&self.path)?),
        };
        // By one call, so that imports of several files at once do not mix their lines.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    fn draft(target: &str) -> Draft {
        let body = json!({"platformId": ID, "defaultRedirectUrl": target});
        Draft::parse(&body, None).unwrap()
    }

    fn code(id: &str) -> Code {
        Code { short_id: id.to_owned(), short_url: format!("https://tn.gg/{id}") }
    }

    #[test]
    fn equal_rows_have_keys_of_their_own_and_the_same_in_each_run() {
        let keys = || {
            let mut known = KnownRows::default();
            ["https://a.test/", "https://b.test/", "https://a.test/"]
                .map(|to| known.key(&draft(to), Some("d")))
        };
        let [a, b, again] = keys();
        assert!(a != b && a != again && b != again);
        assert_eq!(keys(), [a, b, again]);
        assert_ne!(a, KnownRows::default().key(&draft("https://a.test/"), Some("e")), "another domain");
        let with = |more: Value| {
            let mut body = json!({"platformId": ID, "defaultRedirectUrl": "https://a.test/"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            KnownRows::default().key(&Draft::parse(&body, None).unwrap(), Some("d"))
        };
        assert_eq!(a, with(json!({"status": "active"})), "as an export says it");
        let ends = with(json!({"validUntil": 5}));
        assert!(
            ends != a && ends != with(json!({"validUntil": 6})) && ends == with(json!({"validUntil": 5}))
        );
        assert_eq!(a, with(json!({"statusCode": 307})), "as an export says it");
        let moved = with(json!({"statusCode": 301}));
        assert!(moved != a && moved != with(json!({"statusCode": 308})));
    }

    #[test]
    fn what_is_behind_the_size_or_cut_off_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert!(KnownRows::read(&path, u64::MAX).unwrap().codes.is_empty());
        let mut known = KnownRows::default();
        let keys = [known.key(&draft("https://a.test/"), None), known.key(&draft("https://b.test/"), None)];
        let line = |key: RowKey, id: &str| format!("{}\t{id}\thttps://tn.gg/{id}\n", key.as_text());
        let text = format!("{}{}{}", line(keys[0], "OLD"), line(keys[0], "A"), line(keys[1], "B"));
        std::fs::write(&path, text.trim_end()).unwrap();
        drop(RowLog::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a line's end is added");
        let size = (text.len() - line(keys[1], "B").len()) as u64;
        let mut known = KnownRows::read(&path, size).unwrap();
        assert_eq!(known.take(keys[0]), Some(code("A")), "the last one counts");
        assert_eq!(known.take(keys[0]), None, "it stands for one row");
        assert_eq!(known.take(keys[1]), None, "it is of a later import");
        assert_eq!(KnownRows::read(&path, text.len() as u64).unwrap().take(keys[1]), Some(code("B")));
    }
}
