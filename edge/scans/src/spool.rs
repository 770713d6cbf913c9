//! The spool: segment files of checksummed records, appended by the writer and read by the shipper.
//!
//! A kill loses what is still in the buffers; data in a segment survives it. Data that was synced (every 200 ms) survives
//! a power loss. A torn end is truncated when the spool is opened.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use shared::{
    time::UnixMillis,
    wire::{
        scan::MAX_BATCH,
        spooled::{decode, split_frame},
    },
};
use tokio::sync::Notify;

use super::{Metrics, SpoolLimits, boot};

/// Most bytes read for one batch: below 8 MiB even as JSON.
const READ_BYTES: u64 = 1 << 20;
/// Least bytes read for one batch, if available: every record fits.
const LEAST_READ_BYTES: u64 = 64 << 10;

/// A file of records with consecutive numbers of one boot.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) boot: u64,
    pub(super) first_seq: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
    /// Nothing is appended any more.
    pub(super) is_sealed: bool,
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
    pub(super) count: usize,
    /// They, each with its length and checksum.
    pub(super) frames: Bytes,
    /// Whether the segment has more behind them.
    pub(super) has_more: bool,
    /// The cursor behind the last record.
    pub(super) end: Cursor,
}

/// The segments of one edge.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) folder: PathBuf,
    pub(super) boot: u64,
    pub(super) limit_bytes: u64,
    pub(super) segment_bytes: u64,
    metrics: Arc<Metrics>,
    segments: Mutex<VecDeque<Segment>>,
    /// Notified after every write.
    pub(super) written: Notify,
    /// Whether segments are kept although they were shipped, because the writer may have to read them.
    pub(super) holds_segments: AtomicBool,
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
        limits: SpoolLimits,
        metrics: Arc<Metrics>,
        now: UnixMillis,
    ) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock()?;
        let boot = boot::next(folder, now)?;
        let segments = recover(folder)?;
        let spool = Self {
            folder: folder.to_owned(),
            boot,
            limit_bytes: limits.spool_bytes,
            segment_bytes: limits.segment_bytes,
            metrics,
            segments: Mutex::new(segments),
            written: Notify::new(),
            holds_segments: AtomicBool::new(false),
            _lock: lock,
        };
        spool.measure(&spool.segments());
        Ok(spool)
    }

    /// The segments in order; the last one may be the writer's.
    pub(super) fn segments(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of all segments, and the metric of them.
    pub(super) fn measure(&self, segments: &VecDeque<Segment>) -> u64 {
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        self.metrics.spool_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        bytes
    }

    /// How many sums of a boot there are from a record on.
    pub(super) fn count_sums(&self, boot: u64, first_seq: u64) -> usize {
        let segments = self.segments().clone();
        let of_boot = segments.iter().filter(|segment| segment.boot == boot);
        let sums = |segment: &Segment| {
            let content = fs::read(&segment.path).unwrap_or_default();
            let (mut rest, mut seq, mut count) = (content.as_slice(), segment.first_seq, 0);
            while let Some((payload, behind)) = split_frame(rest) {
                let is_sum = seq >= first_seq && decode(payload).is_some_and(|record| record.count.is_some());
                count += usize::from(is_sum);
                (rest, seq) = (behind, seq + 1);
            }
            count
        };
        of_boot.map(sums).sum()
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
                if !segment.is_sealed || self.holds_segments.load(SeqCst) {
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
            if run.count > 0 {
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
    /// The cursor after control answered which record it expects next; `end` is behind the answered batch.
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
    // A batch of average records plus a fifth; bytes beyond the batch are read again.
    let typical = (segment.bytes / segment.records.max(1) + 1) * MAX_BATCH as u64 * 6 / 5;
    let length = (segment.bytes - cursor.offset).min(typical.clamp(LEAST_READ_BYTES, READ_BYTES));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length).read_to_end(&mut bytes)?;
    let (mut first_seq, mut start, mut count) = (cursor.seq, 0, 0);
    let mut rest = bytes.as_slice();
    while count < MAX_BATCH
        && let Some((_, behind)) = split_frame(rest)
    {
        cursor.offset += (rest.len() - behind.len()) as u64;
        cursor.seq += 1;
        rest = behind;
        if cursor.seq > cursor.skip_to {
            count += 1;
        } else {
            (first_seq, start) = (cursor.seq, bytes.len() - rest.len());
        }
    }
    let end = bytes.len() - rest.len();
    let has_more = cursor.seq < segment.first_seq + segment.records;
    let frames = Bytes::from(bytes).slice(start..end);
    Ok(Run { boot: segment.boot, first_seq, count, frames, has_more, end: cursor })
}

/// Makes created, renamed and deleted files of a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
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
            tracing::warn!(file = name, cut_bytes = rest.len(), "a torn spool file was truncated");
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(bytes)?;
            file.sync_all()?;
        }
        segments.push(Segment { boot, first_seq, records, bytes, path, is_sealed: true });
    }
    segments.sort_by_key(|segment| (segment.boot, segment.first_seq));
    Ok(segments.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_follows_what_control_says() {
        // A batch of the records 105 to 109, of a segment that begins with 100.
        let end = Cursor { boot: 7, first_seq: 100, offset: 900, seq: 110, skip_to: 0 };
        for (next_seq, expected, why) in [
            (110, Some((900, 110, 110)), "all were taken"),
            (150, Some((900, 110, 150)), "control has more, from before this boot's last ack"),
            (107, Some((0, 100, 107)), "part was taken"),
            (102, Some((0, 100, 102)), "control forgot some that are still here"),
            (105, None, "nothing was taken"),
            (99, None, "control wants what is no longer here"),
        ] {
            let found = Cursor::acknowledged(end, 105, next_seq);
            assert_eq!(found.map(|c| (c.offset, c.seq, c.skip_to)), expected, "{next_seq}: {why}");
        }
    }
}
