//! Downloads of large files: streamed to the disk, and checked by their hash.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use reqwest::{Url, header::ETAG};

use super::{Client, RequestError, chain};

/// A whole download: an hour is 20 GB at 6 MB/s.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Bytes that are hashed at once.
const BUFFER: usize = 256 * 1024;

/// Tries of one file.
const TRIES: u32 = 5;

impl Client {
    /// Downloads a file, unless it is there already; it has its name only when it is whole. Returns its bytes.
    ///
    /// # Errors
    /// The service refused or did not answer, what came is not the file, or it cannot be written.
    pub async fn download(&self, url: &Url, to: &Path) -> Result<u64, RequestError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_download(url, to).await {
                Err(RequestError::Unreachable(_)) if tries < TRIES => {}
                ended => return ended,
            }
        }
    }

    async fn try_download(&self, url: &Url, to: &Path) -> Result<u64, RequestError> {
        let response = self.patience.send(|| self.http.get(url.clone()).timeout(TIMEOUT)).await?;
        let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok());
        let etag = etag.map(|text| text.trim_matches('"').to_owned());
        let failed =
            |error: &dyn std::fmt::Display| RequestError::Unreachable(format!("{}: {error}", to.display()));
        let known = hash_of(to).map_err(|error| failed(&error))?;
        if let Some((bytes, _)) = known.filter(|(_, hash)| etag.as_deref() == Some(hash.as_str())) {
            return Ok(bytes);
        }
        let part = part_of(to);
        let mut file = std::fs::File::create(&part).map_err(|error| failed(&error))?;
        let (mut bytes, mut hasher) = (0, blake3::Hasher::new());
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| RequestError::Unreachable(chain(&error)))?;
            hasher.update(&piece);
            bytes += piece.len() as u64;
            file.write_all(&piece).map_err(|error| failed(&error))?;
        }
        let hash = hasher.finalize().to_hex();
        if etag.is_some_and(|etag| !hash.starts_with(&etag)) {
            return Err(failed(&"what came is not the whole file"));
        }
        file.sync_all().map_err(|error| failed(&error))?;
        std::fs::rename(&part, to).map_err(|error| failed(&error))?;
        Ok(bytes)
    }
}

/// The file while it comes.
fn part_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    to.with_file_name(name)
}

/// Bytes and hash of a file that is there, as the service shows the hash.
fn hash_of(path: &Path) -> std::io::Result<Option<(u64, String)>> {
    let mut file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let bytes = file.metadata()?.len();
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; BUFFER]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
    }
    Ok(Some((bytes, hasher.finalize().to_hex()[..32].to_owned())))
}
