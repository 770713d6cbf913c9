//! The data folder: made for its owner alone, and held by one process at a time.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crate::{config::ConfigError, system};

/// An open data folder; the lock lasts as long as this lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
    _database: Option<File>,
}

impl DataDir {
    /// Makes the folder (mode 0700) when it is missing, and takes its lock.
    ///
    /// # Errors
    /// The folder cannot be used, or another process holds it.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let bad = |error: &io::Error| {
            ConfigError::new(
                "WAYMARK_DATA_DIR",
                format!("{} cannot be used: {error}; give a folder to write to", path.display()),
            )
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| bad(&error))?;
        match try_lock(&path.join("waymark.lock")).map_err(|error| bad(&error))? {
            Some(lock) => Ok(Self { path: path.to_owned(), _lock: lock, _database: None }),
            None => Err(ConfigError::new(
                "WAYMARK_DATA_DIR",
                format!("{} is in use by another process: stop it, or give another folder", path.display()),
            )),
        }
    }

    /// Takes a SQLite database, wherever it is, for as long as the folder is held.
    ///
    /// It serves one process: `wait=edges` of another would not know of this one's edge.
    ///
    /// # Errors
    /// The folder of the database cannot be used, or another process serves the database.
    pub fn hold_database(&mut self, database: &Path) -> Result<(), ConfigError> {
        let refused =
            |what: String| ConfigError::new("DATABASE_URL", format!("{} {what}", database.display()));
        let held = try_lock(&beside(database, ".lock")).map_err(|error| {
            refused(format!("cannot be used: {error}; give a file in a folder to write to"))
        })?;
        let busy =
            || refused("is served by another process: stop it, or use Postgres for several".to_owned());
        self._database = Some(held.ok_or_else(busy)?);
        Ok(())
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name that this folder keeps: made at random when `file` is missing.
    ///
    /// # Errors
    /// The file can be neither read nor written.
    pub fn kept_name(&self, file: &str) -> io::Result<String> {
        kept_name(&self.path.join(file))
    }
}

/// The id of a SQLite database's history, in `<database>.history`.
///
/// It is beside the database on purpose: who copies the database file alone gets a new epoch.
///
/// # Errors
/// The file can be neither read nor written.
pub fn history_id(database: &Path) -> io::Result<String> {
    kept_name(&beside(database, ".history"))
}

/// Makes an empty database file that only its owner may read; SQLite gives its other files the same mode.
///
/// # Errors
/// The file cannot be made.
pub fn make_private(database: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(database).map(|_| ())
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The lock of a file, which is made if it is missing; `None` when another process has it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

fn kept_name(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let name = system::random_name().map_err(io::Error::other)?;
    write_private(path, name.as_bytes())?;
    Ok(name)
}

/// Writes a file that only its owner may read, whole or not at all, and on disk when this returns.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_atomic(path, bytes, 0o600)
}

/// Writes a file whole or not at all, and on disk when this returns.
///
/// # Errors
/// The file cannot be written.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(mode).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_database_is_private_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("waymark.db");
        make_private(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "rows").unwrap();
        make_private(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"rows");
    }

    #[test]
    fn the_folder_is_private_and_taken_once() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/data");
        let held = DataDir::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let refused = DataDir::open(&path).unwrap_err();
        assert_eq!(refused.key, "WAYMARK_DATA_DIR");
        assert!(refused.reason.contains("in use by another process"), "{refused}");
        drop(held);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn a_database_is_served_by_one_process_whatever_its_folder() {
        let parent = tempfile::tempdir().unwrap();
        let [mut first, mut second] =
            ["a", "b"].map(|name| DataDir::open(&parent.path().join(name)).unwrap());
        let database = first.path().join("waymark.db");
        first.hold_database(&database).unwrap();
        let refused = second.hold_database(&database).unwrap_err();
        assert_eq!(refused.key, "DATABASE_URL");
        assert!(refused.reason.contains("served by another process"), "{refused}");
        second.hold_database(&second.path().join("waymark.db")).unwrap();
        drop(first);
        second.hold_database(&database).unwrap();
        assert!(second.hold_database(&parent.path().join("none/x.db")).is_err());
    }

    #[test]
    fn a_name_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("waymark.db");
        let first = history_id(&database).unwrap();
        assert_eq!(first.len(), 16);
        assert_eq!(history_id(&database).unwrap(), first);
        fs::remove_file(folder.path().join("waymark.db.history")).unwrap();
        assert_ne!(history_id(&database).unwrap(), first);
    }
}
