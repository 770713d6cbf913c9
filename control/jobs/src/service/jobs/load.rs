//! First phase of a job: its input is read once and stored in chunks.
//!
//! Entries are stored as given, valid and invalid lines alike, so that the position of each is known, no worker needs
//! the file again, and the file may be deleted. Interrupted reading starts over.

use std::{
    fs::File,
    io::Write,
    time::{Duration, Instant},
};

pub use background::worker::Stepped;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    CLEAR_STEP,
    archive::{self, ArchiveError},
};
use crate::{
    domain::{
        job::{Job, JobEvent, JobStatus, MAX_OPERATIONS},
        job_input::{Format, Source},
        job_lines::{Entry, Lines},
    },
    error::ServiceError,
    service::JobState,
    store::{
        Ctx, StoreError, job_chunks,
        job_chunks::Chunk,
        job_leases::{self, Claimed},
    },
};

/// Entries of one part: what one step may carry out at most.
pub(super) const CHUNK_ENTRIES: usize = 5_000;

/// Bytes of ids after which a part is closed: ids are 24 bytes as a rule.
const CHUNK_BYTES: usize = 256 * 1024;

/// Parts that are written by one transaction.
const CHUNKS_AT_ONCE: usize = 8;

/// Time after which the lease is renewed, when there was nothing to write.
const RENEW: Duration = Duration::from_secs(8);

/// Longest silence of the store of files.
const SILENCE: Duration = Duration::from_secs(20);

/// Batches of entries that wait for the database.
const WAITING: usize = 4;

/// Why a reading ended early.
enum Stop {
    /// The input cannot be read; a sentence about it.
    Unreadable(String),
    /// There is more to do, or somebody else has the job.
    Left(Stepped),
    Error(ServiceError),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Error(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Error(error.into())
    }
}

/// Reads the input of a job that was claimed for it.
///
/// # Errors
/// The database or the store of files failed; somebody may try again.
pub async fn load(
    state: &JobState,
    claimed: &mut Claimed,
    stop: &CancellationToken,
) -> Result<Stepped, ServiceError> {
    if claimed.item.status == JobStatus::Enqueued {
        let taken = claimed.item.clone().on(JobEvent::Taken, state.clock.now())?;
        if write(state, claimed, taken).await? == Stepped::Lost {
            return Ok(Stepped::Lost);
        }
    }
    if clear(state, claimed).await? == Stepped::Lost {
        return Ok(Stepped::Lost);
    }
    let mut reader = Reader {
        state,
        claimed: claimed.clone(),
        stop,
        total: 0,
        first: 0,
        bytes: 0,
        entries: Vec::new(),
        chunks: Vec::new(),
        held: Instant::now(),
    };
    let event = match reader.read().await {
        Ok(total) => JobEvent::Loaded(total),
        Err(Stop::Unreadable(fault)) => JobEvent::Broken(fault),
        Err(Stop::Left(stepped)) => return Ok(stepped),
        Err(Stop::Error(error)) => return Err(error),
    };
    let mut job = claimed.item.clone().on(event, state.clock.now())?;
    job.blob = None;
    write(state, claimed, job).await
}

/// Writes the new state of a job that is still held.
pub(super) async fn write(
    state: &JobState,
    claimed: &mut Claimed,
    job: Job,
) -> Result<Stepped, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if !job_leases::write(&mut tx, claimed, &job).await? {
        return Ok(Stepped::Lost);
    }
    tx.commit().await?;
    state.readers.wake_events();
    state.metrics.moved(&claimed.item, &job);
    claimed.item = job;
    Ok(if claimed.item.status.is_terminal() { Stepped::Settled } else { Stepped::Moved })
}

/// Deletes what an interrupted reading left, while the job is held: of the next holder's reading nothing may go.
async fn clear(state: &JobState, claimed: &Claimed) -> Result<Stepped, ServiceError> {
    loop {
        let mut tx = state.db.begin(&Ctx::default()).await?;
        if job_leases::hold(&mut tx, claimed).await?.is_none() {
            return Ok(Stepped::Lost);
        }
        let removed = job_chunks::clear(&mut tx, claimed.item.seq, CLEAR_STEP).await?;
        tx.commit().await?;
        if removed < u64::from(CLEAR_STEP) {
            return Ok(Stepped::Moved);
        }
    }
}

struct Reader<'a> {
    state: &'a JobState,
    claimed: Claimed,
    stop: &'a CancellationToken,
    /// Entries so far.
    total: u64,
    /// Place of the first entry of the part that is being filled.
    first: u64,
    bytes: usize,
    entries: Vec<Entry>,
    chunks: Vec<Chunk>,
    held: Instant,
}

