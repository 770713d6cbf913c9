//! The operator's city database, reloaded while the process runs.

use std::{fs, io, net::IpAddr, path::Path, sync::Arc};

use shared::geo::{CityDatabase, GeoIp, Locality};
use tokio_util::sync::CancellationToken;

use crate::follow::Followed;

/// A city database that follows its file; clones share it.
#[derive(Debug, Clone)]
pub struct GeoDatabase(Followed<CityDatabase>);

impl GeoDatabase {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a database in MaxMind's form.
    pub fn open(path: &Path) -> io::Result<Self> {
        let read = |path: &Path| {
            let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            CityDatabase::parse(fs::read(path)?).map_err(invalid)
        };
        Followed::open(path, read).map(Self)
    }

    /// Reads the file again whenever it was replaced, until `shutdown`.
    pub async fn follow(self, shutdown: CancellationToken) {
        self.0.follow(shutdown).await;
    }
}

impl GeoIp for GeoDatabase {
    fn find(&self, ip: IpAddr) -> Locality {
        self.0.current().find(ip)
    }

    fn find_shared(&self, ip: IpAddr) -> Arc<Locality> {
        self.0.current().find_shared(ip)
    }
}
