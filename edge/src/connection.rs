//! Facts about the connection that a request came by.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, Release, SeqCst},
        },
    },
    task::{Context, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use tokio::{sync::Semaphore, task::yield_now};

/// The client of a request: the peer, or the client that a trusted proxy names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// The client's address.
    pub(crate) ip: IpAddr,
    /// Whether the client speaks TLS.
    pub(crate) is_tls: bool,
    /// Whether it is a program of this machine: loopback, and not through a proxy.
    pub(crate) is_local: bool,
}

impl Client {
    /// The other end of a connection.
    pub(crate) fn of(peer: SocketAddr, is_tls: bool) -> Self {
        let ip = peer.ip().to_canonical();
        Self { ip, is_tls, is_local: ip.is_loopback() }
    }

    /// The address by which the client is limited; `None` for a program of this machine.
    pub(crate) fn limited(self) -> Option<IpAddr> {
        if self.is_local { None } else { Some(self.ip) }
    }
}

/// Requests of one connection; its cache line belongs to the core that serves it.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    /// No request is taken after the present one.
    is_last: AtomicBool,
    /// Where the numbers of its requests begin.
    first_id: u64,
    /// Which of its requests to control may begin.
    beginning: Semaphore,
}

impl Activity {
    /// A connection without a request so far, whose requests are numbered from `first_id`.
    pub(crate) fn new(first_id: u64) -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            is_last: AtomicBool::new(false),
            first_id,
            beginning: Semaphore::new(1),
        }
    }

    /// Counts a request that was answered at once; returns its number. No other may be under way.
    pub(crate) fn count(&self) -> u64 {
        let number = self.begun.load(Relaxed);
        // In this order, as each is read the other way round: it never counts as ended before it began.
        self.begun.store(number + 1, Release);
        self.ended.store(number + 1, Release);
        self.first_id.wrapping_add(number)
    }

    /// Requests begun and ended so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // `ended` first: a request that ends in between then counts as under way, never as quiet.
        let ended = self.ended.load(SeqCst);
        (self.begun.load(SeqCst), ended)
    }

    /// The edge is stopping: responses from here on close their connection.
    pub(crate) fn end(&self) {
        self.is_last.store(true, Relaxed);
    }

    /// Whether the edge stops.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last.load(Relaxed)
    }
}

/// A request under way; its connection does not count as idle before this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    activity: Arc<Activity>,
    id: u64,
}

impl InFlight {
    /// Notes that a request begins.
    pub(crate) fn begin(activity: &Arc<Activity>) -> Self {
        let number = activity.begun.fetch_add(1, SeqCst);
        Self { activity: activity.clone(), id: activity.first_id.wrapping_add(number) }
    }

    /// Waits until earlier requests of the same connection have begun and the thread has polled its sockets.
    ///
    /// A new connection to control costs as much as ten redirects, so that a hundred simultaneous requests begin one
    /// by one.
    pub(crate) async fn wait_to_begin(&self) {
        let _permit = self.activity.beginning.acquire().await;
        yield_now().await;
    }

    /// The number of the request.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.activity.ended.fetch_add(1, SeqCst);
    }
}

/// Wakes a task, and records that the cold path has to be polled.
///
/// A connection is polled for each request. Its timers and the shutdown signal are not, because each poll of them
/// takes locks that all connections share.
#[derive(Debug)]
pub(crate) struct ColdPathWaker {
    is_due: AtomicBool,
    task: AtomicWaker,
}

impl ColdPathWaker {
    /// The cold path is due for its first poll.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { is_due: AtomicBool::new(true), task: AtomicWaker::new() })
    }

    /// Whether the cold path was woken since the last call; `known` keeps the waker that was registered last.
    pub(crate) fn is_due(&self, context: &Context<'_>, known: &mut Option<Waker>) -> bool {
        let is_same = known.as_ref().is_some_and(|known| known.will_wake(context.waker()));
        // Set after this load, it wakes the task once more.
        let is_due = self.is_due.load(SeqCst) && self.is_due.swap(false, SeqCst);
        if is_due || !is_same {
            // A wake consumes the waker. A wake before this line is seen by the poll that follows.
            self.task.register(context.waker());
            *known = Some(context.waker().clone());
        }
        // A waker that changed may have missed one.
        is_due || !is_same
    }

    /// Requests another poll.
    pub(crate) fn look_again(&self) {
        self.is_due.store(true, SeqCst);
    }
}

impl Wake for ColdPathWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, SeqCst);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, task::Poll};

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn cold_path_is_polled_only_after_wake() {
        let (cold_path, token) = (ColdPathWaker::new(), CancellationToken::new());
        let waker = Waker::from(cold_path.clone());
        let mut cancelled = pin!(token.cancelled());
        let (mut known, mut polls, mut looks) = (None, 0, 0);
        let done = poll_fn(|context| {
            polls += 1;
            if cold_path.is_due(context, &mut known) {
                looks += 1;
                if cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    return Poll::Ready(());
                }
            }
            match polls {
                // Woken by something else.
                1..5 => context.waker().wake_by_ref(),
                5 => token.cancel(),
                _ => {}
            }
            Poll::Pending
        });
        done.await;
        assert_eq!((polls, looks), (6, 2));
    }
}
