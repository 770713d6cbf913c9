//! Fair admission of requests: while several accounts ask, few requests are under way at once, and an account with many waits
//! for one with few.
//!
//! A request takes a place once its caller is known and its body is read, and gives it back with the answer, or before it
//! waits for something else. An operation that waits by nature takes none: its row says so. While one account alone asks,
//! nothing is limited, because the store takes requests that come together in batches. Each account may have a part of the
//! places, at least one, whatever the others have; the rest goes to the account that used them least of late.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{Extensions, Method, request::Parts};
use kernel::{buckets::REQUEST_SECONDS, domain::access::Actor};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use shared::id::AccountId;
use tokio::sync::oneshot;

use crate::{request_error::RequestError, routes::Policy};

/// Places of a core: one request computes while another one waits for the database, which computes on these cores, too, or for
/// its disk. Changes of links have none while they wait for the writer.
const PLACES_PER_CORE: usize = 2;

/// Places beyond these, for accounts without any.
const MORE_PLACES: usize = 4;

/// Most places of both kinds. It is below the connections of a process to Postgres, 16, so that no request waits for one, and
/// background work has some.
const MOST_PLACES: usize = 12;

/// Requests of one account that may wait; one with a public key, which strangers have, only if fewer than half as many do.
const MOST_WAITING: usize = 256;

/// How long places are limited after two accounts asked by turns.
const CONTENDED: Duration = Duration::from_secs(2);

/// Time in which what an account used loses half of its weight.
const HALF_LIFE: Duration = Duration::from_secs(2);

/// What a request is taken to use until it is over, in seconds.
const EXPECTED: f64 = 0.01;

/// Growth of weights after which all are brought back to 1.
const MOST_WEIGHT: f64 = 1_048_576.0;

/// The places of a process.
#[derive(Debug)]
pub struct FairShare {
    /// Those that any account gets.
    places: usize,
    /// Those that there are at most.
    most: usize,
    state: Mutex<State>,
    waited_seconds: Histogram,
    waiting: Gauge,
    refused: Counter,
}

#[derive(Debug)]
struct State {
    /// Those that have places, wait for some, or used some of late.
    accounts: HashMap<AccountId, Account>,
    /// Accounts with requests that wait.
    queue: Vec<AccountId>,
    /// Accounts with requests that have places or wait.
    present: usize,
    under_way: usize,
    /// Whose request came last.
    last: Option<AccountId>,
    /// Until when places are limited.
    contended_until: Option<Instant>,
    /// When the weight of use was 1: it doubles with each half-life, which lets older use fade without a change of it.
    since: Instant,
}

#[derive(Debug, Default)]
struct Account {
    under_way: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
    /// Weighted seconds.
    used: f64,
}

impl Account {
    fn is_present(&self) -> bool {
        self.under_way > 0 || !self.waiting.is_empty()
    }
}

/// A place; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    share: Arc<FairShare>,
    account: AccountId,
    begun: Instant,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.share.leave(self.account, self.begun);
    }
}

