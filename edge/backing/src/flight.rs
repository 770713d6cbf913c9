//! Single flight: one read of the backing for all requests that miss the same key at the same time.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::redirect::RedirectKey;
use tokio::sync::watch;

type Open<T> = Arc<Mutex<HashMap<RedirectKey, watch::Receiver<Option<T>>>>>;

/// A read that somebody waits for.
#[derive(Debug)]
pub struct Flight<T>(watch::Receiver<Option<T>>);

impl<T: Clone> Flight<T> {
    /// Waits for the answer; `None` when there was none.
    pub async fn landed(&mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

/// The reads under way, whose answers are `T`.
#[derive(Debug)]
pub struct Flights<T> {
    open: Open<T>,
    most: usize,
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    /// Allows `most` reads at the same time.
    pub fn new(most: usize) -> Self {
        Self { open: Arc::default(), most }
    }

    /// Joins the read of `key`, or starts one; `true` when it was under way. `None` if there are too many.
    ///
    /// The read runs as its own task: it ends whether or not its first client stays.
    pub fn join<F>(&self, key: &RedirectKey, fill: impl FnOnce(RedirectKey) -> F) -> Option<(Flight<T>, bool)>
    where
        F: Future<Output = Option<T>> + Send + 'static,
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
struct FlightPermit<T> {
    open: Open<T>,
    key: RedirectKey,
}

impl<T> Drop for FlightPermit<T> {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
