//! The operator's city database: a file that is reloaded when it changes.

use std::{
    fs, io,
    net::IpAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use shared::geo::{CityDatabase, GeoIp, Locality};
use tokio_util::sync::CancellationToken;

use crate::error::EdgeError;

/// Time between two checks of the file.
///
/// A check is one `stat`, and works where change notifications do not: network file systems, bind mounts.
const LOOK: Duration = Duration::from_secs(1);

/// A city database that follows its file; clones share it.
#[derive(Debug, Clone)]
pub struct GeoDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    current: ArcSwap<CityDatabase>,
    /// The version of the file that was read at the start.
    first: Option<Version>,
}

/// Identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

impl GeoDatabase {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a database in MaxMind's form.
    pub fn open(path: &Path) -> Result<Self, EdgeError> {
        // Before reading: a file that is replaced meanwhile is read once more.
        let first = version(path);
        let current = ArcSwap::from_pointee(read(path)?);
        Ok(Self(Arc::new(Inner { path: path.to_owned(), current, first })))
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// It cannot be used; the database before it stays in use.
    pub fn reload(&self) -> Result<(), EdgeError> {
        let database = read(&self.0.path)?;
        tracing::info!(?database, "city database read");
        self.0.current.store(Arc::new(database));
        Ok(())
    }

    /// Reads the file again whenever it was replaced, until `shutdown`.
    ///
    /// A file that cannot be used leaves the one before it in use, and is logged once.
    pub async fn follow(self, shutdown: CancellationToken) {
        let follow = async {
            let mut seen = self.0.first;
            loop {
                tokio::time::sleep(LOOK).await;
                let geo = self.clone();
                match tokio::task::spawn_blocking(move || geo.look(seen)).await {
                    Ok(version) => seen = version,
                    Err(error) => tracing::error!(%error, "reading the city database panicked"),
                }
            }
        };
        shutdown.run_until_cancelled(follow).await;
    }

    /// Reads the file if it differs from the version seen before; returns its present version, if it exists.
    fn look(&self, seen: Option<Version>) -> Option<Version> {
        let version = version(&self.0.path);
        if seen != version
            && let Err(error) = self.reload()
        {
            tracing::error!(%error, "kept the previous city database");
        }
        version
    }
}

impl GeoIp for GeoDatabase {
    fn find(&self, ip: IpAddr) -> Locality {
        self.0.current.load().find(ip)
    }

    fn find_shared(&self, ip: IpAddr) -> Arc<Locality> {
        self.0.current.load().find_shared(ip)
    }
}

fn version(path: &Path) -> Option<Version> {
    let file = fs::metadata(path).ok()?;
    Some(Version { modified: file.modified().ok(), size: file.len(), inode: file.ino() })
}

fn read(path: &Path) -> Result<CityDatabase, EdgeError> {
    let failed = |source| EdgeError::Storage { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(failed)?;
    CityDatabase::parse(bytes).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}