impl FairShare {
    /// Places for a process on this machine.
    #[must_use]
    pub fn of_machine() -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let places = (PLACES_PER_CORE * cores).min(MOST_PLACES);
        Self::new(places, (places + MORE_PLACES).min(MOST_PLACES))
    }

    /// So many places that any account gets, and so many at most.
    #[must_use]
    pub fn new(places: usize, most: usize) -> Arc<Self> {
        let state = State {
            accounts: HashMap::new(),
            queue: Vec::new(),
            present: 0,
            under_way: 0,
            last: None,
            contended_until: None,
            since: Instant::now(),
        };
        Arc::new(Self {
            places,
            most,
            state: Mutex::new(state),
            waited_seconds: Histogram::new(REQUEST_SECONDS),
            waiting: Gauge::default(),
            refused: Counter::default(),
        })
    }

    /// Requests that wait now.
    #[must_use]
    pub fn count_waiting(&self) -> i64 {
        self.waiting.get()
    }

    /// Adds the metrics to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Wait of requests for a place, of those that waited";
        registry.register("request_place_seconds", help, self.waited_seconds.clone());
        let help = "Requests that wait for a place beside those of other accounts";
        registry.register("requests_waiting", help, self.waiting.clone());
        let help = "Requests that were refused because many of their account wait";
        registry.register("requests_not_admitted", help, self.refused.clone());
    }

    /// Takes a place for a request of an account, and waits for it where others come first.
    ///
    /// # Errors
    /// Too many requests of the account wait.
    pub async fn enter(self: &Arc<Self>, account: AccountId, is_public: bool) -> Result<Place, RequestError> {
        let asked = Instant::now();
        let most = if is_public { MOST_WAITING / 2 } else { MOST_WAITING };
        let receiver = match self.arrive(account, most, asked)? {
            Ok(place) => return Ok(place),
            Err(receiver) => receiver,
        };
        let _waits = Waits::begin(&self.waiting);
        let place = receiver.await.map_err(|_| RequestError::TooManyWaiting { account, most })?;
        self.waited_seconds.observe(asked.elapsed().as_secs_f64());
        Ok(place)
    }

    /// A place, or where it will come.
    fn arrive(
        self: &Arc<Self>,
        account: AccountId,
        most: usize,
        now: Instant,
    ) -> Result<Result<Place, oneshot::Receiver<Place>>, RequestError> {
        let mut state = self.lock();
        let state = &mut *state;
        if state.last.replace(account).is_some_and(|last| last != account) {
            state.contended_until = state.contended_until.max(Some(now + CONTENDED));
        }
        let entry = state.accounts.entry(account).or_default();
        let was_present = entry.is_present();
        if entry.waiting.len() >= most {
            self.refused.inc();
            return Err(RequestError::TooManyWaiting { account, most });
        }
        state.present += usize::from(!was_present);
        let (count, has_waiting) = (entry.under_way, !entry.waiting.is_empty());
        let may_run = !has_waiting && self.admits(state, count, now);
        let entry = state.accounts.entry(account).or_default();
        if may_run {
            entry.under_way += 1;
            state.under_way += 1;
            return Ok(Ok(Place { share: self.clone(), account, begun: now }));
        }
        let (sender, receiver) = oneshot::channel();
        if entry.waiting.is_empty() {
            state.queue.push(account);
        }
        entry.waiting.push_back(sender);
        Ok(Err(receiver))
    }

    /// Whether an account that has `count` places may have another.
    fn admits(&self, state: &State, count: usize, now: Instant) -> bool {
        let is_contended = state.contended_until.is_some_and(|until| now < until);
        let part = (self.places / state.present.max(1)).max(1);
        !is_contended || state.under_way < self.places || (count < part && state.under_way < self.most)
    }

    /// Gives a place back, and free places to those who wait.
    fn leave(self: &Arc<Self>, account: AccountId, begun: Instant) {
        let now = Instant::now();
        let mut state = self.lock();
        let weight = state.weight(now);
        state.under_way = state.under_way.saturating_sub(1);
        if let Some(entry) = state.accounts.get_mut(&account) {
            entry.under_way = entry.under_way.saturating_sub(1);
            entry.used += now.saturating_duration_since(begun).as_secs_f64() * weight;
            let is_gone = !entry.is_present();
            state.present = state.present.saturating_sub(usize::from(is_gone));
        }
        let unwanted = self.hand_out(&mut state, now);
        drop(state);
        // Their callers have just left; each gives its place back in turn.
        drop(unwanted);
    }

    /// Gives free places to those who wait; returns those that nobody takes any more.
    fn hand_out(self: &Arc<Self>, state: &mut State, now: Instant) -> Vec<Place> {
        let mut unwanted = Vec::new();
        let expected = EXPECTED * state.weight(now);
        loop {
            let waiting = state.queue.iter().enumerate().filter_map(|(index, account)| {
                let entry = state.accounts.get(account)?;
                let used = entry.used + entry.under_way as f64 * expected;
                self.admits(state, entry.under_way, now).then_some((index, *account, used))
            });
            let Some((index, account, _)) = waiting.min_by(|a, b| a.2.total_cmp(&b.2)) else { break };
            let Some(entry) = state.accounts.get_mut(&account) else { break };
            let next = entry.waiting.pop_front();
            if entry.waiting.is_empty() {
                state.queue.remove(index);
            }
            // The caller of one may have left.
            let Some(next) = next.filter(|next| !next.is_closed()) else {
                state.present -= usize::from(!entry.is_present());
                continue;
            };
            entry.under_way += 1;
            state.under_way += 1;
            let place = Place { share: self.clone(), account, begun: now };
            unwanted.extend(next.send(place).err());
        }
        unwanted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The weight of use now. Where it has grown far, all use is brought back, and accounts are forgotten that used little.
    fn weight(&mut self, now: Instant) -> f64 {
        let age = now.saturating_duration_since(self.since).as_secs_f64();
        let weight = (age / HALF_LIFE.as_secs_f64()).exp2();
        if weight <= MOST_WEIGHT {
            return weight;
        }
        self.since = now;
        self.accounts.retain(|_, account| {
            account.used /= weight;
            account.is_present() || account.used > EXPECTED / 10.0
        });
        1.0
    }
}

