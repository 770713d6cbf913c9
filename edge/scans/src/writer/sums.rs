//! Sums of scans on their way to the spool, kept in the reserve until they are there.
//!
//! For a moment a sum is in both. A stamp stored with the reserve names the first record of the spool that may contain
//! it, so a kill in between counts nothing twice. No segment is deleted while the stamp exists.

use std::{
    io,
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

use super::{
    super::{record, reserve::Reserve},
    Work, sync,
};

/// Time between attempts to create the reserve while there is no space for it.
const RESERVE_RETRY: Duration = Duration::from_secs(5);

/// Begins a stamp: no frame is so long, so that readers of frames end before it.
const MARK: [u8; 4] = [0xFF; 4];

/// The first record of the spool that may contain the sums in the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    boot: u64,
    first_seq: u64,
}

impl Stamp {
    /// Bytes of a stamp.
    const BYTES: usize = MARK.len() + 16;

    fn write(self, out: &mut Vec<u8>) {
        out.extend(MARK);
        out.extend(self.boot.to_le_bytes());
        out.extend(self.first_seq.to_le_bytes());
    }

    /// Reads what follows the last frame of the reserve.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (boot, rest) = bytes.strip_prefix(&MARK)?.split_first_chunk::<8>()?;
        let (first_seq, _) = rest.split_first_chunk::<8>()?;
        Some(Self { boot: u64::from_le_bytes(*boot), first_seq: u64::from_le_bytes(*first_seq) })
    }
}

impl Work {
    /// Creates or opens the reserve, and takes what the last run left in it; retried later if there is no space.
    pub(super) fn open_reserve(&mut self) {
        self.reserve_tried = Instant::now();
        let (reserve, content) = match Reserve::open(&self.spool.folder) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "no disk space for sums of scans: until there is, a kill loses them");
                self.metrics.sums_reserved.set(0);
                return;
            }
        };
        self.reserve = Some(reserve);
        self.metrics.sums_reserved.set(1);
        let (mut left, rest) = self.sums.read(&content);
        if let Some(stamp) = Stamp::read(rest) {
            // Until the reserve is written the next time.
            self.spool.holds_segments.store(true, SeqCst);
            let there = self.spool.count_sums(stamp.boot, stamp.first_seq);
            left.drain(..there.min(left.len()));
        }
        if !left.is_empty() {
            let scans: u64 = left.iter().map(|sum| u64::from(sum.count.get())).sum();
            tracing::info!(scans, "sums of scans of the last run were restored");
        }
        self.sums.put_back(&left);
        if !content.is_empty() {
            self.sums.change();
        }
    }

    /// Writes the sums that are due, or all of them for the last time.
    pub(super) fn write_sums(&mut self, is_last: bool) {
        if !is_last && !self.sums.are_due() {
            return;
        }
        let sums = self.sums.take();
        if sums.is_empty() {
            return;
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for sum in &sums {
            record::put_sum(sum, &mut bytes);
            ends.push(bytes.len());
        }
        if let Err(error) = self.stamp(&bytes, &ends) {
            tracing::debug!(%error, "sums of scans wait for their reserve");
            self.sums.put_back(&sums);
        } else {
            let done = self.write_within(&bytes, &ends, self.spool.limit_bytes);
            // Before the reserve forgets them.
            if let Some(file) = self.file.as_ref().filter(|_| done > 0) {
                sync(file);
            }
            self.sums.put_back(sums.get(done..).unwrap_or_default());
        }
        if is_last {
            // The next start restores what is in the reserve.
            let unkept = self.keep_sums();
            self.lose(unkept);
        }
    }

    /// Notes in the reserve that the spool is about to get these sums.
    fn stamp(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        let stamp = Stamp { boot: self.spool.boot, first_seq: self.next_seq };
        let Some(reserve) = &mut self.reserve else { return Ok(()) };
        let fitting = ends.iter().take_while(|end| **end <= Reserve::ROOM - Stamp::BYTES).last();
        let mut content = bytes.get(..fitting.copied().unwrap_or_default()).unwrap_or_default().to_vec();
        stamp.write(&mut content);
        self.spool.holds_segments.store(true, SeqCst);
        reserve.keep(&content)
    }

    /// Has the sums that wait in the reserve, so that a kill does not lose them; returns how many scans it has not.
    pub(super) fn keep_sums(&mut self) -> u64 {
        if self.reserve.is_none() && self.reserve_tried.elapsed() >= RESERVE_RETRY {
            self.open_reserve();
        }
        if !self.sums.take_changed() {
            return 0;
        }
        let (mut frames, mut unkept) = (Vec::new(), 0);
        for sum in self.sums.iter() {
            let before = frames.len();
            record::put_sum(&sum, &mut frames);
            if frames.len() > Reserve::ROOM {
                frames.truncate(before);
                unkept += u64::from(sum.count.get());
            }
        }
        let kept = match &mut self.reserve {
            Some(reserve) => reserve.keep(&frames),
            None => Err(io::ErrorKind::StorageFull.into()),
        };
        match kept {
            Ok(()) => {
                // Sums in the spool are no longer in the reserve.
                if self.spool.holds_segments.swap(false, SeqCst) {
                    self.spool.written.notify_one();
                }
            }
            Err(error) => {
                tracing::debug!(%error, "sums of scans are kept in memory alone");
                self.sums.change();
                unkept = self.sums.iter().map(|sum| u64::from(sum.count.get())).sum();
            }
        }
        self.metrics.sums_unkept.set(i64::try_from(unkept).unwrap_or(i64::MAX));
        unkept
    }
}
