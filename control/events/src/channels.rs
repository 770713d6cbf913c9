//! Subscriptions of a process, by account and topic.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use shared::id::AccountId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use actions::store::action_lists::About as Found;

use crate::domain::{grant::Limit, property::Owner, scopes::Scopes};

/// The topic of a subscription in an account; ids are those of resources that the subscriber can see.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Channel {
    /// All that one request wrote of a resource's properties.
    Properties(Owner, String),
    /// One property.
    Property(Owner, String, String),
    /// Every property, each by itself.
    EachProperty(Owner, String),
    /// Actions of a type, or of all types.
    Actions(About, Option<String>),
    /// Changes of the redirections with a short id, folded, or of all.
    Redirections(Option<String>),
    /// Ends of a job, or of all.
    Jobs(Option<String>),
}

/// What actions are about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum About {
    /// Anything in the account.
    Anything,
    /// A Thng.
    Thng(String),
    /// A product.
    Product(String),
    /// A collection.
    Collection(String),
}

impl From<Found> for About {
    fn from(about: Found) -> Self {
        match about {
            Found::Anything => Self::Anything,
            Found::Thng(id) => Self::Thng(id.to_string()),
            Found::Product(id) => Self::Product(id.to_string()),
            Found::Collection(id) => Self::Collection(id.to_string()),
        }
    }
}

/// The content of one event for one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The key, type or id that it is about: the last level of its topic.
    pub last: Arc<str>,
    /// JSON.
    pub payload: Bytes,
    /// The connection that caused it.
    pub origin: Option<Arc<str>>,
}

/// A message on its way to a connection.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The number that the connection gave its subscription.
    pub subscription: u64,
    /// Its content.
    pub content: Arc<Content>,
}

/// The receiving end of a connection.
#[derive(Debug, Clone)]
pub struct Subscriber {
    sender: mpsc::Sender<Delivery>,
    /// Cancelled when the connection did not take its messages in time: one was lost.
    pub overflow: CancellationToken,
}

impl Subscriber {
    /// A receiver with a queue of this many messages.
    #[must_use]
    pub fn new(waiting: usize) -> (Self, mpsc::Receiver<Delivery>) {
        let (sender, receiver) = mpsc::channel(waiting);
        (Self { sender, overflow: CancellationToken::new() }, receiver)
    }
}

#[derive(Debug)]
struct Entry {
    id: u64,
    subscription: u64,
    limit: Limit,
    ear: Subscriber,
}

type Table = HashMap<(AccountId, Channel), Vec<Entry>>;

/// The subscriptions of a process; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Channels(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    table: Mutex<Table>,
    next: AtomicU64,
}

/// A subscription; it ends when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    inner: Weak<Inner>,
    id: u64,
    key: (AccountId, Channel),
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        let mut table = inner.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = table.get_mut(&self.key) {
            entries.retain(|entry| entry.id != self.id);
            if entries.is_empty() {
                table.remove(&self.key);
            }
        }
    }
}

impl Channels {
    /// Adds a subscription of an account.
    ///
    /// `limit` holds back actions that the subscriber does not see; `subscription` is the subscriber's own name.
    #[must_use]
    pub fn subscribe(
        &self,
        account: AccountId,
        channel: Channel,
        limit: Limit,
        subscription: u64,
        ear: Subscriber,
    ) -> Subscription {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let key = (account, channel);
        let entry = Entry { id, subscription, limit, ear };
        self.lock().entry(key.clone()).or_default().push(entry);
        Subscription { inner: Arc::downgrade(&self.0), id, key }
    }

    /// Whether there are no subscriptions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether somebody listens to one of these channels of an account.
    #[must_use]
    pub fn has_any(&self, account: AccountId, channels: &[Channel]) -> bool {
        let table = self.lock();
        channels.iter().any(|channel| table.contains_key(&(account, channel.clone())))
    }

    /// Whether somebody on these channels of an account sees only what belongs to a project or names a user.
    #[must_use]
    pub fn has_confined(&self, account: AccountId, channels: &[Channel]) -> bool {
        let table = self.lock();
        let mut entries =
            channels.iter().filter_map(|channel| table.get(&(account, channel.clone()))).flatten();
        entries.any(|entry| matches!(entry.limit, Limit::Projects(_) | Limit::User(_)))
    }

