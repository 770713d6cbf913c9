//! Scans on disk: segments of checksummed records, appended by one thread, read by the shipper.
//!
//! What is in the ring is lost by a kill; what is in a segment survives it; what was synced (every
//! 200 ms) survives a power loss. A torn end is cut when the spool is opened.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_queue::ArrayQueue;
use shared::{
    time::UnixMillis,
    wire::scan::{MAX_BATCH, ScanRecord},
};
use tokio::sync::Notify;

use super::{Scan, record};
use crate::{config::EdgeConfig, error::EdgeError, metrics::Metrics};

/// Time between two looks into the ring: what a kill may lose.
const WRITE_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes after which a write does not wait for more.
const WRITE_BYTES: usize = 256 << 10;
/// Time between two syncs: what a power loss may lose more.
const SYNC_INTERVAL: Duration = Duration::from_millis(200);
/// Length and CRC-32 before each record.
const FRAME_HEAD: usize = 8;
/// Bytes read for one batch: 1,000 records of at most 0.8 KiB fit.
const READ_BYTES: u64 = 1 << 20;

/// A file of records with consecutive numbers of one boot.
#[derive(Debug, Clone)]
struct Segment {
    boot: u64,
    first_seq: u64,
    records: u64,
    bytes: u64,
    path: PathBuf,
    /// Nothing is appended any more.
    is_sealed: bool,
}

/// How far the shipper is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    boot: u64,
    first_seq: u64,
    /// Where the record `seq` begins in the segment of `boot` and `first_seq`.
    offset: u64,
    seq: u64,
    /// Records before this one are known to be stored.
    skip_to: u64,
}

/// Records read for one batch.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) boot: u64,
    pub(super) first_seq: u64,
    pub(super) records: Vec<ScanRecord>,
    /// The cursor behind the last record.
    pub(super) end: Cursor,
}

/// The segments of one edge.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    boot: u64,
    limit_bytes: u64,
    segment_bytes: u64,
    metrics: Arc<Metrics>,
    segments: Mutex<VecDeque<Segment>>,
    /// Told after every write.
    pub(super) written: Notify,
    /// Held as long as the spool is open, so that no second edge uses the folder.
    _lock: File,
}

