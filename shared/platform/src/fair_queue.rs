//! Requests that wait for one worker, owner by owner: next is the owner that has used the least time.
//!
//! Time is counted from a floor, which is what the owner had used that was served last. So who comes late is served at once and
//! not made up for the past, and who uses much waits for as long as the others need for as much: nobody waits for ever.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use tokio::sync::mpsc;

/// What any request is taken to use at least, in nanoseconds: those that cost nothing take turns.
const LEAST: u64 = 1_000;

/// Owners whose use is kept. Beyond it those are forgotten that are not ahead of the floor, or all if these are few: then the floor
/// becomes the most that any of them had used.
const KEPT: usize = 1_024;

/// Requests of each owner in the order in which they came.
#[derive(Debug)]
struct Waiting<K, W> {
    queues: HashMap<K, VecDeque<W>>,
    /// Owners with requests: the nanoseconds that they have used, and when they came.
    order: BTreeSet<(u64, u64, K)>,
    used: HashMap<K, u64>,
    floor: u64,
    arrivals: u64,
    count: usize,
    /// Who is served. It is put in order again with what that took.
    served: Option<K>,
}

impl<K: Copy + Ord + Hash, W> Waiting<K, W> {
    fn push(&mut self, owner: K, work: W) {
        let queue = self.queues.entry(owner).or_default();
        queue.push_back(work);
        self.count += 1;
        if queue.len() == 1 && self.served != Some(owner) {
            self.enter(owner);
        }
    }

    /// Puts an owner with requests in order.
    fn enter(&mut self, owner: K) {
        let used = self.used.get(&owner).copied().unwrap_or_default().max(self.floor);
        self.order.insert((used, self.arrivals, owner));
        self.arrivals += 1;
    }

    fn pop(&mut self) -> Option<W> {
        self.charge(Duration::ZERO);
        let (used, _, owner) = self.order.pop_first()?;
        self.floor = self.floor.max(used);
        let queue = self.queues.get_mut(&owner)?;
        let work = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        }
        self.count -= 1;
        self.served = Some(owner);
        Some(work)
    }

    /// Counts what the last request took, if that was not done.
    fn charge(&mut self, took: Duration) {
        let Some(owner) = self.served.take() else { return };
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(LEAST);
        let used = self.used.entry(owner).or_default();
        *used = (*used).max(self.floor).saturating_add(nanos);
        if self.queues.contains_key(&owner) {
            self.enter(owner);
        }
        if self.used.len() > KEPT {
            let floor = self.floor;
            self.used.retain(|_, used| *used > floor);
            if self.used.len() > KEPT / 2 {
                // Whoever waits is before all that enter from here on. They would else pass it again and again.
                self.floor = self.used.values().copied().max().unwrap_or(floor);
                self.used.clear();
            }
        }
    }
}

/// The end of a channel from which owners are served in turn.
#[derive(Debug)]
pub struct FairQueue<K, W> {
    receiver: mpsc::Receiver<(K, W)>,
    waiting: Waiting<K, W>,
    /// Requests that are taken out of the channel to be put in order: what exceeds it waits in the channel.
    most: usize,
}

impl<K: Copy + Ord + Hash, W> FairQueue<K, W> {
    /// Puts at most `most` requests of a channel in order.
    #[must_use]
    pub fn new(receiver: mpsc::Receiver<(K, W)>, most: usize) -> Self {
        let waiting = Waiting {
            queues: HashMap::new(),
            order: BTreeSet::new(),
            used: HashMap::new(),
            floor: 0,
            arrivals: 0,
            count: 0,
            served: None,
        };
        Self { receiver, waiting, most }
    }

    /// The next request, if one waits.
    pub fn try_next(&mut self) -> Option<W> {
        while self.waiting.count < self.most
            && let Ok((owner, work)) = self.receiver.try_recv()
        {
            self.waiting.push(owner, work);
        }
        self.waiting.pop()
    }

    /// The next request; `None` when the channel is closed and empty. A caller that stops waiting loses none.
    pub async fn next(&mut self) -> Option<W> {
        match self.try_next() {
            Some(work) => Some(work),
            None => {
                let (owner, work) = self.receiver.recv().await?;
                self.waiting.push(owner, work);
                self.waiting.pop()
            }
        }
    }

    /// Counts the time of the request that came last from here.
    pub fn charge(&mut self, took: Duration) {
        self.waiting.charge(took);
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.count == 0 && self.receiver.is_empty()
    }