impl Reader<'_> {
    async fn read(&mut self) -> Result<u64, Stop> {
        let Some(request) = self.claimed.item.request.clone() else {
            return Err(ServiceError::Internal("a job without its request".to_owned()).into());
        };
        let key = request.input.key.as_deref();
        match request.input.source {
            Source::List { payload } => {
                self.take(payload.into_iter().map(Entry::Id).collect()).await?;
            }
            Source::File { format: Format::Csv, .. } => self.read_csv(key).await?,
            Source::File { format: Format::Zip, .. } => self.read_zip(key).await?,
        }
        self.close();
        self.flush().await?;
        Ok(self.total)
    }

    async fn read_csv(&mut self, key: Option<&str>) -> Result<(), Stop> {
        let mut bytes = self.open().await?;
        let mut lines = Lines::new("The file", key);
        let unreadable = |kind| Stop::Unreadable(format!("The file {kind}."));
        while let Some(part) = next(&mut bytes).await? {
            // A local file is read in large pieces.
            for part in part.chunks(64 * 1024) {
                let mut entries = Vec::new();
                lines.feed(part, &mut entries).map_err(unreadable)?;
                self.take(entries).await?;
            }
        }
        let mut entries = Vec::new();
        lines.finish(&mut entries).map_err(unreadable)?;
        self.take(entries).await
    }

    async fn read_zip(&mut self, key: Option<&str>) -> Result<(), Stop> {
        let file = self.spool().await?;
        let (sender, mut batches) = mpsc::channel::<Vec<Entry>>(WAITING);
        let key = key.map(str::to_owned);
        let task = tokio::task::spawn_blocking(move || {
            archive::read(file, key.as_deref(), |entries| sender.blocking_send(entries).is_ok())
        });
        while let Some(entries) = batches.recv().await {
            self.take(entries).await?;
        }
        let ended = task.await.map_err(|error| ServiceError::Internal(error.to_string()))?;
        ended.map_err(|error| match error {
            ArchiveError::Unfit(fault) => Stop::Unreadable(format!("The archive {fault}.")),
            ArchiveError::Io(_) | ArchiveError::Stopped => {
                ServiceError::Internal(format!("an archive: {error}")).into()
            }
        })
    }

    /// The whole content in a temporary file without a name, which goes with its last handle.
    async fn spool(&mut self) -> Result<File, Stop> {
        let failed =
            |error: std::io::Error| Stop::from(ServiceError::Internal(format!("a temporary file: {error}")));
        let mut bytes = self.open().await?;
        let mut file = tempfile::tempfile().map_err(failed)?;
        while let Some(part) = next(&mut bytes).await? {
            let written = tokio::task::spawn_blocking(move || file.write_all(&part).map(|()| file)).await;
            let written = written.map_err(|error| ServiceError::Internal(error.to_string()))?;
            file = written.map_err(failed)?;
            self.keep().await?;
        }
        Ok(file)
    }

    async fn open(&self) -> Result<Bytes, Stop> {
        let gone = || Stop::Unreadable("The file was removed before it was read.".to_owned());
        let blob = self.claimed.item.blob.as_deref().ok_or_else(gone)?;
        self.state.blobs.read(blob).await?.ok_or_else(gone)
    }

    /// Adds entries; writes full chunks.
    async fn take(&mut self, entries: Vec<Entry>) -> Result<(), Stop> {
        for entry in entries {
            self.total += 1;
            self.bytes += match &entry {
                Entry::Id(text) => text.len(),
                Entry::Bad { text, fault } => text.len() + fault.len(),
            };
            self.entries.push(entry);
            if self.entries.len() >= CHUNK_ENTRIES || self.bytes >= CHUNK_BYTES {
                self.close();
            }
        }
        if self.total > MAX_OPERATIONS {
            return Err(Stop::Unreadable(format!("The input holds more than {MAX_OPERATIONS} ids.")));
        }
        if self.chunks.len() >= CHUNKS_AT_ONCE {
            return self.flush().await;
        }
        self.keep().await
    }

    fn close(&mut self) {
        if !self.entries.is_empty() {
            let entries = std::mem::take(&mut self.entries);
            self.chunks.push(Chunk { first: self.first, entries });
            (self.first, self.bytes) = (self.total, 0);
        }
    }

    /// Continues only while the job is held and no stop is requested.
    async fn keep(&mut self) -> Result<(), Stop> {
        if self.stop.is_cancelled() {
            return Err(Stop::Left(Stepped::Moved));
        }
        if self.held.elapsed() < RENEW { Ok(()) } else { self.flush().await }
    }

    /// Writes the parts that are closed, and renews the lease.
    async fn flush(&mut self) -> Result<(), Stop> {
        let mut tx = self.state.db.begin(&Ctx::default()).await?;
        if job_leases::hold(&mut tx, &self.claimed).await?.is_none() {
            return Err(Stop::Left(Stepped::Lost));
        }
        job_chunks::insert(&mut tx, self.claimed.item.seq, &self.chunks).await?;
        tx.commit().await?;
        self.chunks.clear();
        self.held = Instant::now();
        Ok(())
    }
}

type Bytes = futures_util::stream::BoxStream<'static, object_store::Result<bytes::Bytes>>;

/// The next bytes of a file.
async fn next(bytes: &mut Bytes) -> Result<Option<bytes::Bytes>, StoreError> {
    match tokio::time::timeout(SILENCE, bytes.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(part))) => Ok(Some(part)),
        Ok(Some(Err(error))) => Err(StoreError::blob(error)),
        Err(_) => Err(StoreError::Timeout),
    }
}
