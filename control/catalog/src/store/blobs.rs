//! The content of files: a folder or an S3 bucket.

use std::{ops::Range, os::unix::fs::DirBuilderExt as _, path::Path as FsPath, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream::BoxStream};
use object_store::{
    GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, aws::AmazonS3Builder,
    local::LocalFileSystem, path::Path,
};
use tokio::time::Instant;

use super::StoreError;

/// Bytes of one part of an upload: the least that S3 takes, and what one upload holds in memory.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// An upload that nothing was added to for this long has no process any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How fast an upload has to come in.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Bytes a second at least.
    pub bytes_per_second: u64,
    /// The time over which they are counted.
    pub window: Duration,
}

impl Default for Rate {
    /// Anything within half a minute.
    fn default() -> Self {
        Self { bytes_per_second: 0, window: Duration::from_secs(30) }
    }
}

impl Rate {
    /// Bytes that have to come in each window.
    fn least(self) -> u64 {
        (self.bytes_per_second as f64 * self.window.as_secs_f64()).max(1.0) as u64
    }
}

/// Where the bytes of files are.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    max_bytes: u64,
}

/// The written blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// How many bytes.
    pub size_bytes: u64,
    /// The start of their BLAKE3 hash, in hexadecimal digits.
    pub etag: String,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There were more bytes than allowed.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// The client sent less than it has to in the time.
    #[error("the body came too slowly")]
    TooSlow,
    /// The client stopped in the middle.
    #[error("the body broke off")]
    BrokenOff,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<object_store::Error> for WriteError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(StoreError::blob(error))
    }
}

