//! Files that may be replaced while the process runs: read again when they change.

use std::{
    io,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use platform::FileWatch;
use tokio_util::sync::CancellationToken;

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
    read: fn(&Path) -> io::Result<T>,
    current: RwLock<Arc<T>>,
    /// With the versions of the files that were read at the start.
    watch: FileWatch,
}

impl<T: Send + Sync + 'static> Followed<T> {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(path: &Path, read: fn(&Path) -> io::Result<T>) -> io::Result<Self> {
        // Before reading, so that a file that is replaced meanwhile is read again.
        let watch = FileWatch::new(path);
        let current = RwLock::new(Arc::new(read(path)?));
        Ok(Self(Arc::new(Inner { read, current, watch })))
    }

    /// The newest valid content.
    pub(crate) fn current(&self) -> Arc<T> {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it again whenever it changed, until `shutdown`.
    ///
    /// What cannot be used leaves the one before it in use, and is logged once.
    pub(crate) async fn follow(self, shutdown: CancellationToken) {
        let watch = self.0.watch.clone();
        watch.follow(shutdown, move || self.reload()).await;
    }

    fn reload(&self) {
        let path = self.0.watch.path();
        match (self.0.read)(path) {
            Ok(fresh) => {
                tracing::info!(path = %path.display(), "read again");
                *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
            }
            Err(error) => tracing::error!(%error, path = %path.display(), "kept the previous content"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changed_files_are_reloaded_and_broken_ones_ignored() {
        fn number(path: &Path) -> io::Result<u32> {
            fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "1").unwrap();
        let followed = Followed::open(&path, number).unwrap();
        let mut watch = followed.0.watch.clone();
        assert_eq!((*followed.current(), watch.look()), (1, false));
        for (text, current) in [("22", 22), ("broken", 22)] {
            fs::write(&path, text).unwrap();
            assert!(watch.look(), "{text}");
            followed.reload();
            assert_eq!(*followed.current(), current, "{text}");
        }
        assert!(Followed::open(&path, number).is_err());
    }
}
