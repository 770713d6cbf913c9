//! The thread that empties the ring onto the disk, and measures how long scans had to wait for it.

use std::{
    fs::{self, File},
    io::{self, Write},
    iter,
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
        let mut ends = Vec::new();
        let (mut looked, mut synced) = (Instant::now(), Instant::now());
        loop {
            // Read before the ring is emptied: what came before the stop is then written for certain.
            let is_stopping = self.stop.load(SeqCst);
            while buffer.len() < WRITE_BYTES
                && let Some(scan) = self.ring.scans.pop()
            {
                frame(&scan, &mut buffer);
                ends.push(buffer.len());
            }
            let emptied = Instant::now();
            if !ends.is_empty() {
                self.write(&buffer, &ends);
                buffer.clear();
                ends.clear();
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

    /// Writes the records that end at `ends`; those past the disk budget count as lost.
    fn write(&mut self, bytes: &[u8], ends: &[usize]) {
        let mut done = 0;
        while done < ends.len() {
            match self.append(bytes, &ends[done..], done.checked_sub(1).map_or(0, |last| ends[last])) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    self.metrics.scans_written.inc_by(count as u64);
                    self.spool.written.notify_one();
                }
                Err(error) => {
                    tracing::error!(%error, count = ends.len() - done, "scans could not be written");
                    break;
                }
            }
        }
        if done < ends.len() {
            self.lose((ends.len() - done) as u64);
            // Those that are lost have numbers too, which fall between two segments.
            self.seal();
        }
    }

    fn lose(&self, count: u64) {
        self.metrics.scans_lost.inc_by(count);
        self.ring.lost.fetch_add(count, SeqCst);
    }

    /// Appends the first of the records that begin at `start` and end at `ends`: as many as the segment and
    /// the disk budget take, 0 when the budget is spent.
    fn append(&mut self, bytes: &[u8], ends: &[usize], start: usize) -> io::Result<usize> {
        let (total, active) = {
            let segments = self.spool.segments();
            let total = self.spool.measure(&segments);
            (total, segments.back().filter(|segment| !segment.is_sealed).map(|segment| segment.bytes))
        };
        let active = active.filter(|bytes| *bytes < self.spool.segment_bytes);
        let budget = self.spool.limit_bytes.saturating_sub(total);
        let room = self.spool.segment_bytes - active.unwrap_or_default();
        let starts = iter::once(start).chain(ends.iter().copied());
        let fits = |(begin, end): &(usize, &usize)| {
            // The record that fills a segment is its last.
            ((begin - start) as u64) < room && ((*end - start) as u64) <= budget
        };
        let count = starts.zip(ends).take_while(fits).count();
        let Some(end) = count.checked_sub(1).map(|last| ends[last]) else { return Ok(0) };
        let bytes = &bytes[start..end];
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
        self.next_seq += count as u64;
        let mut segments = self.spool.segments();
        if let Some(segment) = segments.back_mut() {
            segment.records += count as u64;
            segment.bytes += bytes.len() as u64;
        }
        self.spool.measure(&segments);
        Ok(count)
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

#[cfg(test)]
mod tests {
    use shared::time::UnixMillis;

    use super::*;
    use crate::config::EdgeConfig;

    #[test]
    fn what_fits_the_budget_of_one_large_write_is_kept() {
        const RECORD: usize = 60;
        let folder = tempfile::tempdir().unwrap();
        let mut config = EdgeConfig::new("edge-1", folder.path().to_owned(), "http://127.0.0.1:9", "d");
        (config.limits.spool_bytes, config.limits.segment_bytes) = (2_000, 500);
        let metrics = Arc::new(Metrics::default());
        let spool = Arc::new(Spool::open(folder.path(), &config, metrics.clone(), UnixMillis(1)).unwrap());
        let ring = Arc::new(Ring { scans: crossbeam_queue::ArrayQueue::new(1), lost: 0.into() });
        let stop = Arc::new(AtomicBool::new(false));
        let mut work = Work { spool, ring, metrics, stop, file: None, next_seq: 0, is_dirty: false };
        let write = |work: &mut Work, count: usize| {
            let ends: Vec<usize> = (1..=count).map(|record| record * RECORD).collect();
            work.write(&vec![7; count * RECORD], &ends);
        };
        write(&mut work, 5);
        write(&mut work, 95);
        // 33 records of 60 bytes fit 2,000; the ninth of a segment passes 500 bytes and is its last.
        let segments: Vec<(u64, u64)> =
            work.spool.segments().iter().map(|s| (s.first_seq, s.records)).collect();
        assert_eq!(segments, [(0, 9), (9, 9), (18, 9), (27, 6)]);
        assert_eq!((work.metrics.scans_written.get(), work.metrics.scans_lost.get()), (33, 67));
        // Room again: the lost ones keep their numbers.
        let shipped = work.spool.segments().pop_front().unwrap();
        fs::remove_file(shipped.path).unwrap();
        write(&mut work, 1);
        let last = work.spool.segments().back().map(|s| (s.first_seq, s.records));
        assert_eq!(last, Some((100, 1)));
    }
}