    /// Takes no further requests.
    pub fn close(&mut self) {
        self.receiver.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owners_take_turns_and_each_keeps_its_order() {
        let (sender, receiver) = mpsc::channel(100);
        let mut queue = FairQueue::new(receiver, 100);
        for n in 0..50 {
            sender.send((1, ("noisy", n))).await.unwrap();
        }
        sender.send((2, ("quiet", 0))).await.unwrap();
        assert_eq!(queue.try_next(), Some(("noisy", 0)));
        assert_eq!(queue.try_next(), Some(("quiet", 0)), "behind 50 of the other owner");
        assert_eq!(queue.try_next(), Some(("noisy", 1)));
        for n in 1..3 {
            sender.send((2, ("quiet", n))).await.unwrap();
        }
        let mut rest = Vec::new();
        sender.send((3, ("third", 0))).await.unwrap();
        queue.close();
        while let Some(work) = queue.next().await {
            rest.push(work);
        }
        let place = |work| rest.iter().position(|found| *found == work).unwrap();
        assert!(place(("quiet", 1)) < 4 && place(("third", 0)) < 4 && place(("quiet", 2)) < 7, "{rest:?}");
        let noisy: Vec<_> = rest.iter().filter(|(who, _)| *who == "noisy").map(|(_, n)| *n).collect();
        assert_eq!(noisy, (2..50).collect::<Vec<_>>());
        assert!(queue.waiting.queues.is_empty() && queue.is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn an_owner_with_long_requests_waits_for_those_with_short_ones_and_does_not_starve() {
        let (sender, receiver) = mpsc::channel(1_000);
        let mut queue = FairQueue::new(receiver, 1_000);
        let each = |owner: &str| Duration::from_millis(if owner == "long" { 20 } else { 1 });
        for n in 0..100 {
            sender.try_send(("long", ("long", n))).unwrap();
            for owner in ["a", "b", "c", "d"] {
                sender.try_send((owner, (owner, n))).unwrap();
            }
        }
        let (mut time, mut of_long, mut since) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        while time < Duration::from_millis(400) {
            let (owner, _) = queue.try_next().unwrap();
            queue.charge(each(owner));
            time += each(owner);
            since += each(owner);
            if owner == "long" {
                (of_long, since) = (of_long + each(owner), Duration::ZERO);
            }
            assert!(since <= Duration::from_millis(100), "nobody waits for longer than all need for as much");
        }
        let part = of_long.as_secs_f64() / time.as_secs_f64();
        assert!((0.15..0.3).contains(&part), "a fifth of the time, and not four fifths: {part}");
        // One that comes late is next, and gets no more than that for having waited.
        sender.try_send(("late", ("late", 0))).unwrap();
        sender.try_send(("late", ("late", 1))).unwrap();
        assert_eq!(queue.try_next(), Some(("late", 0)));
        queue.charge(Duration::from_millis(30));
        let next: Vec<_> = (0..5)
            .filter_map(|_| {
                let next = queue.try_next();
                queue.charge(Duration::from_millis(1));
                next
            })
            .collect();
        assert!(next.iter().all(|(owner, _)| *owner != "late"), "{next:?}");
    }

    #[tokio::test]
    async fn the_use_of_owners_that_are_gone_is_forgotten() {
        let (sender, receiver) = mpsc::channel(10);
        let mut queue = FairQueue::new(receiver, 10);
        for owner in 0..10_000 {
            sender.try_send((owner, ())).unwrap();
            assert_eq!(queue.try_next(), Some(()));
            queue.charge(Duration::from_millis(1));
        }
        assert!(queue.waiting.used.len() <= KEPT, "{}", queue.waiting.used.len());
    }

    #[tokio::test]
    async fn more_owners_than_are_kept_do_not_pass_one_for_ever() {
        let (sender, receiver) = mpsc::channel(10);
        let mut queue = FairQueue::new(receiver, 10);
        for _ in 0..2 {
            sender.try_send((0, 0)).unwrap();
        }
        assert_eq!(queue.try_next(), Some(0));
        queue.charge(Duration::from_secs(1));
        let served_before = (1..4 * KEPT)
            .take_while(|owner| {
                sender.try_send((*owner, *owner)).unwrap();
                let next = queue.try_next();
                queue.charge(Duration::from_millis(1));
                next != Some(0)
            })
            .count();
        assert!(served_before <= KEPT, "{served_before}");
    }

    #[tokio::test]
    async fn what_exceeds_the_bound_waits_in_the_channel() {
        let (sender, receiver) = mpsc::channel(10);
        let mut queue = FairQueue::new(receiver, 3);
        for n in 0..10 {
            sender.try_send((1, n)).unwrap();
        }
        assert_eq!(queue.try_next(), Some(0));
        for n in 10..13 {
            sender.try_send((1, n)).unwrap();
        }
        assert!(sender.try_send((1, 13)).is_err(), "the channel is full");
        let mut all = Vec::new();
        while let Some(n) = queue.try_next() {
            all.push(n);
        }
        assert_eq!(all, (1..13).collect::<Vec<_>>());
    }
}
