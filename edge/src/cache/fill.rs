//! Misses: reads of the backing, each of which the fill rule accepts or refuses.

use std::{sync::Arc, time::Duration};

use shared::{
    redirect::RedirectKey,
    wire::stream::{Epoch, Fill, Rev},
};

use super::{CacheStatus, EdgeCache, Found, Held, KeyRef, Served, generation::Offer};
use crate::{backing::Backing, metrics::Metrics};

/// Reads of the backing for one miss before the edge gives up with 503.
const FILL_ATTEMPTS: u32 = 4;
/// How often a request may join a fill whose answer turns out older than the request.
const JOIN_ATTEMPTS: u32 = 3;
/// Total time of all attempts: a read of the view and a look-up, both at their timeouts. Without any backend, a
/// client waits this long for its 503.
const FILL_TIMEOUT: Duration = Duration::from_millis(1_200);

/// A verified answer, with the moment it is true for.
#[derive(Debug, Clone)]
pub(super) struct Landing {
    pub(super) epoch: Epoch,
    /// The revision at which `found` was the newest.
    pub(super) as_of: Rev,
    pub(super) found: Found,
}

/// Why a miss has no verified answer; the client comes back a second later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoAnswer;

impl EdgeCache {
    /// Reads a key through the backing: one read for all requests that miss it at the same time.
    ///
    /// # Errors
    /// No view of the backing could be verified in time.
    pub(crate) async fn fetch<B: Backing>(
        self: &Arc<Self>,
        backing: &Arc<B>,
        metrics: &Arc<Metrics>,
        key: &RedirectKey,
    ) -> Result<(Found, CacheStatus), NoAnswer> {
        for _ in 0..JOIN_ATTEMPTS {
            let generation = self.generation.load_full();
            // Read before joining: an answer must hold everything that was acknowledged, or served to
            // somebody, before this request came; each of these raised the floor first.
            let floor = generation.floor(key);
            let (asked, is_live) = (KeyRef::of(key), self.is_live());
            let held = if asked.is_level() {
                generation.held_links(asked, is_live)
            } else {
                generation.held(asked, is_live)
            };
            let was_stale = match held {
                Held::Present(served) => return Ok((Some(served), CacheStatus::Hit)),
                Held::Absent => return Ok((None, CacheStatus::Negative)),
                Held::Stale => true,
                Held::Nothing => false,
            };
            let (mut flight, joined) = {
                let (cache, backing, metrics) = (self.clone(), backing.clone(), metrics.clone());
                let fill = |key| async move { cache.fill(&*backing, &metrics, &key).await };
                self.flights.join(key, fill).ok_or(NoAnswer)?
            };
            let Some(landing) = flight.landed().await else {
                let was_absent = self.generation.load().was_absent(KeyRef::of(key));
                return if was_absent { Ok((None, CacheStatus::Negative)) } else { Err(NoAnswer) };
            };
            if generation.epoch() == Some(&landing.epoch) && landing.as_of >= floor {
                let status = match (joined, was_stale) {
                    (true, _) => CacheStatus::Coalesced,
                    (false, true) => CacheStatus::Stale,
                    (false, false) => CacheStatus::Miss,
                };
                return Ok((landing.found, status));
            }
        }
        Err(NoAnswer)
    }

    async fn fill<B: Backing>(&self, backing: &B, metrics: &Metrics, key: &RedirectKey) -> Option<Landing> {
        let filled = tokio::time::timeout(FILL_TIMEOUT, self.try_fill(backing, metrics, key)).await;
        filled.unwrap_or_else(|_| {
            tracing::debug!("reads of the backing took too long");
            None
        })
    }

    async fn try_fill<B: Backing>(
        &self,
        backing: &B,
        metrics: &Metrics,
        key: &RedirectKey,
    ) -> Option<Landing> {
        for attempt in 0..FILL_ATTEMPTS {
            if attempt > 1 {
                // The epoch changes, or the view lags behind the stream while control cannot be asked.
                tokio::time::sleep(Duration::from_millis(2 << attempt)).await;
            }
            // The view first; what it cannot answer is read from the source.
            let is_view = attempt % 2 == 0;
            let read = if is_view { backing.get(key).await } else { backing.lookup(key).await };
            match read {
                Ok(fill) => {
                    if let Some(landing) = self.offer(key, &fill) {
                        return Some(landing);
                    }
                    metrics.rejected_fills.inc();
                }
                // The backing logs once that it is down; a line for each miss would fill the log meanwhile.
                Err(error) => tracing::debug!(%error, is_view, "a read of the backing failed"),
            }
        }
        None
    }

    /// Offers a view of a key; whether it was taken.
    pub(crate) fn take_view(&self, key: &RedirectKey, fill: &Fill) -> bool {
        self.offer(key, fill).is_some()
    }

    /// Offers a view of a key to the cache: the verified answer, or `None` if the fill rule refuses it.
    pub(super) fn offer(&self, key: &RedirectKey, fill: &Fill) -> Option<Landing> {
        let generation = self.generation.load();
        if generation.epoch() != Some(&fill.epoch) || !fill.complete {
            return None;
        }
        let value = match &fill.value {
            None => None,
            Some((rev, record)) => match Served::new(key, record.clone()) {
                Ok(served) => Some((*rev, Arc::new(served))),
                Err(reason) => {
                    tracing::error!(domain = %key.domain, short_id = %key.folded, %reason, "unusable record");
                    return None;
                }
            },
        };
        match generation.offer_lifted(key, fill.watermark, value) {
            Offer::Taken { as_of, found } => Some(Landing { epoch: fill.epoch.clone(), as_of, found }),
            Offer::Rejected => None,
        }
    }
}
