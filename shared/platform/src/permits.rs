//! Connection permits of a listener: how many there are, who holds them, and which connection is closed to make room.
//!
//! A connection starts as a newcomer. There are few permits for newcomers; when they are used up, a newcomer of the
//! address that holds the most is closed for the next one. A connection that presents a key is no longer a newcomer.
//! Holders of public keys are bounded, and so are each address, key and account; the rest is for trusted clients. Accounts
//! that take all that they get leave room for others ([`fair::admits`]).

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

use shared::client_address::network;

mod bounds;
mod handle;
#[cfg(test)]
mod tests;

pub use self::bounds::{Bounds, Refused};
use self::handle::Shared;
pub use self::handle::{Busy, Handle, Permit};
use crate::fair;

/// The class of a connection's holder, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Has not presented a known key yet.
    Newcomer,
    /// A key from a public page, or one that anybody can get with it.
    Public,
    /// A key that is kept secret.
    Trusted,
}

/// Whose key a connection showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// What kind of key it is.
    pub rank: Rank,
    /// The key's hash.
    pub key: [u8; 32],
    /// The account.
    pub account: String,
    /// Whether it is an operator of the account, or belongs to us: it may have what applications must leave.
    pub is_operator: bool,
}

impl Holder {
    /// The owners whose shares a connection of this holder counts against, each with its bound and the reason of a
    /// refusal.
    fn owners(&self, bounds: &Bounds) -> Vec<(Owner, usize, Refused)> {
        let account = || self.account.clone();
        let mut owners = vec![
            (Owner::Key(self.key), bounds.per_key, Refused::Key),
            (Owner::Account(account()), bounds.per_account, Refused::Account),
        ];
        if !self.is_operator {
            owners.push((Owner::Applications(account()), bounds.per_applications, Refused::Account));
        }
        owners
    }
}

/// The permits of one listener, or of several that share them.
#[derive(Debug)]
pub struct Permits {
    bounds: Bounds,
    state: Mutex<State>,
    taken: AtomicUsize,
    refused: [AtomicU64; Refused::ALL.len()],
    hasher: RandomState,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    Address(IpAddr),
    Key([u8; 32]),
    Account(String),
    Applications(String),
    Public(String),
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    displaced: u64,
    all: usize,
    public: usize,
    owners: HashMap<Owner, usize>,
    /// Connections that may be closed to make room, if that is enabled.
    newcomers: HashMap<u64, Newcomer>,
}

#[derive(Debug)]
struct Newcomer {
    address: IpAddr,
    shared: Arc<Shared>,
}

impl State {
    fn count(&self, owner: &Owner) -> usize {
        self.owners.get(owner).copied().unwrap_or_default()
    }

    fn add(&mut self, owner: Owner) {
        *self.owners.entry(owner).or_default() += 1;
    }

