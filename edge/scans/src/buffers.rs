//! Records between the request path and the writer: a few buffers, so that threads hardly ever share one.

use std::{
    cell::Cell,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

/// Bytes that a buffer has from the start and keeps once it is empty: what 5 ms of a busy core fill. So requests do not wait
/// for a buffer that grows; memory that is never written to is none of the process.
const KEPT_BYTES: usize = 1 << 20;
/// The same for where records end, which are seldom shorter than 64 bytes.
const KEPT_ENDS: usize = KEPT_BYTES / 64;

/// Bounded buffers of records. A thread always uses the same one.
#[derive(Debug)]
pub(super) struct Buffers {
    buffers: Box<[Padded]>,
    /// Most bytes of each.
    limit: usize,
    /// Lost since a segment was begun; their numbers are left out, so that control sees the gap.
    pub(super) lost: AtomicU64,
}

/// On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Buffer>);

/// Records, one behind the other.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// Where each record ends.
    pub(super) ends: Vec<usize>,
    /// Where the URL of a scan is put together.
    url: String,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(KEPT_BYTES),
            ends: Vec::with_capacity(KEPT_ENDS),
            url: String::new(),
        }
    }
}

impl Buffer {
    /// Forgets the records.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.shrink_to(KEPT_ENDS);
    }
}

impl Buffers {
    /// So many buffers, which together take `bytes`.
    pub(super) fn new(count: usize, bytes: usize) -> Self {
        let count = count.max(1);
        Self {
            buffers: (0..count).map(|_| Padded::default()).collect(),
            limit: bytes / count,
            lost: AtomicU64::new(0),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.buffers.len()
    }

    /// Appends the record that `write` writes, with a text to work with; `false` when there is no room, and it counts as
    /// lost.
    pub(super) fn push(&self, write: impl FnOnce(&mut String, &mut Vec<u8>)) -> bool {
        let mut buffer = self.lock(of_thread() % self.buffers.len());
        let Buffer { bytes, ends, url } = &mut *buffer;
        if bytes.len() >= self.limit {
            self.lost.fetch_add(1, SeqCst);
            return false;
        }
        // Half a record, if the one before panicked.
        bytes.truncate(ends.last().copied().unwrap_or_default());
        write(url, bytes);
        ends.push(bytes.len());
        true
    }

    /// Exchanges a buffer for an empty one.
    pub(super) fn exchange(&self, index: usize, empty: &mut Buffer) {
        mem::swap(&mut *self.lock(index), empty);
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Buffer> {
        // Records are whole or not there, also after a panic: `ends` says which are.
        self.buffers[index].0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of this thread.
fn of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    match OWN.get() {
        usize::MAX => {
            let own = NEXT.fetch_add(1, Relaxed);
            OWN.set(own);
            own
        }
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_does_not_fit_is_lost_and_counted() {
        let buffers = Buffers::new(1, 10);
        let pushed: Vec<bool> =
            (0..5).map(|_| buffers.push(|_, out| out.extend_from_slice(b"1234"))).collect();
        // The record that reaches the limit is the last.
        assert_eq!(pushed, [true, true, true, false, false]);
        assert_eq!(buffers.lost.load(SeqCst), 2);
        let mut taken = Buffer::default();
        buffers.exchange(0, &mut taken);
        assert_eq!((taken.bytes.len(), &taken.ends[..]), (12, &[4, 8, 12][..]));
        assert!(buffers.push(|_, out| out.push(1)), "there is room again");
    }

    #[test]
    fn each_record_is_taken_once_while_threads_push() {
        const EACH: u32 = 20_000;
        let buffers = Buffers::new(2, 64 << 20);
        let mut seen = Vec::new();
        let mut take = |buffers: &Buffers, taken: &mut Buffer| {
            for index in 0..buffers.count() {
                buffers.exchange(index, taken);
                assert_eq!(taken.bytes.len(), taken.ends.len() * 4);
                seen.extend(taken.bytes.chunks(4).map(|n| u32::from_le_bytes(n.try_into().unwrap())));
                taken.clear();
            }
        };
        thread::scope(|scope| {
            let pushers: Vec<_> = (0..3)
                .map(|thread| {
                    let buffers = &buffers;
                    scope.spawn(move || {
                        for n in 0..EACH {
                            assert!(buffers.push(|_, out| out.extend((thread * EACH + n).to_le_bytes())));
                        }
                    })
                })
                .collect();
            let mut taken = Buffer::default();
            while pushers.iter().any(|pusher| !pusher.is_finished()) {
                take(&buffers, &mut taken);
            }
            take(&buffers, &mut taken);
        });
        seen.sort_unstable();
        assert_eq!(seen, (0..3 * EACH).collect::<Vec<_>>());
    }
}
