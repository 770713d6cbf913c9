//! Group commit: what waits at the same time is done in one transaction.
//!
//! The callers do the work themselves: one of those that wait takes what waits, up to a size, and answers the others. If it is
//! dropped on the way, what it took is given back, and another caller takes it. So nothing goes on for callers that left.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kernel::store::StoreError;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, oneshot};

/// Most scans that wait; beyond it callers get 503. Each takes some 2 KB, so all take 256 MB: those of 128 full batches, or of some
/// hundred edges that send a few hundred each after a stall.
const MAX_WAITING: usize = 128_000;

/// Items of type `T` that wait for answers of type `A`.
#[derive(Debug)]
pub(super) struct Groups<T, A> {
    waiting: Mutex<VecDeque<Waiting<T, A>>>,
    /// One permit for each group that may be under way.
    lanes: Semaphore,
    /// Wakes callers when items were given back.
    returned: Notify,
    /// The size of a group, unless its first item is larger.
    most: usize,
}

#[derive(Debug)]
struct Waiting<T, A> {
    item: T,
    size: usize,
    answer: oneshot::Sender<A>,
}

/// The caller's end of an item that waits.
#[derive(Debug)]
pub(super) struct Place<'a, T, A> {
    groups: &'a Groups<T, A>,
    answered: oneshot::Receiver<A>,
}

/// What a caller is to do.
#[derive(Debug)]
pub(super) enum Turn<'a, T, A> {
    /// Its item was done.
    Answered(A),
    /// It does these items, and asks again. Its own is not always among them.
    Leads(Group<'a, T, A>),
}

/// Items that a caller does; those that it leaves without an answer are given back.
#[derive(Debug)]
pub(super) struct Group<'a, T, A> {
    groups: &'a Groups<T, A>,
    members: VecDeque<Waiting<T, A>>,
    _lane: SemaphorePermit<'a>,
}

impl<T, A> Groups<T, A> {
    /// Lets so many groups be under way at once, each of items of `most` size together.
    pub(super) fn new(lanes: usize, most: usize) -> Self {
        Self { waiting: Mutex::default(), lanes: Semaphore::new(lanes), returned: Notify::new(), most }
    }

    /// Puts an item behind those that wait; `size` is in scans, and none counts as one.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when too many scans wait.
    pub(super) fn join(&self, item: T, size: usize) -> Result<Place<'_, T, A>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let size = size.max(1);
        let mut waiting = self.waiting();
        let before: usize = waiting.iter().map(|one| one.size).sum();
        if before + size > MAX_WAITING {
            return Err(StoreError::Busy);
        }
        waiting.push_back(Waiting { item, size, answer });
        Ok(Place { groups: self, answered })
    }

    /// How many items wait that nobody does.
    pub(super) fn count(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting<T, A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next group; empty if nothing waits. Items whose callers left are dropped.
    fn take(&self) -> VecDeque<Waiting<T, A>> {
        let mut waiting = self.waiting();
        let (mut members, mut size) = (VecDeque::new(), 0);
        while let Some(next) = waiting.pop_front() {
            if next.answer.is_closed() {
                continue;
            }
            if !members.is_empty() && size + next.size > self.most {
                waiting.push_front(next);
                break;
            }
            size += next.size;
            members.push_back(next);
        }
        members
    }
}

impl<'a, T, A> Place<'a, T, A> {
    /// Waits until the item is done, or there is a group to be done by this caller.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] when whoever did the item panicked.
    pub(super) async fn next(&mut self) -> Result<Turn<'a, T, A>, StoreError> {
        let groups = self.groups;
        loop {
            // Hears of what is given back from here on.
            let returned = groups.returned.notified();
            let lane = tokio::select! {
                biased;
                answer = &mut self.answered => {
                    return answer.map(Turn::Answered).map_err(|_| StoreError::Stopped);
                }
                lane = groups.lanes.acquire() => lane.map_err(|_| StoreError::Stopped)?,
            };
            let members = groups.take();
            if !members.is_empty() {
                return Ok(Turn::Leads(Group { groups, members, _lane: lane }));
            }
            // The item is under way in another lane.
            drop(lane);
            tokio::select! {
                biased;
                answer = &mut self.answered => {
                    return answer.map(Turn::Answered).map_err(|_| StoreError::Stopped);
                }
                () = returned => {}
            }
        }
    }
}

impl<T, A> Drop for Place<'_, T, A> {
    fn drop(&mut self) {
        // An item whose caller left takes no room.
        self.answered.close();
        self.groups.waiting().retain(|one| !one.answer.is_closed());
    }
}

