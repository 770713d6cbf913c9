//! The newest events, shared by all edges: read from the log once, and encoded for the network once.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use bytes::Bytes;
use shared::wire::{
    frame::{self, FrameError},
    stream::{Change, Events, Rev, ToEdge},
};

/// Most events held.
const MAX_EVENTS: usize = 1_000_000;

/// Most bytes held, estimated: some 150,000 ordinary events. Older ones are read from the log.
const MAX_BYTES: usize = 64 << 20;

/// A run of events, with its frames once somebody needs them.
pub struct Batch {
    /// The events.
    pub events: Arc<Events>,
    frames: OnceLock<Result<Bytes, FrameError>>,
    bytes: usize,
}

// Frames may hold private keys.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("events", &self.events).finish_non_exhaustive()
    }
}

impl Batch {
    /// A run of events.
    #[must_use]
    pub fn new(events: Events) -> Self {
        let bytes = events.items.iter().map(|event| guess_bytes(&event.change)).sum();
        Self { events: Arc::new(events), frames: OnceLock::new(), bytes }
    }

    /// The encoded frames; encoded at most once.
    ///
    /// # Errors
    /// An event is larger than a frame.
    pub fn frames(&self) -> Result<Bytes, FrameError> {
        self.frames.get_or_init(|| frame::encode(&ToEdge::Events(self.events.clone()))).clone()
    }

    /// The part after a revision within the run.
    fn after(&self, cursor: Rev) -> Self {
        let Events { items, last, .. } = &*self.events;
        let items = items.iter().filter(|event| event.rev > cursor).cloned().collect();
        Self::new(Events { prev: cursor, items, last: *last })
    }
}

/// Bytes of an event in memory and as a frame together, roughly.
fn guess_bytes(change: &Change) -> usize {
    const KEY: usize = 200;
    KEY + match change {
        Change::Domain(domain) => {
            let files = domain.files.as_ref().map_or(0, |files| files.size_bytes());
            let pages = domain.pages.as_ref().map_or(0, |pages| pages.size_bytes());
            3 * (files + pages)
        }
        Change::Certificate(_, Some(certificate)) => 3 * (certificate.chain.len() + certificate.key.len()),
        Change::Redirect(_, None)
        | Change::Withhold(..)
        | Change::Certificate(_, None)
        | Change::Challenge(_)
        | Change::Unreadable(_) => 0,
        Change::Redirect(_, Some(value)) => {
            let availability = value.availability.as_ref();
            let ended = availability.map_or(0, |of| 80 + of.ended_url.as_ref().map_or(0, |url| url.len()));
            let links = value.digital_link.as_ref().map_or(0, |set| set.size_bytes());
            400 + 2 * (value.target.len() + ended + links)
        }
        // Rare, and up to a frame long.
        Change::Rules(rules) => serde_json::to_vec(rules).map_or(0, |text| 3 * text.len()),
    }
}

/// What comes after a place in the stream.
#[derive(Debug)]
pub(super) enum Next {
    /// A run that begins right there.
    Batch(Arc<Batch>),
    /// Nothing yet.
    End,
    /// It is no longer held.
    Gone,
}

/// The newest runs in order, without a gap between them.
#[derive(Debug, Default)]
pub(super) struct Ring(RwLock<Held>);

#[derive(Debug, Default)]
struct Held {
    runs: VecDeque<Arc<Batch>>,
    events: usize,
    bytes: usize,
}

impl Ring {
    /// Appends the run after the newest.
    pub(super) fn push(&self, batch: Arc<Batch>) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.events += batch.events.items.len();
        held.bytes += batch.bytes;
        held.runs.push_back(batch);
        while (held.events > MAX_EVENTS || held.bytes > MAX_BYTES) && held.runs.len() > 1 {
            let Some(old) = held.runs.pop_front() else { break };
            held.events -= old.events.items.len();
            held.bytes -= old.bytes;
        }
    }

    /// What comes after `cursor`.
    pub(super) fn after(&self, cursor: Rev) -> Next {
        let run = {
            let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let at = held.runs.partition_point(|run| run.events.last <= cursor);
            match held.runs.get(at) {
                None => return Next::End,
                Some(run) if run.events.prev > cursor => return Next::Gone,
                Some(run) => run.clone(),
            }
        };
        // One that resumes within a run gets the rest of it, and is in step from then on.
        Next::Batch(if run.events.prev == cursor { run } else { Arc::new(run.after(cursor)) })
    }
}

#[cfg(test)]
mod tests {
    use shared::{redirect::RedirectKey, wire::stream::Event};

    use super::*;

    fn run(prev: Rev, count: u64) -> Arc<Batch> {
        let change = |n: Rev| Change::Redirect(RedirectKey::new("tn.gg", &n.to_string()), None);
        let items = (prev + 1..=prev + count).map(|rev| Event { rev, change: change(rev) }).collect();
        Arc::new(Batch::new(Events { prev, items, last: prev + count }))
    }

    #[test]
    fn positions_are_found_in_the_ring() {
        let ring = Ring::default();
        assert!(matches!(ring.after(7), Next::End), "an empty ring");
        [run(10, 3), run(13, 1), run(14, 4)].into_iter().for_each(|run| ring.push(run));
        for (cursor, expected) in [(10, 11..=13), (11, 12..=13), (12, 13..=13), (13, 14..=14), (17, 18..=18)]
        {
            let Next::Batch(found) = ring.after(cursor) else { panic!("{cursor}") };
            let revs: Vec<Rev> = found.events.items.iter().map(|event| event.rev).collect();
            assert_eq!(revs, expected.collect::<Vec<_>>(), "after {cursor}");
            assert_eq!(found.events.prev, cursor);
        }
        assert!(matches!(ring.after(9), Next::Gone));
        assert!(matches!(ring.after(18), Next::End));
        assert!(matches!(ring.after(99), Next::End));
    }

    #[test]
    fn the_ring_is_bounded_and_frames_are_encoded_once() {
        let ring = Ring::default();
        let mut prev = 0;
        for _ in 0..800 {
            ring.push(run(prev, 500));
            prev += 500;
        }
        let held = ring.0.read().unwrap();
        assert!(held.bytes <= MAX_BYTES && held.bytes > MAX_BYTES / 2, "{}", held.bytes);
        assert_eq!(held.bytes, held.runs.iter().map(|run| run.bytes).sum::<usize>());
        let newest = held.runs.back().unwrap();
        assert_eq!(newest.frames().unwrap().as_ptr(), newest.frames().unwrap().as_ptr());
    }
}