    /// Whether somebody of an account listens to anything.
    #[must_use]
    pub fn has_account(&self, account: AccountId) -> bool {
        self.lock().keys().any(|(of, _)| *of == account)
    }

    /// How many more messages everybody on these channels of an account can take.
    #[must_use]
    pub fn room(&self, account: AccountId, channels: &[Channel]) -> usize {
        let table = self.lock();
        let entries = channels.iter().filter_map(|channel| table.get(&(account, channel.clone()))).flatten();
        let open =
            entries.filter(|entry| !entry.ear.overflow.is_cancelled() && !entry.ear.sender.is_closed());
        open.map(|entry| entry.ear.sender.capacity()).min().unwrap_or(usize::MAX)
    }

    /// Delivers content to all subscribers of a channel. Returns how many received it and how many could not take
    /// it.
    pub fn deliver(
        &self,
        account: AccountId,
        channel: Channel,
        whose: Option<(&str, Option<&Scopes>)>,
        content: impl FnOnce() -> Content,
    ) -> (u64, u64) {
        let table = self.lock();
        let Some(entries) = table.get(&(account, channel)) else { return (0, 0) };
        let content = Arc::new(content());
        let (mut delivered, mut lost) = (0, 0);
        for entry in entries {
            if whose.is_some_and(|(thng, scopes)| !entry.limit.admits(thng, scopes)) {
                continue;
            }
            let delivery = Delivery { subscription: entry.subscription, content: content.clone() };
            match entry.ear.sender.try_send(delivery) {
                Ok(()) => delivered += 1,
                Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(_)) => {
                    lost += 1;
                    entry.ear.overflow.cancel();
                }
            }
        }
        (delivered, lost)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        Content { last: "a".into(), payload: Bytes::from_static(b"[]"), origin: None }
    }

    #[test]
    fn channels_belong_to_one_account_and_end_with_their_subscription() {
        let channels = Channels::default();
        let (one, other) = (AccountId::new(1, [1; 16]), AccountId::new(1, [2; 16]));
        let (ear, mut heard_by) = Subscriber::new(2);
        let actions = || Channel::Actions(About::Anything, Some("scans".to_owned()));
        let kept = channels.subscribe(one, actions(), Limit::Account, 7, ear.clone());
        assert_eq!(channels.deliver(other, actions(), Some(("", None)), content), (0, 0));
        let all = Channel::Actions(About::Anything, None);
        assert_eq!(channels.deliver(one, all, Some(("", None)), content), (0, 0));
        assert_eq!(channels.deliver(one, actions(), Some(("", None)), content), (1, 0));
        assert_eq!(heard_by.try_recv().unwrap().subscription, 7);
        drop(kept);
        assert!(channels.is_empty());
        assert_eq!(channels.deliver(one, actions(), None, content), (0, 0));
    }

    #[test]
    fn an_overflow_only_cancels_the_slow_subscriber() {
        let channels = Channels::default();
        let account = AccountId::new(1, [1; 16]);
        let channel = || Channel::Properties(Owner::Thng, "t".to_owned());
        let (slow, _heard_by) = Subscriber::new(1);
        let (quick, mut heard_by) = Subscriber::new(10);
        let _kept = [
            channels.subscribe(account, channel(), Limit::Account, 1, slow.clone()),
            channels.subscribe(account, channel(), Limit::Account, 2, quick.clone()),
        ];
        assert_eq!(channels.deliver(account, channel(), None, content), (2, 0));
        assert_eq!(channels.deliver(account, channel(), None, content), (1, 1));
        assert!(slow.overflow.is_cancelled() && !quick.overflow.is_cancelled());
        assert!(heard_by.try_recv().is_ok() && heard_by.try_recv().is_ok());
    }

    #[test]
    fn actions_outside_the_scope_are_not_delivered() {
        let channels = Channels::default();
        let account = AccountId::new(1, [1; 16]);
        let channel = || Channel::Actions(About::Anything, None);
        let (ear, _heard_by) = Subscriber::new(10);
        let _kept = channels.subscribe(account, channel(), Limit::Itself("ME".to_owned()), 1, ear);
        assert_eq!(channels.deliver(account, channel(), Some(("OTHER", None)), content), (0, 0));
        assert_eq!(channels.deliver(account, channel(), Some(("ME", None)), content), (1, 0));
    }
}