impl Blobs {
    /// Stores blobs in a folder, which is created; partial files that nobody has written to for a day are deleted.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub fn in_folder(folder: &FsPath, max_bytes: u64) -> Result<Self, StoreError> {
        let fault = |error: std::io::Error| {
            StoreError::Row(format!("the folder of files {}: {error}", folder.display()))
        };
        let private = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        private.map_err(fault)?;
        remove_staged(folder).map_err(fault)?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(StoreError::blob)?.with_fsync(true);
        Ok(Self::over(Arc::new(store), String::new(), max_bytes))
    }

    /// Keeps blobs in a bucket: `s3://bucket/prefix`, with the usual `AWS_…` variables for the rest.
    ///
    /// # Errors
    /// The URL or the variables cannot be used.
    pub fn in_bucket(url: &str, max_bytes: u64) -> Result<Self, StoreError> {
        let rest = url.strip_prefix("s3://").unwrap_or(url);
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build().map_err(StoreError::blob)?;
        Ok(Self::over(Arc::new(store), prefix.trim_matches('/').to_owned(), max_bytes))
    }

    fn over(store: Arc<dyn ObjectStore>, prefix: String, max_bytes: u64) -> Self {
        Self { store, prefix, max_bytes }
    }

    /// The same place, with another size of the largest blob.
    #[must_use]
    pub fn with_max_bytes(&self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self.clone() }
    }

    /// Largest blob.
    #[must_use]
    pub const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    fn path(&self, key: &str) -> Path {
        if self.prefix.is_empty() { Path::from(key) } else { Path::from(format!("{}/{key}", self.prefix)) }
    }

    /// Writes a blob as its bytes arrive: completely, or not at all.
    ///
    /// # Errors
    /// [`WriteError`]; what was written so far is removed.
    pub async fn write<E>(
        &self,
        key: &str,
        body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    ) -> Result<Written, WriteError> {
        self.write_at_rate(key, body, Rate::default()).await
    }

    /// The same, for a body that must arrive at a minimum rate.
    ///
    /// # Errors
    /// [`WriteError`]; what was written so far is removed.
    pub async fn write_at_rate<E>(
        &self,
        key: &str,
        body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
        rate: Rate,
    ) -> Result<Written, WriteError> {
        let path = self.path(key);
        let mut upload = None;
        match self.pour(&path, body, rate, &mut upload).await {
            Ok(written) => Ok(written),
            Err(error) => {
                if let Some(mut upload) = upload {
                    // If this fails, the store's own clean-up deletes the parts.
                    let _ = upload.abort().await;
                }
                Err(error)
            }
        }
    }

    async fn pour<E>(
        &self,
        path: &Path,
        body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
        rate: Rate,
        upload: &mut Option<Box<dyn MultipartUpload>>,
    ) -> Result<Written, WriteError> {
        let (mut size_bytes, mut hasher) = (0_u64, blake3::Hasher::new());
        let mut buffer = BytesMut::new();
        let (mut window_ends, mut came) = (Instant::now() + rate.window, 0_u64);
        loop {
            let chunk = match tokio::time::timeout_at(window_ends, body.next()).await {
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(_))) => return Err(WriteError::BrokenOff),
                Err(_) if came < rate.least() => return Err(WriteError::TooSlow),
                Err(_) => {
                    (window_ends, came) = (Instant::now() + rate.window, 0);
                    continue;
                }
            };
            came = came.saturating_add(chunk.len() as u64);
            size_bytes = size_bytes.saturating_add(chunk.len() as u64);
            if size_bytes > self.max_bytes {
                return Err(WriteError::TooLarge(self.max_bytes));
            }
            hasher.update(&chunk);
            buffer.extend_from_slice(&chunk);
            while buffer.len() >= PART_BYTES {
                let part = buffer.split_to(PART_BYTES).freeze();
                self.put_part(path, upload, part).await?;
                // Time spent by the store is not counted against the client.
                (window_ends, came) = (Instant::now() + rate.window, 0);
            }
        }
        let rest = buffer.freeze();
        if upload.is_none() {
            self.store.put(path, PutPayload::from_bytes(rest)).await?;
        } else {
            if !rest.is_empty() {
                self.put_part(path, upload, rest).await?;
            }
            if let Some(upload) = upload {
                upload.complete().await?;
            }
        }
        let etag = hasher.finalize().to_hex()[..32].to_owned();
        Ok(Written { size_bytes, etag })
    }

    async fn put_part(
        &self,
        path: &Path,
        upload: &mut Option<Box<dyn MultipartUpload>>,
        part: Bytes,
    ) -> Result<(), WriteError> {
        let upload = match upload {
            Some(upload) => upload,
            None => upload.insert(self.store.put_multipart(path).await?),
        };
        Ok(upload.put_part(PutPayload::from_bytes(part)).await?)
    }

    /// Whether there is a blob.
    pub async fn contains(&self, key: &str) -> Result<bool, StoreError> {
        match self.store.head(&self.path(key)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(StoreError::blob(error)),
        }
    }

    /// The bytes of a blob as they are read; `None` when it is gone.
    pub async fn read(
        &self,
        key: &str,
    ) -> Result<Option<BoxStream<'static, object_store::Result<Bytes>>>, StoreError> {
        self.open(key, GetOptions::default()).await
    }

    /// Some bytes of a blob as they are read; `None` when it is gone. The range must hold one that the blob has.
    pub async fn read_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Option<BoxStream<'static, object_store::Result<Bytes>>>, StoreError> {
        self.open(key, GetOptions::default().with_range(Some(range))).await
    }

    async fn open(
        &self,
        key: &str,
        options: GetOptions,
    ) -> Result<Option<BoxStream<'static, object_store::Result<Bytes>>>, StoreError> {
        match self.store.get_opts(&self.path(key), options).await {
            Ok(found) => Ok(Some(found.into_stream())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::blob(error)),
        }
    }

    /// Deletes a blob; an absent one counts as deleted.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::blob(error)),
        }
    }
}

