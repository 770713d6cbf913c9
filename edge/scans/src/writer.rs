//! The thread that writes records to disk and measures its own lag.

use std::{
    fs::{self, File},
    io::{self, Write},
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use shared::wire::spooled::{decode, split_frame};

use super::{
    Metrics,
    buffers::{Buffer, Buffers},
    degrade::Sums,
    redact::Redactor,
    reserve::Reserve,
    spool::{Segment, Spool, sync_folder},
};

mod sums;

/// Interval of emptying the buffers: what a kill may lose.
const WRITE_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of a round after which the next one begins at once.
const WRITE_BYTES: usize = 256 << 10;
/// The part of the disk budget that is kept back for sums: a sixteenth.
const SUMS: u64 = 16;
/// Interval of syncs: what a power loss may lose in addition.
const SYNC_INTERVAL: Duration = Duration::from_millis(200);

/// The thread that empties the buffers onto the disk.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once it was waited for.
    thread: Option<thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        spool: Arc<Spool>,
        buffers: Arc<Buffers>,
        metrics: Arc<Metrics>,
        redactor: Redactor,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work::new(spool, buffers, metrics, stop.clone());
        let thread = thread::Builder::new().name("scan-writer".into()).spawn(move || work.run(redactor))?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Writes and syncs what is left in the buffers; blocks until then.
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
    /// An edge that never served, or was dropped, leaves no thread behind and releases the folder.
    fn drop(&mut self) {
        self.tell();
    }
}

struct Work {
    spool: Arc<Spool>,
    buffers: Arc<Buffers>,
    metrics: Arc<Metrics>,
    stop: Arc<AtomicBool>,
    file: Option<File>,
    next_seq: u64,
    is_dirty: bool,
    /// Scans beyond the disk budget, added up.
    sums: Sums,
    /// The file for sums until they are written to the spool; `None` if there was no space for it either.
    reserve: Option<Reserve>,
    /// Time of the last attempt to create the reserve.
    reserve_tried: Instant,
    /// Syncs beside the appends; a file that it has not taken yet stays dirty.
    syncer: Option<(SyncSender<File>, thread::JoinHandle<()>)>,
}

impl Work {
    fn new(spool: Arc<Spool>, buffers: Arc<Buffers>, metrics: Arc<Metrics>, stop: Arc<AtomicBool>) -> Self {
        let mut work = Self {
            spool,
            buffers,
            metrics,
            stop,
            file: None,
            next_seq: 0,
            is_dirty: false,
            sums: Sums::default(),
            reserve: None,
            reserve_tried: Instant::now(),
            syncer: None,
        };
        work.open_reserve();
        work
    }

    /// Starts the thread that syncs; without it the writer syncs itself.
    fn start_syncer(&mut self) {
        let (files, taken) = sync_channel::<File>(1);
        let work = move || {
            for file in taken {
                sync(&file);
            }
        };
        match thread::Builder::new().name("scan-syncer".into()).spawn(work) {
            Ok(thread) => self.syncer = Some((files, thread)),
            Err(error) => tracing::error!(%error, "the writer syncs scans itself"),
        }
    }

    fn run(mut self, mut redactor: Redactor) {
        self.start_syncer();
        let mut taken = Buffer::default();
        let (mut looked, mut synced) = (Instant::now(), Instant::now());
        loop {
            // Read before the buffers are emptied: what came before the stop is then written for certain.
            let is_stopping = self.stop.load(SeqCst);
            let begun = Instant::now();
            let mut bytes = 0;
            for index in 0..self.buffers.count() {
                self.buffers.exchange(index, &mut taken);
                if !taken.ends.is_empty() {
                    bytes += taken.bytes.len();
                    let lost = redactor.apply(&mut taken.bytes, &mut taken.ends);
                    self.lose(lost);
                    self.write(&taken.bytes, &taken.ends);
                    taken.clear();
                    // Nothing in this write was recorded before the previous round.
                    let lag = looked.elapsed().as_secs_f64();
                    self.metrics.writer_lag_last.set(lag);
                    if lag > self.metrics.writer_lag_max.get() {
                        self.metrics.writer_lag_max.set(lag);
                    }
                }
            }
            looked = begun;
            let is_done = is_stopping && bytes == 0;
            if synced.elapsed() >= SYNC_INTERVAL || is_done {
                self.write_sums(is_done);
                self.keep_sums();
                self.sync();
                synced = Instant::now();
            }
            if is_done {
                break;
            }
            if !is_stopping && bytes < WRITE_BYTES {
                thread::park_timeout(WRITE_INTERVAL);
            }
        }
        if let Some((files, thread)) = self.syncer.take() {
            drop(files);
            // It syncs files and nothing else.
            let _ = thread.join();
        }
        self.seal();
        self.spool.written.notify_one();
    }

