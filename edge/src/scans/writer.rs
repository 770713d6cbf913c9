//! The thread that empties the ring onto the disk, and measures how long scans had to wait for it.

use std::{
    fs::{self, File},
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Ring, Scan, record,
    spool::{Segment, Spool, sync_folder},
};
use crate::metrics::Metrics;

/// Time between two looks into the ring: what a kill may lose.
const WRITE_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes after which a write does not wait for more.
const WRITE_BYTES: usize = 256 << 10;
/// Time between two syncs: what a power loss may lose more.
const SYNC_INTERVAL: Duration = Duration::from_millis(200);
/// Length and CRC-32 before each record.
const FRAME_HEAD: usize = 8;

/// The thread that empties the ring onto the disk.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once it was waited for.
    thread: Option<thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(spool: Arc<Spool>, ring: Arc<Ring>, metrics: Arc<Metrics>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let work =
            Work { spool, ring, metrics, stop: stop.clone(), file: None, next_seq: 0, is_dirty: false };
        let thread = thread::Builder::new().name("scan-writer".into()).spawn(move || work.run())?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Writes and syncs what is left in the ring; blocks until it is done.
    pub(super) fn stop(mut self) {
        self.tell();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer of scans panicked");
        }
    }

    fn tell(&self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Writer {
    /// An edge that never served, or was dropped, leaves no thread behind and gives the folder back.
    fn drop(&mut self) {
        self.tell();
    }
}

struct Work {
    spool: Arc<Spool>,
    ring: Arc<Ring>,
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
                && let Some(scan) = self.ring.scans.pop()
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
            let is_empty = self.ring.scans.is_empty();
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
            Ok(false) => self.lose(count),
            Err(error) => {
                tracing::error!(%error, count, "scans could not be written");
                self.lose(count);
                self.seal();
            }
        }
    }

    fn lose(&self, count: u64) {
        self.metrics.scans_lost.inc_by(count);
        self.ring.lost.fetch_add(count, SeqCst);
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
        // Records of a segment have consecutive numbers; those that were lost fall between two segments.
        self.next_seq += self.ring.lost.swap(0, SeqCst);
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
