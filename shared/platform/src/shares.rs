//! A pool of slots with a bound per owner, so that no owner can take all of it.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::fair;

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full<K> {
    /// The pool as a whole is used up.
    Pool,
    /// This owner's share is used up.
    Owner(K),
}

/// A pool of places; cheap to clone.
#[derive(Debug)]
pub struct Shares<K> {
    inner: Arc<Inner<K>>,
}

#[derive(Debug)]
struct Inner<K> {
    most: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by_owner: HashMap<K, usize>,
}

impl<K> Inner<K> {
    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: Hash + Eq + Clone> Shares<K> {
    /// A pool of `most` places.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let taken = Mutex::new(Taken { all: 0, by_owner: HashMap::new() });
        Self { inner: Arc::new(Inner { most, taken }) }
    }

    /// Places in all.
    #[must_use]
    pub fn most(&self) -> usize {
        self.inner.most
    }

    /// Places that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.inner.lock().all
    }

    /// Owners that would get no further place, if one alone may have at most `most`.
    #[must_use]
    pub fn list_full(&self, most: usize) -> Vec<K> {
        let taken = self.inner.lock();
        let (total, free) = (self.inner.most, self.inner.most.saturating_sub(taken.all));
        let full = taken.by_owner.iter().filter(|(_, count)| !fair::admits(**count, most, total, free));
        full.map(|(owner, _)| owner.clone()).collect()
    }

    /// Takes a place in the name of all these owners, each with the most places that it may have alone; where others have
    /// places, too, it may have less ([`fair::admits`]).
    ///
    /// # Errors
    /// The pool, or the share of an owner, is used up; nothing was taken then.
    pub fn take(&self, owners: impl IntoIterator<Item = (K, usize)>) -> Result<Share<K>, Full<K>> {
        let mut taken = self.inner.lock();
        let mut names = Vec::new();
        let (total, free) = (self.inner.most, self.inner.most.saturating_sub(taken.all));
        for (owner, most) in owners {
            let count = taken.by_owner.get(&owner).copied().unwrap_or_default();
            if !fair::admits(count, most, total, free) {
                return Err(Full::Owner(owner));
            }
            names.push(owner);
        }
        if taken.all >= self.inner.most {
            return Err(Full::Pool);
        }
        taken.all += 1;
        for owner in &names {
            *taken.by_owner.entry(owner.clone()).or_default() += 1;
        }
        drop(taken);
        Ok(Share { inner: self.inner.clone(), owners: names })
    }
}

/// A slot of a pool, returned on drop.
#[derive(Debug)]
pub struct Share<K: Hash + Eq> {
    inner: Arc<Inner<K>>,
    owners: Vec<K>,
}

impl<K: Hash + Eq> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.inner.lock();
        taken.all = taken.all.saturating_sub(1);
        for owner in &self.owners {
            if let Some(count) = taken.by_owner.get_mut(owner) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    taken.by_owner.remove(owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_that_take_all_leave_room_for_one_that_comes_late() {
        let pool = Shares::new(32);
        let mut held = Vec::new();
        loop {
            let more: Vec<_> = (0..10).filter_map(|noisy| pool.take([(noisy, 16)]).ok()).collect();
            if more.is_empty() {
                break;
            }
            held.extend(more);
        }
        assert!(pool.taken() < 32, "{} of 32", pool.taken());
        assert_eq!(pool.take([(0, 16)]).unwrap_err(), Full::Owner(0));
        assert!(pool.take([(99, 16)]).is_ok());
        // Those that were first get more once the others have gone.
        held.retain(|share| share.owners == [0]);
        assert!(pool.take([(0, 16)]).is_ok());
    }

    #[test]
    fn an_owner_is_bounded_by_its_share_and_returns_it() {
        let pool = Shares::new(4);
        let take = |tenant: &'static str, actor: &'static str| pool.take([(tenant, 3), (actor, 2)]);
        let held = [take("t", "a").unwrap(), take("t", "a").unwrap()];
        assert_eq!(take("t", "a").unwrap_err(), Full::Owner("a"));
        let third = take("t", "b").unwrap();
        assert_eq!(take("t", "c").unwrap_err(), Full::Owner("t"));
        let other = take("u", "d").unwrap();
        assert_eq!(take("v", "e").unwrap_err(), Full::Pool);
        drop(held);
        assert_eq!((pool.taken(), pool.most()), (2, 4));
        drop((third, other, take("t", "a").unwrap()));
        assert_eq!(pool.taken(), 0);
        assert!(pool.inner.lock().by_owner.is_empty(), "only owners with places are held");
    }
}