    /// Writes the records that end at `ends`; those past the disk budget are added up.
    fn write(&mut self, bytes: &[u8], ends: &[usize]) {
        let budget = self.spool.limit_bytes - self.spool.limit_bytes / SUMS;
        let done = self.write_within(bytes, ends, budget);
        if done == ends.len() {
            return;
        }
        let rest = done.checked_sub(1).map_or(0, |last| ends[last]);
        let lost = ends.len() - done - self.add_up(&bytes[rest..]);
        self.lose(lost as u64);
    }

    /// Adds the records up; gives for how many that was possible: robots are in no sum.
    fn add_up(&mut self, mut frames: &[u8]) -> usize {
        let mut added = 0;
        while let Some((payload, rest)) = split_frame(frames) {
            if decode(payload).is_some_and(|record| self.sums.add(&record)) {
                added += 1;
            }
            frames = rest;
        }
        self.metrics.degraded.inc_by(added as u64);
        added
    }

    /// Writes as many of the records as the budget takes; returns how many.
    fn write_within(&mut self, bytes: &[u8], ends: &[usize], budget: u64) -> usize {
        let mut done = 0;
        while done < ends.len() {
            let start = done.checked_sub(1).map_or(0, |last| ends[last]);
            match self.append(bytes, &ends[done..], start, budget) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    self.metrics.written.inc_by(count as u64);
                    self.spool.written.notify_one();
                }
                Err(error) => {
                    tracing::error!(%error, count = ends.len() - done, "scans could not be written");
                    break;
                }
            }
        }
        done
    }

    fn lose(&mut self, count: u64) {
        if count > 0 {
            self.metrics.lost.inc_by(count);
            self.buffers.lost.fetch_add(count, SeqCst);
            // Those that are lost have numbers too, which fall between two segments.
            self.seal();
        }
    }

    /// Appends the first of the records that begin at `start` and end at `ends`: as many as the segment and
    /// the disk budget take, 0 when the budget is spent.
    fn append(&mut self, bytes: &[u8], ends: &[usize], start: usize, budget: u64) -> io::Result<usize> {
        let (total, active) = {
            let segments = self.spool.segments();
            let total = self.spool.measure(&segments);
            (total, segments.back().filter(|segment| !segment.is_sealed).map(|segment| segment.bytes))
        };
        let active = active.filter(|bytes| *bytes < self.spool.segment_bytes);
        let budget = budget.saturating_sub(total);
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
            // Records that were completely written must not be found at the next start, because they count as lost.
            // The segment ends here, or the shipper would wait for ever for further writes to it.
            let cut = file.set_len(active.unwrap_or_default());
            self.file = Some(file);
            self.seal();
            cut?;
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
        self.next_seq += self.buffers.lost.swap(0, SeqCst);
        let (boot, first_seq) = (self.spool.boot, self.next_seq);
        let path = self.spool.folder.join(format!("{boot:020}-{first_seq:020}.seg"));
        let file = File::create(&path)?;
        sync_folder(&self.spool.folder)?;
        let segment = Segment { boot, first_seq, records: 0, bytes: 0, path, is_sealed: false };
        let mut segments = self.spool.segments();
        segments.push_back(segment);
        Ok(file)
    }

    /// Has the open segment synced; if the syncer is still busy, at the next interval.
    fn sync(&mut self) {
        let Some(file) = self.file.as_ref().filter(|_| self.is_dirty) else { return };
        let handed = match (&self.syncer, file.try_clone()) {
            (Some((files, _)), Ok(clone)) => files.try_send(clone),
            (_, Ok(_) | Err(_)) => {
                sync(file);
                Ok(())
            }
        };
        self.is_dirty = handed.is_err();
    }

    fn seal(&mut self) {
        self.sync();
        // A file that was not handed over is synced here, because nothing else would sync it later.
        if let Some(file) = self.file.take().filter(|_| self.is_dirty) {
            sync(&file);
        }
        self.is_dirty = false;
        let mut segments = self.spool.segments();
        let Some(segment) = segments.back_mut().filter(|segment| !segment.is_sealed) else { return };
        segment.is_sealed = true;
        // An empty segment is deleted at once: the next one has the same name.
        if segment.records == 0
            && let Some(empty) = segments.pop_back()
        {
            let _ = fs::remove_file(&empty.path);
        }
    }
}

fn sync(file: &File) {
    if let Err(error) = file.sync_data() {
        tracing::error!(%error, "scans could not be synced");
    }
}

#[cfg(test)]
mod tests;