    fn remove(&mut self, owner: &Owner) {
        if let Some(count) = self.owners.get_mut(owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

impl Permits {
    /// Permits within bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            state: Mutex::default(),
            taken: AtomicUsize::new(0),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            hasher: RandomState::new(),
        })
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Connections that are open.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// How many were refused or ended for this reason.
    #[must_use]
    pub fn refused(&self, reason: Refused) -> u64 {
        self.refused.get(reason as usize).map_or(0, |count| count.load(Relaxed))
    }

    /// Counts a connection that was refused or ended.
    pub fn note(&self, reason: Refused) {
        if let Some(count) = self.refused.get(reason as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// A permit for a connection that was just accepted; `is_exempt` frees it from the bound of its address.
    ///
    /// # Errors
    /// The bound that is reached; the refusal was counted.
    pub fn enter(self: &Arc<Self>, ip: IpAddr, is_exempt: bool) -> Result<Permit, Refused> {
        let address = network(ip.to_canonical());
        let mut state = self.lock();
        let counted = !is_exempt || self.bounds.newcomers.is_some();
        if !is_exempt && state.count(&Owner::Address(address)) >= self.bounds.per_address {
            drop(state);
            return Err(self.refuse(Refused::Address));
        }
        let is_crowded = self.bounds.newcomers.is_some_and(|most| state.newcomers.len() >= most);
        if (is_crowded || state.all >= self.bounds.most) && !self.make_room(&mut state) {
            drop(state);
            return Err(self.refuse(Refused::Full));
        }
        state.next_id += 1;
        let id = state.next_id;
        state.all += 1;
        self.taken.store(state.all, Relaxed);
        if counted {
            state.add(Owner::Address(address));
        }
        let shared = Arc::new(Shared::new(self.clone(), id, counted.then_some(address)));
        if self.bounds.newcomers.is_some() {
            state.newcomers.insert(id, Newcomer { address, shared: shared.clone() });
        }
        Ok(Permit(shared))
    }

    /// Closes a newcomer of the address that has the most: an idle one rather than one with a request in flight, and
    /// a random one among equals, so that neither early nor late connections are safe.
    fn make_room(&self, state: &mut State) -> bool {
        let round = state.displaced;
        let last = state.newcomers.iter().min_by_key(|(id, newcomer)| {
            let crowd = state.count(&Owner::Address(newcomer.address));
            (newcomer.shared.is_busy(), usize::MAX - crowd, self.hasher.hash_one((round, **id)))
        });
        let Some((&id, _)) = last else { return false };
        let Some(newcomer) = state.newcomers.remove(&id) else { return false };
        state.displaced += 1;
        self.leave(state, &newcomer.shared);
        newcomer.shared.displace();
        self.note(Refused::Displaced);
        true
    }

    /// Returns everything that a permit holds; once.
    fn leave(&self, state: &mut State, shared: &Shared) {
        let mut held = shared.held();
        if held.is_gone {
            return;
        }
        held.is_gone = true;
        state.all = state.all.saturating_sub(1);
        self.taken.store(state.all, Relaxed);
        state.newcomers.remove(&shared.id);
        if let Some(address) = held.address.take() {
            state.remove(&Owner::Address(address));
        }
        if held.rank == Rank::Public {
            state.public = state.public.saturating_sub(1);
        }
        for owner in held.owners.drain(..) {
            state.remove(&owner);
        }
        if let Some(public) = held.public.take() {
            state.remove(&public);
        }
    }

    /// Moves a permit to the holder of a key, if the bounds allow. `is_counted`: against the bounds of key and
    /// account.
    fn promote(
        &self,
        shared: &Shared,
        holder: &Holder,
        is_counted: bool,
        client: Option<IpAddr>,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        let mut held = shared.held();
        if held.is_gone {
            return Err(Refused::Displaced);
        }
        let is_new = is_counted && held.owners.is_empty();
        let owners = if is_new { holder.owners(&self.bounds) } else { Vec::new() };
        // Newcomers make room when it is needed. Where they are not known apart, this connection is one of all.
        let others = if self.bounds.newcomers.is_some() {
            state.all.saturating_sub(state.newcomers.len())
        } else {
            state.all.saturating_sub(1)
        };
        let (total, free) = (self.bounds.most, self.bounds.most.saturating_sub(others));
        let is_full = |(owner, most, _): &&(Owner, usize, Refused)| {
            !fair::admits(state.count(owner), *most, total, free)
        };
        let full = owners.iter().find(is_full);
        let address = client.map(|ip| network(ip.to_canonical())).filter(|_| held.address.is_none());
        let rises = holder.rank > held.rank;
        let public = (rises && holder.rank == Rank::Public).then(|| Owner::Public(holder.account.clone()));
        let is_public_full = public.as_ref().is_some_and(|public| {
            let (total, most) = (self.bounds.public, self.bounds.per_account_public);
            let free = total.saturating_sub(state.public);
            free == 0 || !fair::admits(state.count(public), most, total, free)
        });
        let refused = if let Some((_, _, reason)) = full {
            Some(*reason)
        } else if is_public_full {
            Some(Refused::Public)
        } else if holder.rank != Rank::Trusted
            && address.is_some_and(|ip| state.count(&Owner::Address(ip)) >= self.bounds.per_address)
        {
            Some(Refused::Address)
        } else {
            None
        };
        if let Some(reason) = refused {
            return Err(reason);
        }
        for (owner, _, _) in owners {
            state.add(owner.clone());
            held.owners.push(owner);
        }
        if rises {
            if let Some(before) = held.public.take() {
                state.remove(&before);
            }
            if let Some(public) = public {
                state.add(public.clone());
                held.public = Some(public);
            }
            state.newcomers.remove(&shared.id);
            state.public += usize::from(holder.rank == Rank::Public);
            state.public -= usize::from(held.rank == Rank::Public);
            held.rank = holder.rank;
        }
        match (holder.rank, address) {
            // Colleagues behind one address are not bounded by it once they showed who they are.
            (Rank::Trusted, _) => {
                if let Some(address) = held.address.take() {
                    state.remove(&Owner::Address(address));
                }
            }
            (Rank::Newcomer | Rank::Public, Some(address)) => {
                state.add(Owner::Address(address));
                held.address = Some(address);
            }
            (Rank::Newcomer | Rank::Public, None) => {}
        }
        shared.rank.store(held.rank as usize, SeqCst);
        Ok(())
    }

    fn refuse(&self, reason: Refused) -> Refused {
        self.note(reason);
        reason
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