impl Spool {
    /// Takes the folder, a new boot number, and what earlier boots left behind.
    ///
    /// # Errors
    /// The folder cannot be used, or another process uses it.
    pub(super) fn open(
        folder: &Path,
        config: &EdgeConfig,
        metrics: Arc<Metrics>,
        now: UnixMillis,
    ) -> Result<Self, EdgeError> {
        let failed = |source| EdgeError::Storage { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        let boot = next_boot(folder, now).map_err(failed)?;
        let segments = recover(folder).map_err(failed)?;
        let spool = Self {
            folder: folder.to_owned(),
            boot,
            limit_bytes: config.limits.spool_bytes,
            segment_bytes: config.limits.segment_bytes,
            metrics,
            segments: Mutex::new(segments),
            written: Notify::new(),
            _lock: lock,
        };
        spool.measure(&spool.segments());
        Ok(spool)
    }

    fn segments(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn measure(&self, segments: &VecDeque<Segment>) -> u64 {
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        self.metrics.spool_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        bytes
    }

    /// The next records to ship behind `cursor`; `None` when all there is was shipped.
    ///
    /// Segments that are shipped whole are deleted on the way.
    pub(super) fn read(&self, mut cursor: Cursor) -> io::Result<Option<Run>> {
        loop {
            let Some(segment) = self.segments().front().cloned() else { return Ok(None) };
            if (cursor.boot, cursor.first_seq) != (segment.boot, segment.first_seq) {
                let skip_to = if cursor.boot == segment.boot { cursor.skip_to } else { 0 };
                let (boot, first_seq) = (segment.boot, segment.first_seq);
                cursor = Cursor { boot, first_seq, offset: 0, seq: first_seq, skip_to };
            }
            if cursor.seq >= segment.first_seq + segment.records {
                if !segment.is_sealed {
                    return Ok(None);
                }
                let mut segments = self.segments();
                segments.pop_front();
                self.measure(&segments);
                drop(segments);
                fs::remove_file(&segment.path)?;
                continue;
            }
            let run = read_run(&segment, cursor)?;
            if !run.records.is_empty() {
                return Ok(Some(run));
            }
            if run.end.seq == cursor.seq {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a record cannot be read"));
            }
            cursor = run.end;
        }
    }
}

impl Cursor {
    /// The cursor after control said what it expects next; `end` lies behind the batch it answered.
    pub(super) fn acknowledged(end: Self, first_seq: u64, next_seq: u64) -> Option<Self> {
        if next_seq >= end.seq {
            Some(Self { skip_to: next_seq, ..end })
        } else if next_seq >= end.first_seq && next_seq != first_seq {
            // Part of the batch, or something older of this segment: read the segment again from there.
            Some(Self { offset: 0, seq: end.first_seq, skip_to: next_seq, ..end })
        } else {
            None
        }
    }
}

fn read_run(segment: &Segment, mut cursor: Cursor) -> io::Result<Run> {
    let mut file = File::open(&segment.path)?;
    file.seek(SeekFrom::Start(cursor.offset))?;
    let length = (segment.bytes - cursor.offset).min(READ_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length).read_to_end(&mut bytes)?;
    let (mut first_seq, mut records) = (None, Vec::new());
    let mut rest = bytes.as_slice();
    while records.len() < MAX_BATCH
        && let Some((payload, behind)) = split_frame(rest)
    {
        if cursor.seq >= cursor.skip_to {
            let Some(record) = record::decode(payload) else { break };
            first_seq.get_or_insert(cursor.seq);
            records.push(record);
        }
        cursor.offset += (rest.len() - behind.len()) as u64;
        cursor.seq += 1;
        rest = behind;
    }
    Ok(Run { boot: segment.boot, first_seq: first_seq.unwrap_or(cursor.seq), records, end: cursor })
}

/// The first record's bytes and what comes behind; `None` at a torn or damaged one.
fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (crc32fast::hash(payload) == u32::from_le_bytes(*sum)).then_some((payload, rest))
}

/// Puts a boot number on disk that no earlier boot of this edge had, also when the folder was lost.
///
/// The clock is only a lower bound: it keeps a wiped folder from reusing numbers that control knows.
fn next_boot(folder: &Path, now: UnixMillis) -> io::Result<u64> {
    let path = folder.join("boot");
    let last = match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse::<u64>().map_err(io::Error::other)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let boot = (last + 1).max(u64::try_from(now.0).unwrap_or_default());
    let aside = folder.join("boot.new");
    let mut file = File::create(&aside)?;
    file.write_all(boot.to_string().as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, &path)?;
    sync_folder(folder)?;
    Ok(boot)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The segments of earlier boots in order, their torn ends cut; empty ones are deleted.
fn recover(folder: &Path) -> io::Result<VecDeque<Segment>> {
    let mut segments = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((boot, first_seq)) = name.strip_suffix(".seg").and_then(|stem| stem.split_once('-')) else {
            continue;
        };
        let (Ok(boot), Ok(first_seq)) = (boot.parse(), first_seq.parse()) else { continue };
        let content = fs::read(&path)?;
        let (mut rest, mut records) = (content.as_slice(), 0);
        while let Some((_, behind)) = split_frame(rest) {
            rest = behind;
            records += 1;
        }
        if records == 0 {
            fs::remove_file(&path)?;
            continue;
        }
        let bytes = (content.len() - rest.len()) as u64;
        if !rest.is_empty() {
            tracing::warn!(file = name, cut_bytes = rest.len(), "a torn spool file was cut");
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(bytes)?;
            file.sync_all()?;
        }
        segments.push(Segment { boot, first_seq, records, bytes, path, is_sealed: true });
    }
    segments.sort_by_key(|segment| (segment.boot, segment.first_seq));
    Ok(segments.into())
}

/// The thread that empties the ring onto the disk.
#[derive(Debug)]
pub(super) struct Writer {
    thread: thread::JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        spool: Arc<Spool>,
        ring: Arc<ArrayQueue<Scan>>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let work =
            Work { spool, ring, metrics, stop: stop.clone(), file: None, next_seq: 0, is_dirty: false };
        let thread = thread::Builder::new().name("scan-writer".into()).spawn(move || work.run())?;
        Ok(Self { thread, stop })
    }

    /// Writes and syncs what is left in the ring; blocks until it is done.
    pub(super) fn stop(self) {
        self.stop.store(true, SeqCst);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            tracing::error!("the writer of scans panicked");
        }
    }
}

struct Work {
    spool: Arc<Spool>,
    ring: Arc<ArrayQueue<Scan>>,
    metrics: Arc<Metrics>,
    stop: Arc<AtomicBool>,
    file: Option<File>,
    next_seq: u64,
    is_dirty: bool,
}