/// Counts a request while it waits, however that ends.
struct Waits(Gauge);

impl Waits {
    fn begin(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The place of a request; it is in the extensions of the request. The layer that answers gives the place back. A request that
/// panics or is dropped frees it with the last clone; one that goes on without its client keeps it until then. The default is
/// that of no request, and never has a place.
#[derive(Debug, Clone, Default)]
pub struct Slot(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    share: Arc<FairShare>,
    held: Mutex<Held>,
}

/// The account of the caller, with whether its key is a public one, and the place.
type Held = (Option<(AccountId, bool)>, Option<Place>);

impl Inner {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Of a request whose caller is not known yet.
    #[must_use]
    pub fn new(share: Arc<FairShare>) -> Self {
        Self(Some(Arc::new(Inner { share, held: Mutex::default() })))
    }

    /// That of a request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Notes the caller.
    fn note(&self, account: AccountId, is_public: bool) {
        if let Some(inner) = &self.0 {
            inner.held().0 = Some((account, is_public));
        }
    }

    /// Takes a place, if the caller is known and the request has none.
    pub(crate) async fn enter(&self) -> Result<(), RequestError> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let (account, is_public) = match &*inner.held() {
            (Some(caller), None) => *caller,
            (_, _) => return Ok(()),
        };
        let place = inner.share.enter(account, is_public).await?;
        inner.held().1 = Some(place);
        Ok(())
    }

    /// Gives the place back: the request is over, or from here on it waits for something that others do not wait for.
    pub fn give_back(&self) {
        // The place is dropped when the lock is free again.
        let place = self.0.as_ref().and_then(|inner| inner.held().1.take());
        drop(place);
    }
}

/// Notes the caller of a request, which takes a place now, or when its body is read.
pub(crate) async fn arrive(parts: &Parts, actor: &Actor) -> Result<(), RequestError> {
    let policy = parts.extensions.get::<Policy>();
    if policy.is_some_and(|policy| policy.takes_no_place) {
        return Ok(());
    }
    let slot = Slot::of(&parts.extensions);
    slot.note(actor.account, actor.kind.is_public());
    // A body may come slowly.
    let has_body = policy.is_some_and(|policy| policy.body.is_some());
    if has_body && [Method::POST, Method::PUT, Method::PATCH].contains(&parts.method) {
        return Ok(());
    }
    slot.enter().await
}

#[cfg(test)]
mod tests;
