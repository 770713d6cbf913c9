//! Files that may be replaced while the process runs, noticed by a look at them once a second.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

/// Time between two looks.
///
/// A look is one `stat` per file, and works where change notifications do not: network file systems, bind mounts.
const LOOK: Duration = Duration::from_secs(1);

/// A file, or a folder with its files, and the versions of them that were seen last.
#[derive(Debug, Clone)]
pub struct FileWatch {
    path: PathBuf,
    seen: Vec<Version>,
}

/// Identifies a version of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    path: PathBuf,
    /// Seconds and nanoseconds of the last change of content, owner or mode: a key that only its owner may read is
    /// often written first and protected then.
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl FileWatch {
    /// Notes the present versions.
    ///
    /// Call it before reading, so that a file that is replaced meanwhile is read again.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: versions(path) }
    }

    /// The file or the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file changed, came or went since the last look; blocks for one `stat` per file.
    pub fn look(&mut self) -> bool {
        let now = versions(&self.path);
        let is_changed = now != self.seen;
        self.seen = now;
        is_changed
    }

    /// Looks once a second until `shutdown`, and calls `read` after each change; `read` may block.
    ///
    /// A change of several files may be seen in two looks; then `read` is called twice.
    pub async fn follow(mut self, shutdown: CancellationToken, read: impl Fn() + Send + Sync + 'static) {
        let read = Arc::new(read);
        let follow = async {
            loop {
                tokio::time::sleep(LOOK).await;
                let (mut watch, read) = (self.clone(), read.clone());
                let looked = tokio::task::spawn_blocking(move || {
                    if watch.look() {
                        read();
                    }
                    watch
                });
                match looked.await {
                    Ok(watch) => self = watch,
                    Err(error) => {
                        tracing::error!(%error, path = %self.path.display(), "reading a followed file panicked");
                    }
                }
            }
        };
        shutdown.run_until_cancelled(follow).await;
    }
}

/// The file, or each file of a folder.
fn versions(path: &Path) -> Vec<Version> {
    let one = |path: PathBuf| {
        let file = fs::metadata(&path).ok()?;
        Some(Version {
            path,
            changed: (file.ctime(), file.ctime_nsec()),
            size: file.len(),
            inode: file.ino(),
        })
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
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_change_of_a_folder_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "1").unwrap();
        let (mut watch, mut of_file) = (FileWatch::new(folder.path()), FileWatch::new(&at("a")));
        let mut changed = |why: &str, is_of_file: bool| {
            assert!(watch.look() && !watch.look(), "{why}");
            assert_eq!((of_file.look(), of_file.look()), (is_of_file, false), "{why}");
        };
        fs::write(at("a"), "22").unwrap();
        changed("another size", true);
        fs::write(at("b"), "22").unwrap();
        changed("a new file", false);
        fs::set_permissions(at("b"), fs::Permissions::from_mode(0o600)).unwrap();
        changed("another mode", false);
        fs::rename(at("b"), at("a")).unwrap();
        changed("another file of the same size in its place", true);
        fs::remove_file(at("a")).unwrap();
        changed("it is gone", true);
    }
}
