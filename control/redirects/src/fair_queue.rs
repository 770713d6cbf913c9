//! Requests that wait for the writer, account by account: one with many does not delay those of others.

use std::collections::{HashMap, VecDeque};

use shared::id::AccountId;
use tokio::sync::mpsc;

/// Requests of each account in the order in which they came; accounts take turns.
#[derive(Debug)]
struct Turns<W> {
    waiting: HashMap<AccountId, VecDeque<W>>,
    /// Accounts with requests; the one at the front is next.
    order: VecDeque<AccountId>,
    count: usize,
}

impl<W> Turns<W> {
    fn push(&mut self, account: AccountId, work: W) {
        let queue = self.waiting.entry(account).or_default();
        if queue.is_empty() {
            self.order.push_back(account);
        }
        queue.push_back(work);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<W> {
        let account = self.order.pop_front()?;
        let queue = self.waiting.get_mut(&account)?;
        let work = queue.pop_front()?;
        self.count -= 1;
        if queue.is_empty() {
            self.waiting.remove(&account);
        } else {
            self.order.push_back(account);
        }
        Some(work)
    }
}

/// The end of a channel from which accounts are served in turn.
#[derive(Debug)]
pub(crate) struct FairQueue<W> {
    receiver: mpsc::Receiver<(AccountId, W)>,
    turns: Turns<W>,
    /// Requests that are taken out of the channel to be put in order: what exceeds it waits in the channel.
    most: usize,
}

impl<W> FairQueue<W> {
    pub(crate) fn new(receiver: mpsc::Receiver<(AccountId, W)>, most: usize) -> Self {
        let turns = Turns { waiting: HashMap::new(), order: VecDeque::new(), count: 0 };
        Self { receiver, turns, most }
    }

    /// The next request, if one waits.
    pub(crate) fn try_next(&mut self) -> Option<W> {
        while self.turns.count < self.most
            && let Ok((account, work)) = self.receiver.try_recv()
        {
            self.turns.push(account, work);
        }
        self.turns.pop()
    }

    /// The next request; `None` when the channel is closed and empty. A caller that stops waiting loses none.
    pub(crate) async fn next(&mut self) -> Option<W> {
        match self.try_next() {
            Some(work) => Some(work),
            None => self.receiver.recv().await.map(|(_, work)| work),
        }
    }

    /// Takes no further requests.
    pub(crate) fn close(&mut self) {
        self.receiver.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u8) -> AccountId {
        AccountId::new(1, [n; 16])
    }

    #[tokio::test]
    async fn accounts_take_turns_and_each_keeps_its_order() {
        let (sender, receiver) = mpsc::channel(100);
        let mut queue = FairQueue::new(receiver, 100);
        for n in 0..50 {
            sender.send((account(1), ("noisy", n))).await.unwrap();
        }
        sender.send((account(2), ("quiet", 0))).await.unwrap();
        assert_eq!(queue.try_next(), Some(("noisy", 0)));
        assert_eq!(queue.try_next(), Some(("quiet", 0)), "behind 50 of the other account");
        assert_eq!(queue.try_next(), Some(("noisy", 1)));
        for n in 1..3 {
            sender.send((account(2), ("quiet", n))).await.unwrap();
        }
        let mut rest = Vec::new();
        sender.send((account(3), ("third", 0))).await.unwrap();
        queue.close();
        while let Some(work) = queue.next().await {
            rest.push(work);
        }
        let place = |work| rest.iter().position(|found| *found == work).unwrap();
        assert!(place(("quiet", 1)) < 4 && place(("third", 0)) < 4 && place(("quiet", 2)) < 7, "{rest:?}");
        let noisy: Vec<_> = rest.iter().filter(|(who, _)| *who == "noisy").map(|(_, n)| *n).collect();
        assert_eq!(noisy, (2..50).collect::<Vec<_>>());
        assert!(queue.turns.waiting.is_empty() && queue.turns.count == 0, "nothing is kept");
    }

    #[tokio::test]
    async fn what_exceeds_the_bound_waits_in_the_channel() {
        let (sender, receiver) = mpsc::channel(10);
        let mut queue = FairQueue::new(receiver, 3);
        for n in 0..10 {
            sender.try_send((account(1), n)).unwrap();
        }
        assert_eq!(queue.try_next(), Some(0));
        for n in 10..13 {
            sender.try_send((account(1), n)).unwrap();
        }
        assert!(sender.try_send((account(1), 13)).is_err(), "the channel is full");
        let mut all = Vec::new();
        while let Some(n) = queue.try_next() {
            all.push(n);
        }
        assert_eq!(all, (1..13).collect::<Vec<_>>());
    }
}
