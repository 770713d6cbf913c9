//! Coalescer: requests that arrive at the same time share one round trip to the database.
//!
//! One that arrives while nothing is in flight starts at once; those that arrive meanwhile form the next batch. A query
//! is always sent after its request arrived: nothing is cached between batches.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use shared::id::AccountId;
use tokio::sync::oneshot;

use crate::store::StoreError;

/// Most requests of one batch.
const MAX_BATCH_ITEMS: usize = 256;

/// How long a request waits before another lane is opened for it, because a batch may be blocked by other
/// transactions.
const PATIENCE: Duration = Duration::from_millis(25);

/// Bound of waiting requests; beyond it callers get 503.
pub const MAX_WAITING: usize = 8_192;

type Work<Q, A> = Box<dyn Fn(Vec<Q>) -> BoxFuture<'static, Vec<A>> + Send + Sync>;

/// Waiting requests, and the function that executes a batch; cheap to clone.
pub struct Batcher<Q, A>(Arc<Inner<Q, A>>);

struct Inner<Q, A> {
    queue: Mutex<Queue<Q, A>>,
    lanes: usize,
    most_lanes: usize,
    /// A batch contains at most one of the requests with the same value here.
    alone: fn(&Q) -> Option<String>,
    /// Whose a request is, if accounts take turns when there are more requests than a batch takes.
    whose: Option<fn(&Q) -> AccountId>,
    work: Work<Q, A>,
}

struct Queue<Q, A> {
    waiting: VecDeque<(Q, oneshot::Sender<A>)>,
    /// Lanes that execute batches.
    lanes: usize,
}

impl<Q, A> Clone for Batcher<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q, A> fmt::Debug for Batcher<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Batcher")
    }
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Runs at most `lanes` batches at once, up to `most_lanes` when they take long; `work` returns one result per
    /// request, in their order.
    pub fn new(lanes: usize, most_lanes: usize, alone: fn(&Q) -> Option<String>, work: Work<Q, A>) -> Self {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), lanes: 0 });
        Self(Arc::new(Inner { queue, lanes, most_lanes, alone, whose: None, work }))
    }

    /// The same for requests of accounts: of one with many no more are in a batch than of the others, while others wait.
    pub fn in_turn(
        (lanes, most_lanes): (usize, usize),
        whose: fn(&Q) -> AccountId,
        alone: fn(&Q) -> Option<String>,
        work: Work<Q, A>,
    ) -> Self {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), lanes: 0 });
        Self(Arc::new(Inner { queue, lanes, most_lanes, alone, whose: Some(whose), work }))
    }

    /// The result of the batch that contains the request; requests whose caller left are skipped.
    pub async fn submit(&self, request: Q) -> Result<A, StoreError> {
        let (answer, mut answered) = oneshot::channel();
        let begins = {
            let mut queue = self.0.queue();
            if queue.waiting.len() >= MAX_WAITING {
                return Err(StoreError::Busy);
            }
            queue.waiting.push_back((request, answer));
            let begins = queue.lanes < self.0.lanes;
            queue.lanes += usize::from(begins);
            begins
        };
        if begins {
            // By itself: the caller may leave, and others wait for the lane.
            tokio::spawn(run(self.0.clone()));
        }
        let answer = match tokio::time::timeout(PATIENCE, &mut answered).await {
            Ok(answer) => answer,
            Err(_) => {
                if self.0.opens() {
                    tokio::spawn(run(self.0.clone()));
                }
                answered.await
            }
        };
        answer.map_err(|_| StoreError::Stopped)
    }
}

impl<Q, A> Inner<Q, A> {
    fn queue(&self) -> MutexGuard<'_, Queue<Q, A>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another lane is opened for those who wait for long.
    fn opens(&self) -> bool {
        let mut queue = self.queue();
        let opens = !queue.waiting.is_empty() && queue.lanes < self.most_lanes;
        queue.lanes += usize::from(opens);
        opens
    }

    /// The next batch; if there is none, ends the lane.
    fn take(&self) -> Option<(Vec<Q>, Vec<oneshot::Sender<A>>)> {
        let mut queue = self.queue();
        if let Some(whose) = self.whose.filter(|_| queue.waiting.len() > MAX_BATCH_ITEMS) {
            put_in_turn(&mut queue.waiting, |(request, _)| whose(request));
        }
        let mut names = HashSet::new();
        let (mut round, mut answers, mut others) = (Vec::new(), Vec::new(), VecDeque::new());
        while let Some((request, answer)) = queue.waiting.pop_front() {
            if answer.is_closed() {
                continue;
            }
            if (self.alone)(&request).is_none_or(|name| names.insert(name)) {
                round.push(request);
                answers.push(answer);
            } else {
                others.push_back((request, answer));
            }
            if round.len() >= MAX_BATCH_ITEMS {
                break;
            }
        }
        others.append(&mut queue.waiting);
        queue.waiting = others;
        if round.is_empty() {
            queue.lanes -= 1;
            return None;
        }
        Some((round, answers))
    }
}

/// Orders what waits: the first of each account, then the second of each, and so on; those of one account keep their order.
fn put_in_turn<W>(waiting: &mut VecDeque<W>, whose: impl Fn(&W) -> AccountId) {
    let mut counts: HashMap<AccountId, usize> = HashMap::new();
    let turn = |work: W| {
        let count = counts.entry(whose(&work)).or_default();
        *count += 1;
        (*count, work)
    };
    let mut turns: Vec<(usize, W)> = waiting.drain(..).map(turn).collect();
    turns.sort_by_key(|(turn, _)| *turn);
    waiting.extend(turns.into_iter().map(|(_, work)| work));
}

