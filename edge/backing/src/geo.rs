//! The operator's city database: a file that is reloaded when it changes.

use std::{fs, io, net::IpAddr, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use platform::FileWatch;
use shared::geo::{CityDatabase, GeoIp, Locality};
use tokio_util::sync::CancellationToken;

use crate::EdgeError;

/// A city database that follows its file; clones share it.
#[derive(Debug, Clone)]
pub struct GeoDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    current: ArcSwap<CityDatabase>,
    /// With the version of the file that was read at the start.
    watch: FileWatch,
}

impl GeoDatabase {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a database in MaxMind's form.
    pub fn open(path: &Path) -> Result<Self, EdgeError> {
        // Before reading: a file that is replaced meanwhile is read once more.
        let watch = FileWatch::new(path);
        let current = ArcSwap::from_pointee(read(path)?);
        Ok(Self(Arc::new(Inner { current, watch })))
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// It cannot be used; the database before it stays in use.
    pub fn reload(&self) -> Result<(), EdgeError> {
        let database = read(self.0.watch.path())?;
        tracing::info!(?database, "city database read");
        self.0.current.store(Arc::new(database));
        Ok(())
    }

    /// Reads the file again whenever it was replaced, until `shutdown`.
    ///
    /// A file that cannot be used leaves the one before it in use, and is logged once.
    pub async fn follow(self, shutdown: CancellationToken) {
        let watch = self.0.watch.clone();
        let read = move || {
            if let Err(error) = self.reload() {
                tracing::error!(%error, "kept the previous city database");
            }
        };
        watch.follow(shutdown, read).await;
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

fn read(path: &Path) -> Result<CityDatabase, EdgeError> {
    let failed = |source| EdgeError::Storage { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(failed)?;
    CityDatabase::parse(bytes).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}