impl<T, A> Group<'_, T, A> {
    /// The items that have no answer yet.
    pub(super) fn items(&self) -> Vec<&T> {
        self.members.iter().map(|member| &member.item).collect()
    }

    /// The first item that has no answer yet, and whose caller is still there.
    pub(super) fn first(&mut self) -> Option<&T> {
        while self.members.front().is_some_and(|member| member.answer.is_closed()) {
            self.members.pop_front();
        }
        self.members.front().map(|member| &member.item)
    }

    /// Answers the first item that has no answer yet.
    pub(super) fn answer(&mut self, answer: A) {
        if let Some(member) = self.members.pop_front() {
            // The caller may have left.
            let _ = member.answer.send(answer);
        }
    }
}

impl<T, A> Drop for Group<'_, T, A> {
    fn drop(&mut self) {
        // What panicked once would do so again: its callers get an error.
        if self.members.is_empty() || std::thread::panicking() {
            return;
        }
        {
            let mut waiting = self.groups.waiting();
            while let Some(member) = self.members.pop_back() {
                // The place of a caller that left is gone: nobody would take its item out.
                if !member.answer.is_closed() {
                    waiting.push_front(member);
                }
            }
        }
        self.groups.returned.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Numbers = Groups<u32, u32>;

    async fn led<'a>(place: &mut Place<'a, u32, u32>) -> Group<'a, u32, u32> {
        match place.next().await.unwrap() {
            Turn::Leads(group) => group,
            Turn::Answered(answer) => panic!("{answer}"),
        }
    }

    async fn answered(place: &mut Place<'_, u32, u32>) -> u32 {
        match place.next().await.unwrap() {
            Turn::Answered(answer) => answer,
            Turn::Leads(group) => panic!("{group:?}"),
        }
    }

    #[tokio::test]
    async fn one_caller_does_what_waits_up_to_a_size() {
        let groups = Numbers::new(1, 10);
        let items = [(4, 4), (6, 6), (1, 1), (99, 99)];
        let mut places: Vec<_> =
            items.into_iter().map(|(item, size)| groups.join(item, size).unwrap()).collect();
        let mut group = led(&mut places[1]).await;
        assert_eq!(group.items(), [&4, &6]);
        assert_eq!(groups.count(), 2);
        group.answer(104);
        group.answer(106);
        drop(group);
        assert_eq!((answered(&mut places[0]).await, answered(&mut places[1]).await), (104, 106));
        assert_eq!(led(&mut places[3]).await.items(), [&1]);
        // That one was given back; a large one is a group of its own.
        let mut group = led(&mut places[2]).await;
        assert_eq!(group.items(), [&1]);
        group.answer(101);
        drop(group);
        assert_eq!(led(&mut places[3]).await.items(), [&99]);
    }

    #[tokio::test]
    async fn what_a_caller_leaves_is_done_by_another_one() {
        let groups = Numbers::new(2, 10);
        let (mut first, mut second) = (groups.join(1, 1).unwrap(), groups.join(2, 1).unwrap());
        let group = led(&mut first).await;
        assert_eq!(group.items(), [&1, &2]);
        // A lane is free, but there is nothing to do.
        let mut next = Box::pin(second.next());
        assert!(tokio::time::timeout(Duration::ZERO, &mut next).await.is_err());
        drop((group, first));
        let Turn::Leads(mut group) = next.await.unwrap() else { panic!("not led") };
        assert_eq!(group.items(), [&2], "the caller of the other one left");
        assert_eq!(group.first(), Some(&2));
        group.answer(102);
        drop(group);
        assert_eq!(answered(&mut second).await, 102);
    }

    #[tokio::test]
    async fn too_many_are_refused() {
        let groups = Numbers::new(1, 10);
        let full = |_| groups.join(1, 1_000).unwrap();
        let mut places: Vec<_> = (0..MAX_WAITING / 1_000).map(full).collect();
        assert!(matches!(groups.join(1, 0), Err(StoreError::Busy)));
        places.pop();
        let small: Vec<_> = (0..1_000).map(|_| groups.join(1, 1).unwrap()).collect();
        assert!(matches!(groups.join(1, 1), Err(StoreError::Busy)));
        drop((places, small));
        assert_eq!(groups.count(), 0, "those whose callers left are dropped");
        let mut place = groups.join(2, 1).unwrap();
        assert_eq!(led(&mut place).await.items(), [&2]);
    }
}
