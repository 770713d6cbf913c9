//! Files that may be replaced while the process runs: read again when they change.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use tokio_util::sync::CancellationToken;

/// Time between two checks.
///
/// A check is one `stat` per file, and works where change notifications do not: network file systems, bind mounts.
const LOOK: Duration = Duration::from_secs(1);

/// The parsed content of a file or a folder of files; clones share it.
#[derive(Debug)]
pub(crate) struct Followed<T>(Arc<Inner<T>>);

impl<T> Clone for Followed<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<T> {
    path: PathBuf,
    read: fn(&Path) -> io::Result<T>,
    current: RwLock<Arc<T>>,
    /// The versions of the files that were read at the start.
    first: Vec<Version>,
}

/// Identifies a version of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    path: PathBuf,
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

impl<T: Send + Sync + 'static> Followed<T> {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(path: &Path, read: fn(&Path) -> io::Result<T>) -> io::Result<Self> {
        // Before reading, so that a file that is replaced meanwhile is read again.
        let first = versions(path);
        let current = RwLock::new(Arc::new(read(path)?));
        Ok(Self(Arc::new(Inner { path: path.to_owned(), read, current, first })))
    }

    /// The newest valid content.
    pub(crate) fn current(&self) -> Arc<T> {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it again whenever it changed, until `shutdown`.
    ///
    /// What cannot be used leaves the one before it in use, and is logged once.
    pub(crate) async fn follow(self, shutdown: CancellationToken) {
        let follow = async {
            let mut seen = self.0.first.clone();
            loop {
                tokio::time::sleep(LOOK).await;
                let this = self.clone();
                let before = seen.clone();
                match tokio::task::spawn_blocking(move || this.look(before)).await {
                    Ok(versions) => seen = versions,
                    Err(error) => tracing::error!(%error, "reading a followed file panicked"),
                }
            }
        };
        shutdown.run_until_cancelled(follow).await;
    }

    fn look(&self, seen: Vec<Version>) -> Vec<Version> {
        let now = versions(&self.0.path);
        if now != seen {
            match (self.0.read)(&self.0.path) {
                Ok(fresh) => {
                    tracing::info!(path = %self.0.path.display(), "read again");
                    *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
                }
                Err(error) => {
                    tracing::error!(%error, path = %self.0.path.display(), "kept the previous content");
                }
            }
        }
        now
    }
}

/// The file, or each file of a folder.
fn versions(path: &Path) -> Vec<Version> {
    let one = |path: PathBuf| {
        let file = fs::metadata(&path).ok()?;
        Some(Version { path, modified: file.modified().ok(), size: file.len(), inode: file.ino() })
    };
    let mut all: Vec<Version> = match fs::read_dir(path) {
        Ok(files) => files.filter_map(|file| one(file.ok()?.path())).collect(),
        Err(_) => one(path.to_owned()).into_iter().collect(),
    };
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changed_files_are_reloaded_and_broken_ones_ignored() {
        fn number(path: &Path) -> io::Result<u32> {
            fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "1").unwrap();
        let followed = Followed::open(&path, number).unwrap();
        let seen = followed.0.first.clone();
        assert_eq!((*followed.current(), followed.look(seen.clone()) == seen), (1, true));
        fs::write(&path, "22").unwrap();
        let seen = followed.look(seen);
        assert_eq!(*followed.current(), 22);
        fs::write(&path, "broken").unwrap();
        followed.look(seen);
        assert_eq!(*followed.current(), 22);
        assert!(Followed::open(&path, number).is_err());
    }
}
