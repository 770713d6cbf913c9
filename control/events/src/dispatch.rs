//! Delivers one row of the event log to the subscribers of its topics.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::{Value, json};
use shared::id::{AccountId, ActionId};

use crate::channels::{About, Channel, Channels, Content};
use crate::{
    domain::{
        action::Action,
        event::{ActionEvent, Event, Recorded, RedirectionEvent},
        property::{Owner, Point},
        scopes::Scopes,
        topic::fold,
    },
    messages::{action_message, job_message, point_message, redirection_message},
    metrics::FeedMetrics,
    store::{Conn, Db, StoreError, property_owners},
};
use ::actions::service::{Observers, lists};

/// Actions of a job that are read together and delivered once every queue has room for all of them: fewer than fit
/// into the queue of one connection.
const SLICE: usize = 200;

/// How long a chunk waits for room; a connection that does not take its messages in that time is too slow and is
/// ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two checks for room.
const LOOK: Duration = Duration::from_millis(2);

/// Dispatcher: delivers events to the subscribers of a process.
pub(super) struct Dispatcher<'a> {
    pub(super) channels: &'a Channels,
    pub(super) metrics: &'a FeedMetrics,
    pub(super) observers: &'a dyn Observers,
}

impl Dispatcher<'_> {
    /// Whether a row may have a subscriber.
    pub(super) fn has_any(&self, recorded: &Recorded) -> bool {
        self.channels.has_account(recorded.account)
    }

    /// Delivers what was written of a resource to those who see it now: it may have left the project of a subscriber.
    pub(super) async fn deliver_properties(
        &self,
        conn: &mut Conn,
        recorded: &Recorded,
    ) -> Result<(), StoreError> {
        let Event::Properties { owner, resource, points } = &recorded.event else { return Ok(()) };
        let all = Channel::Properties(*owner, resource.clone());
        let each = Channel::EachProperty(*owner, resource.clone());
        let one = |key: &str| Channel::Property(*owner, resource.clone(), key.to_owned());
        let by_key = by_key(points);
        let mut channels = vec![all.clone(), each.clone()];
        channels.extend(by_key.keys().map(|key| one(key)));
        let scopes = if self.channels.has_confined(recorded.account, &channels) {
            property_owners::find_scopes(conn, recorded.account, *owner, resource).await?.flatten()
        } else {
            None
        };
        let thng = if *owner == Owner::Thng { resource.as_str() } else { "" };
        let whose = Some((thng, scopes.as_ref()));
        let origin: Option<Arc<str>> = recorded.origin.as_deref().map(Arc::from);
        self.deliver(recorded.account, all, whose, || Content {
            last: "properties".into(),
            payload: array(points.iter()),
            origin: origin.clone(),
        });
        for (key, points) in by_key {
            let content = || Content {
                last: key.into(),
                payload: array(points.iter().copied()),
                origin: origin.clone(),
            };
            self.deliver(recorded.account, one(key), whose, content);
            self.deliver(recorded.account, each.clone(), whose, content);
        }
        Ok(())
    }

    /// Delivers a single action, unless it was deleted meanwhile.
    pub(super) async fn deliver_action(
        &self,
        conn: &mut Conn,
        recorded: &Recorded,
        event: &ActionEvent,
    ) -> Result<(), StoreError> {
        let channels = action_channels(event);
        if self.channels.has_any(recorded.account, &channels)
            && let Some(action) = lists::find(self.observers, conn, recorded.account, event.id).await?
        {
            self.hand_out(recorded, event, channels, &action);
        }
        Ok(())
    }

    /// Delivers the actions that a job created in one step, as fast as subscribers take them.
    pub(super) async fn deliver_actions(&self, db: &Db, recorded: &Recorded) -> Result<(), StoreError> {
        let Event::Actions { ids, .. } = &recorded.event else { return Ok(()) };
        for ids in ids.chunks(SLICE) {
            if !self.has_any(recorded) {
                return Ok(());
            }
            let found = self.read(db, recorded.account, ids).await?;
            let events: Vec<(ActionEvent, Vec<Channel>)> = found
                .iter()
                .map(|action| {
                    let event = event_of(action);
                    let channels = action_channels(&event);
                    (event, channels)
                })
                .collect();
            self.wait_for_room(recorded, events.iter().flat_map(|(_, channels)| channels)).await;
            for (action, (event, channels)) in found.iter().zip(events) {
                self.hand_out(recorded, &event, channels, action);
            }
        }
        Ok(())
    }

    /// Delivers the redirections that one request changed, as fast as subscribers take them.
    pub(super) async fn deliver_redirections(&self, recorded: &Recorded) {
        let Event::Redirections { change, items } = &recorded.event else { return };
        for items in items.chunks(SLICE) {
            let channels = |item: &RedirectionEvent| {
                [Channel::Redirections(None), Channel::Redirections(Some(fold(&item.short_id)))]
            };
            let all: Vec<Channel> = items.iter().flat_map(channels).collect();
            if !self.channels.has_any(recorded.account, &all) {
                continue;
            }
            self.wait_for_room(recorded, all.iter()).await;
            for item in items {
                let mut members = redirection_message(item);
                members.insert("change".to_owned(), json!(change.as_str()));
                members.insert("timestamp".to_owned(), json!(recorded.at.0));
                let content = Content {
                    last: item.short_id.as_str().into(),
                    payload: Bytes::from(Value::Object(members).to_string()),
                    origin: recorded.origin.as_deref().map(Arc::from),
                };
                for channel in channels(item) {
                    self.deliver(recorded.account, channel, Some(("", Some(&item.scopes))), || {
                        content.clone()
                    });
                }
            }
        }
    }

    /// Delivers the end of a job.
    pub(super) fn deliver_job(&self, recorded: &Recorded) {
        let Event::Job { id, status, project } = &recorded.event else { return };
        let projects = project.iter().cloned().collect();
        let scopes = Scopes { users: Vec::new(), projects };
        for channel in [Channel::Jobs(None), Channel::Jobs(Some(id.to_string()))] {
            self.deliver(recorded.account, channel, Some(("", Some(&scopes))), || Content {
                last: id.as_str().into(),
                payload: Bytes::from(job_message(*id, status).to_string()),
                origin: None,
            });
        }
    }

    /// Waits until everybody on these channels can take a slice, or was waited for long enough.
    async fn wait_for_room(&self, recorded: &Recorded, channels: impl Iterator<Item = &Channel>) {
        let wanted: HashSet<&Channel> = channels.collect();
        let wanted: Vec<Channel> = wanted.into_iter().cloned().collect();
        let begun = Instant::now();
        // An event reaches a connection once for each of its subscriptions.
        while self.channels.room(recorded.account, &wanted) < SLICE * 2 && begun.elapsed() < PATIENCE {
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn read(&self, db: &Db, account: AccountId, ids: &[ActionId]) -> Result<Vec<Action>, StoreError> {
        lists::find_many(self.observers, &mut db.read().await?, account, ids).await
    }

    fn hand_out(&self, recorded: &Recorded, event: &ActionEvent, channels: Vec<Channel>, action: &Action) {
        if !self.channels.has_any(recorded.account, &channels) {
            return;
        }
        let content = Content {
            last: event.kind.as_str().into(),
            payload: Bytes::from(action_message(action).to_string()),
            origin: recorded.origin.as_deref().map(Arc::from),
        };
        let whose = (event.thng.as_deref().unwrap_or_default(), event.scopes.as_ref());
        for channel in channels {
            self.deliver(recorded.account, channel, Some(whose), || content.clone());
        }
    }

    fn deliver(
        &self,
        account: AccountId,
        channel: Channel,
        whose: Option<(&str, Option<&Scopes>)>,
        content: impl FnOnce() -> Content,
    ) {
        let (delivered, lost) = self.channels.deliver(account, channel, whose, content);
        self.metrics.delivered.inc_by(delivered);
        self.metrics.lost.inc_by(lost);
    }
}

/// The members that select subscribers, from the action itself.
fn event_of(action: &Action) -> ActionEvent {
    let member = |name: &str| action.members.get(name);
    ActionEvent {
        id: action.id,
        kind: action.kind.clone(),
        thng: action.thng.map(|id| id.to_string()),
        product: action.product.map(|id| id.to_string()),
        collection: member("collection").and_then(Value::as_str).map(str::to_owned),
        scopes: member("scopes").and_then(|scopes| serde_json::from_value(scopes.clone()).ok()),
    }
}

fn array<'a>(points: impl Iterator<Item = &'a Point>) -> Bytes {
    Bytes::from(Value::Array(points.map(point_message).collect()).to_string())
}

/// The points of each key, in order.
fn by_key(points: &[Point]) -> BTreeMap<&str, Vec<&Point>> {
    let mut all: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in points {
        all.entry(point.key.as_str()).or_default().push(point);
    }
    all
}

fn action_channels(action: &ActionEvent) -> Vec<Channel> {
    let about = [
        Some(About::Anything),
        action.thng.clone().map(About::Thng),
        action.product.clone().map(About::Product),
        action.collection.clone().map(About::Collection),
    ];
    let both = |about: About| {
        [Channel::Actions(about.clone(), None), Channel::Actions(about, Some(action.kind.clone()))]
    };
    about.into_iter().flatten().flat_map(both).collect()
}
