//! Single flight: one read of the backing for all requests that miss the same key at the same time.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::{
    redirect::RedirectKey,
    wire::stream::{Epoch, Rev},
};
use tokio::sync::watch;

use super::Found;

/// A verified answer, with the moment it is true for.
#[derive(Debug, Clone)]
pub(super) struct Landing {
    pub(super) epoch: Epoch,
    /// The revision at which `found` was the newest.
    pub(super) as_of: Rev,
    pub(super) found: Found,
}

/// A permit of a flight.
#[derive(Debug)]
pub(super) struct Flight(watch::Receiver<Option<Landing>>);

impl Flight {
    /// Waits for the answer; `None` when there was none.
    pub(super) async fn landed(&mut self) -> Option<Landing> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

/// The reads under way.
#[derive(Debug)]
pub(super) struct Flights {
    open: Arc<Mutex<HashMap<RedirectKey, watch::Receiver<Option<Landing>>>>>,
    most: usize,
}

impl Flights {
    /// Allows `most` reads at the same time.
    pub(super) fn new(most: usize) -> Self {
        Self { open: Arc::default(), most }
    }

    /// Joins the read of `key`, or starts one; `true` when it was under way. `None` if there are too many.
    ///
    /// The read runs as its own task: it ends whether or not its first client stays.
    pub(super) fn join<F>(
        &self,
        key: &RedirectKey,
        fill: impl FnOnce(RedirectKey) -> F,
    ) -> Option<(Flight, bool)>
    where
        F: Future<Output = Option<Landing>> + Send + 'static,
    {
        let mut open = lock(&self.open);
        if let Some(flight) = open.get(key) {
            return Some((Flight(flight.clone()), true));
        }
        if open.len() >= self.most {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        open.insert(key.clone(), receiver.clone());
        drop(open);
        let permit = FlightPermit { open: self.open.clone(), key: key.clone() };
        let fill = fill(key.clone());
        tokio::spawn(async move {
            let landing = fill.await;
            // Closed before the answer is out: who comes from here on starts a read of its own.
            drop(permit);
            sender.send_replace(landing);
        });
        Some((Flight(receiver), false))
    }
}

/// Takes the flight off the board, also when its task panics or is dropped.
struct FlightPermit {
    open: Arc<Mutex<HashMap<RedirectKey, watch::Receiver<Option<Landing>>>>>,
    key: RedirectKey,
}

impl Drop for FlightPermit {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