/// Removes uploads that a killed process left: `<name>#<number>`, by which the folder's store writes. Processes that share the folder
/// may have uploads under way, which are written to again and again.
fn remove_staged(folder: &FsPath) -> std::io::Result<()> {
    for account in std::fs::read_dir(folder)? {
        let account = account?.path();
        if !account.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(account)? {
            let file = file?.path();
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.rsplit_once('#').is_some_and(|(_, number)| number.parse::<u64>().is_ok()) {
                match remove_if_abandoned(&file) {
                    // Its upload has ended meanwhile.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
        }
    }
    Ok(())
}

fn remove_if_abandoned(file: &FsPath) -> std::io::Result<()> {
    let written = std::fs::metadata(file)?.modified()?;
    // Of a time in the future, after the clock was set back, the age is unknown.
    if written.elapsed().is_ok_and(|age| age > ABANDONED) { std::fs::remove_file(file) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn chunks(count: usize) -> impl Stream<Item = Result<Bytes, ()>> + Unpin {
        stream::iter((0..count).map(|n| Ok(Bytes::from(vec![n as u8; 1024 * 1024]))))
    }

    fn files(folder: &FsPath) -> Vec<String> {
        let account = folder.join("a");
        let Ok(entries) = std::fs::read_dir(account) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[tokio::test]
    async fn blobs_are_complete_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(dir.path(), 12 << 20).unwrap();
        for (count, what) in [(0, "nothing"), (1, "one put"), (5, "one part"), (12, "parts and a rest")] {
            let written = blobs.write("a/b", &mut chunks(count)).await.unwrap();
            assert_eq!(written.size_bytes, (count << 20) as u64, "{what}");
            let mut read = blobs.read("a/b").await.unwrap().unwrap();
            let (mut size, mut hasher) = (0, blake3::Hasher::new());
            while let Some(chunk) = read.next().await {
                let chunk = chunk.unwrap();
                size += chunk.len();
                hasher.update(&chunk);
            }
            assert_eq!(size, count << 20, "{what}");
            assert_eq!(hasher.finalize().to_hex()[..32], written.etag, "{what}");
        }
        assert!(blobs.contains("a/b").await.unwrap());
        blobs.delete("a/b").await.unwrap();
        assert!(!blobs.contains("a/b").await.unwrap());
        blobs.delete("a/b").await.unwrap();
        assert!(blobs.read("a/b").await.unwrap().is_none());
        let large = blobs.write("a/b", &mut chunks(13)).await;
        assert!(matches!(large, Err(WriteError::TooLarge(_))), "{large:?}");
        for after in [0, 3, 7] {
            let mut broken = chunks(after).chain(stream::iter([Err(())]));
            let broken = blobs.write("a/b", &mut broken).await;
            assert!(matches!(broken, Err(WriteError::BrokenOff)), "{broken:?}");
        }
        assert_eq!(files(dir.path()), [""; 0]);
    }

    #[tokio::test]
    async fn a_range_is_what_it_names() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(dir.path(), 12 << 20).unwrap();
        blobs.write("a/b", &mut chunks(3)).await.unwrap();
        for (range, expected) in [(0..1, 1), ((1 << 20) - 1..(1 << 20) + 2, 3), (5..3 << 20, (3 << 20) - 5)] {
            let mut read = blobs.read_range("a/b", range.clone()).await.unwrap().unwrap();
            let mut found = Vec::new();
            while let Some(chunk) = read.next().await {
                found.extend_from_slice(&chunk.unwrap());
            }
            assert_eq!(found.len(), expected, "{range:?}");
            assert!(range.zip(found).all(|(at, byte)| u64::from(byte) == at >> 20));
        }
        assert!(blobs.read_range("a/c", 0..1).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn abandoned_uploads_are_removed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(dir.path(), 1 << 20).unwrap();
        blobs.write("a/b", &mut chunks(1)).await.unwrap();
        let long_ago = std::time::SystemTime::now() - ABANDONED - Duration::from_secs(60);
        for (name, is_old) in [("a/c#1", true), ("a/d#1", false)] {
            let mut file = std::fs::File::create(dir.path().join(name)).unwrap();
            std::io::Write::write_all(&mut file, b"half").unwrap();
            if is_old {
                file.set_modified(long_ago).unwrap();
            }
        }
        // Another process begins with the same folder.
        Blobs::in_folder(dir.path(), 1 << 20).unwrap();
        let mut left = files(dir.path());
        left.sort();
        assert_eq!(left, ["b", "d#1"]);
    }
}
