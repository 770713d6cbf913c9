//! Downloads of large files: streamed to the disk, continued where they broke off, and checked by their hash.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use reqwest::{
    StatusCode, Url,
    header::{IF_RANGE, RANGE},
};

use super::{Client, RequestError, chain};

/// A whole download: an hour is 20 GB at 6 MB/s.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Bytes that are hashed at once.
const BUFFER: usize = 256 * 1024;

/// Tries of one file.
const TRIES: u32 = 5;

impl Client {
    /// Downloads a file, unless it is there already; it has its name only when it is whole. `etag` is the start of its hash.
    /// What came of it before, also of another run, is not asked for again. Returns its bytes.
    ///
    /// # Errors
    /// The service refused or did not answer, what came is not the file, or it cannot be written.
    pub async fn download(&self, url: &Url, to: &Path, etag: &str) -> Result<u64, RequestError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_download(url, to, etag).await {
                Err(RequestError::Unreachable(_)) if tries < TRIES => {}
                ended => return ended,
            }
        }
    }

    async fn try_download(&self, url: &Url, to: &Path, etag: &str) -> Result<u64, RequestError> {
        let failed =
            |error: &dyn std::fmt::Display| RequestError::Unreachable(format!("{}: {error}", to.display()));
        let known = hashed(to).map_err(|error| failed(&error))?;
        if let Some((bytes, _)) = known.filter(|(_, hasher)| is_of(hasher, etag)) {
            return Ok(bytes);
        }
        let part = part_of(to, etag);
        let (mut bytes, mut hasher) = hashed(&part).map_err(|error| failed(&error))?.unwrap_or_default();
        if bytes == 0 || !is_of(&hasher, etag) {
            let begun = bytes;
            let request = || match (begun, self.http.get(url.clone()).timeout(TIMEOUT)) {
                (0, request) => request,
                (begun, request) => {
                    request.header(RANGE, format!("bytes={begun}-")).header(IF_RANGE, format!("\"{etag}\""))
                }
            };
            let response = match self.patience.send(request).await {
                // What is there is longer than the file.
                Err(RequestError::Refused { status: StatusCode::RANGE_NOT_SATISFIABLE, text }) => {
                    std::fs::remove_file(&part).map_err(|error| failed(&error))?;
                    return Err(RequestError::Unreachable(text));
                }
                answer => answer?,
            };
            let continues = response.status() == StatusCode::PARTIAL_CONTENT;
            if !continues {
                (bytes, hasher) = (0, blake3::Hasher::new());
            }
            let mut options = OpenOptions::new();
            let options = options.create(true).write(true).append(continues).truncate(!continues);
            let mut file = options.open(&part).map_err(|error| failed(&error))?;
            let mut pieces = response.bytes_stream();
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|error| RequestError::Unreachable(chain(&error)))?;
                hasher.update(&piece);
                bytes += piece.len() as u64;
                file.write_all(&piece).map_err(|error| failed(&error))?;
            }
            if !is_of(&hasher, etag) {
                drop(file);
                std::fs::remove_file(&part).map_err(|error| failed(&error))?;
                return Err(failed(&"what came is not the whole file"));
            }
            file.sync_all().map_err(|error| failed(&error))?;
        }
        std::fs::rename(&part, to).map_err(|error| failed(&error))?;
        Ok(bytes)
    }
}

/// The file while it comes. Its name has the hash, so that parts of two files are not joined.
fn part_of(to: &Path, etag: &str) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    let tag: String = etag.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    name.push(format!(".{tag}.part"));
    to.with_file_name(name)
}

/// Whether what was hashed is the file whose hash begins so.
fn is_of(hasher: &blake3::Hasher, etag: &str) -> bool {
    etag.len() >= 32 && hasher.finalize().to_hex().starts_with(etag)
}

/// Bytes of a file that is there, and their hash so far.
fn hashed(path: &Path) -> std::io::Result<Option<(u64, blake3::Hasher)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let (mut bytes, mut hasher, mut buffer) = (0, blake3::Hasher::new(), vec![0; BUFFER]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(Some((bytes, hasher)));
        }
        hasher.update(&buffer[..count]);
        bytes += count as u64;
    }
}