/// A lane: executes batches until none is left.
async fn run<Q: Send + 'static, A: Send + 'static>(rounds: Arc<Inner<Q, A>>) {
    while let Some((round, answers)) = rounds.take() {
        // A panic ends its batch, but neither the lane nor the waiting requests.
        let Ok(results) = AssertUnwindSafe((rounds.work)(round)).catch_unwind().await else { continue };
        for (answer, result) in answers.into_iter().zip(results) {
            // The caller may have left.
            let _ = answer.send(result);
        }
    }
}

/// The error of a batch, copied for each of its requests.
pub fn of_all(error: &StoreError) -> StoreError {
    match error {
        StoreError::Timeout => StoreError::Timeout,
        StoreError::Stopped => StoreError::Stopped,
        StoreError::Row(text) => StoreError::Row(text.clone()),
        StoreError::Exceeded(exceeded) => StoreError::Exceeded(*exceeded),
        StoreError::Unique(_)
        | StoreError::Taken(_)
        | StoreError::Busy
        | StoreError::Unavailable(_)
        | StoreError::Blob(_)
        | StoreError::Sql(_) => StoreError::Busy,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use tokio::sync::Semaphore;

    use super::*;

    /// Batches that wait for a permit each, and return their number and the request.
    fn rounds(lanes: usize, most_lanes: usize, gate: Arc<Semaphore>) -> Batcher<u32, (usize, u32)> {
        let count = Arc::new(AtomicUsize::new(0));
        let work: Work<u32, (usize, u32)> = Box::new(move |round| {
            let (gate, count) = (gate.clone(), count.clone());
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                assert!(!round.contains(&666), "a request that panics");
                let number = count.fetch_add(1, SeqCst);
                round.into_iter().map(|request| (number, request)).collect()
            })
        });
        Batcher::new(lanes, most_lanes, |request| (*request >= 100).then(|| request.to_string()), work)
    }

    #[test]
    fn accounts_take_turns_and_keep_their_order() {
        let account = |n: u8| AccountId::new(1, [n; 16]);
        let noisy = (0..1_000).map(|n| (1, n));
        let mut waiting: VecDeque<(u8, u32)> = noisy.chain([(2, 0), (3, 0), (2, 1)]).collect();
        put_in_turn(&mut waiting, |(of, _)| account(*of));
        let first: Vec<_> = waiting.iter().take(6).copied().collect();
        assert_eq!(first, [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]);
        assert_eq!(waiting.len(), 1_003);
        assert!(waiting.iter().filter(|(of, _)| *of == 1).map(|(_, n)| *n).eq(0..1_000));
    }

    #[tokio::test]
    async fn requests_during_a_batch_form_the_next_one() {
        let gate = Arc::new(Semaphore::new(0));
        let rounds = rounds(1, 1, gate.clone());
        let ask = |request: u32| {
            let rounds = rounds.clone();
            tokio::spawn(async move { rounds.submit(request).await })
        };
        let first = ask(1);
        while rounds.0.queue().lanes == 0 || !rounds.0.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        // The first is in flight; two with the same value do not share a batch, and one whose caller left is skipped.
        let others = [ask(2), ask(100), ask(100), ask(3), ask(4)];
        while rounds.0.queue().waiting.len() < others.len() {
            tokio::task::yield_now().await;
        }
        others[4].abort();
        gate.add_permits(3);
        assert_eq!(first.await.unwrap().unwrap(), (0, 1));
        let [two, one, again, three, left] = others;
        assert!(left.await.unwrap_err().is_cancelled());
        assert_eq!(two.await.unwrap().unwrap(), (1, 2));
        assert_eq!(one.await.unwrap().unwrap(), (1, 100));
        assert_eq!(three.await.unwrap().unwrap(), (1, 3));
        assert_eq!(again.await.unwrap().unwrap(), (2, 100));
        assert_eq!(rounds.0.queue().lanes, 0);
    }

    #[tokio::test]
    async fn a_panic_only_fails_its_own_batch() {
        let gate = Arc::new(Semaphore::new(0));
        let rounds = rounds(1, 1, gate.clone());
        let ask = |request: u32| {
            let rounds = rounds.clone();
            tokio::spawn(async move { rounds.submit(request).await })
        };
        let panics = ask(666);
        while rounds.0.queue().lanes == 0 || !rounds.0.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        // No further request arrives to wake the lane for the one that waits.
        let behind = ask(8);
        while rounds.0.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(9);
        assert!(matches!(panics.await.unwrap(), Err(StoreError::Stopped)));
        assert_eq!(behind.await.unwrap().unwrap(), (0, 8));
        while rounds.0.queue().lanes > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(rounds.submit(7).await.unwrap(), (1, 7));
    }

    #[tokio::test]
    async fn a_slow_batch_does_not_block_later_requests() {
        let held = Arc::new(Semaphore::new(0));
        let gate = held.clone();
        let work: Work<u32, u32> = Box::new(move |round| {
            let gate = gate.clone();
            Box::pin(async move {
                if round.contains(&1) {
                    gate.acquire().await.unwrap().forget();
                }
                round
            })
        });
        let rounds = Batcher::new(1, 2, |_| None, work);
        let first = tokio::spawn({
            let rounds = rounds.clone();
            async move { rounds.submit(1).await }
        });
        while rounds.0.queue().lanes == 0 || !rounds.0.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(rounds.submit(2).await.unwrap(), 2);
        held.add_permits(1);
        assert_eq!(first.await.unwrap().unwrap(), 1);
    }
}