impl Work {
    fn run(mut self) {
        let mut buffer = Vec::with_capacity(WRITE_BYTES + 4_096);
        let (mut looked, mut synced) = (Instant::now(), Instant::now());
        loop {
            // Read before the ring is emptied: what came before the stop is then written for certain.
            let is_stopping = self.stop.load(SeqCst);
            let mut count = 0;
            while buffer.len() < WRITE_BYTES
                && let Some(scan) = self.ring.pop()
            {
                frame(&scan, &mut buffer);
                count += 1;
            }
            let emptied = Instant::now();
            if count > 0 {
                self.write(&buffer, count);
                buffer.clear();
                // Nothing in this write was pushed before the look that came before.
                let lag = i64::try_from(looked.elapsed().as_micros()).unwrap_or(i64::MAX);
                self.metrics.writer_lag_last_us.set(lag);
                if lag > self.metrics.writer_lag_max_us.get() {
                    self.metrics.writer_lag_max_us.set(lag);
                }
            }
            let is_empty = self.ring.is_empty();
            if is_empty {
                looked = emptied;
            }
            if synced.elapsed() >= SYNC_INTERVAL || (is_stopping && is_empty) {
                self.sync();
                synced = Instant::now();
            }
            match (is_stopping, is_empty) {
                (true, true) => break,
                (false, true) => thread::park_timeout(WRITE_INTERVAL),
                (_, false) => {}
            }
        }
        self.seal();
        self.spool.written.notify_one();
    }

    fn write(&mut self, bytes: &[u8], count: u64) {
        match self.append(bytes, count) {
            Ok(true) => {
                self.metrics.scans_written.inc_by(count);
                self.spool.written.notify_one();
            }
            Ok(false) => drop(self.metrics.scans_lost.inc_by(count)),
            Err(error) => {
                tracing::error!(%error, count, "scans could not be written");
                self.metrics.scans_lost.inc_by(count);
                self.seal();
            }
        }
    }

    /// Appends whole records; `false` when the disk budget is spent.
    fn append(&mut self, bytes: &[u8], count: u64) -> io::Result<bool> {
        let length = bytes.len() as u64;
        let (total, active) = {
            let segments = self.spool.segments();
            let total = self.spool.measure(&segments);
            (total, segments.back().filter(|segment| !segment.is_sealed).map(|segment| segment.bytes))
        };
        if total + length > self.spool.limit_bytes {
            return Ok(false);
        }
        let active = active.filter(|bytes| *bytes < self.spool.segment_bytes);
        if active.is_none() {
            self.seal();
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.begin_segment()?,
        };
        if let Err(error) = file.write_all(bytes) {
            // Whole records of this write must not be found at the next start: they count as lost.
            file.set_len(active.unwrap_or_default())?;
            return Err(error);
        }
        self.file = Some(file);
        self.is_dirty = true;
        self.next_seq += count;
        let mut segments = self.spool.segments();
        if let Some(segment) = segments.back_mut() {
            segment.records += count;
            segment.bytes += length;
        }
        self.spool.measure(&segments);
        Ok(true)
    }

    fn begin_segment(&mut self) -> io::Result<File> {
        let (boot, first_seq) = (self.spool.boot, self.next_seq);
        let path = self.spool.folder.join(format!("{boot:020}-{first_seq:020}.seg"));
        let file = File::create(&path)?;
        sync_folder(&self.spool.folder)?;
        let segment = Segment { boot, first_seq, records: 0, bytes: 0, path, is_sealed: false };
        let mut segments = self.spool.segments();
        segments.push_back(segment);
        Ok(file)
    }

    fn sync(&mut self) {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_dirty)
            && let Err(error) = file.sync_data()
        {
            tracing::error!(%error, "scans could not be synced");
        }
        self.is_dirty = false;
    }

    fn seal(&mut self) {
        self.sync();
        self.file = None;
        let mut segments = self.spool.segments();
        let Some(segment) = segments.back_mut().filter(|segment| !segment.is_sealed) else { return };
        segment.is_sealed = true;
        // A segment without a record goes at once: the next one has the same name.
        if segment.records == 0
            && let Some(empty) = segments.pop_back()
        {
            let _ = fs::remove_file(&empty.path);
        }
    }
}

fn frame(scan: &Scan, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; FRAME_HEAD]);
    record::encode(scan, out);
    let payload = start + FRAME_HEAD;
    // A record is below 1 KiB, so its length fits.
    let length = u32::try_from(out.len() - payload).unwrap_or_default();
    let sum = crc32fast::hash(&out[payload..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..payload].copy_from_slice(&sum.to_le_bytes());
}
