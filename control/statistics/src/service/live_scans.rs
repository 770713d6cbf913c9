//! Scans as they happen, for a map: a sample where there are many.

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use shared::id::{AccountId, ActionId};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tracing::instrument;

use super::{
    EventState, StatisticsState,
    access::require,
    events::{PATIENCE, Place},
    lists,
};
use crate::{
    domain::{
        access::Actor,
        action::Action,
        event::{ActionEvent, Event, Position},
        grant::Limit,
        permission::{
            Subject::{PersonalData, Statistics},
            Verb,
        },
        scan::IMPLICIT_SCANS,
    },
    error::ServiceError,
    store::{StoreError, event_log},
};

/// Scans that are shown of a second.
const SHOWN: usize = 50;

/// Time between two events `sampled`.
const WINDOW: Duration = Duration::from_secs(1);

/// Rows of the log per read.
const BATCH: u32 = 1_000;

/// Reads in a row that are full. Behind them the stream goes on at the end of the log: the log is of all accounts, and who
/// reads it slower than it grows would never get there.
const READS: usize = 10;

/// Longest time without a message.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pieces that wait for the client.
const WAITING: usize = 64;

/// Digits of latitude and longitude: a tenth of a degree, some 11 km.
const TENTH: f64 = 10.0;

/// Opens a stream of scans from now on; what comes are pieces of `text/event-stream`.
///
/// It ends when its key is revoked, the process stops, or the client does not read; at once where it does not follow.
///
/// # Errors
/// The role does not allow statistics, or too many streams are open.
#[instrument(skip_all)]
pub async fn open(
    state: &StatisticsState,
    actor: &Actor,
    key: [u8; 32],
    client: Option<IpAddr>,
    follows: bool,
) -> Result<mpsc::Receiver<Bytes>, ServiceError> {
    let limit = require(actor, Verb::List, Statistics)?.limit().clone();
    let with_places = require(actor, Verb::Read, PersonalData).is_ok();
    let after = event_log::find_head(&mut state.db.read().await?).await?;
    let place = Place::take(&state.events, actor, key, client).await?;
    let (pieces, receiver) = mpsc::channel(WAITING);
    let stream = Stream {
        events: state.events.clone(),
        account: actor.account,
        limit,
        with_places,
        after,
        follows,
        pieces,
        window: Window::new(Instant::now()),
    };
    state.events.connections.sessions.spawn(stream.run(place));
    Ok(receiver)
}

/// Why a stream ends.
struct Ended;

struct Stream {
    events: Arc<EventState>,
    account: AccountId,
    limit: Limit,
    with_places: bool,
    after: Position,
    follows: bool,
    pieces: mpsc::Sender<Bytes>,
    window: Window,
}

/// The scans of a second.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    begun: Instant,
    shown: usize,
    all: usize,
}

impl Window {
    const fn new(begun: Instant) -> Self {
        Self { begun, shown: 0, all: 0 }
    }

    /// Begins the next one if this one is over; gives its scans, all and shown, if some were left out.
    fn turn(&mut self, now: Instant) -> Option<(usize, usize)> {
        if now.duration_since(self.begun) < WINDOW {
            return None;
        }
        let over = std::mem::replace(self, Self::new(now));
        (over.all > over.shown).then_some((over.all, over.shown))
    }

    /// Takes some of the next scans: evenly from them, as far as there is room.
    fn pick(&mut self, scans: &[ActionId]) -> Vec<ActionId> {
        let room = SHOWN.saturating_sub(self.shown).min(scans.len());
        let step = if room == 0 { 1 } else { scans.len().div_ceil(room) };
        let picked: Vec<ActionId> = scans.iter().copied().step_by(step).take(room).collect();
        self.all += scans.len();
        self.shown += picked.len();
        picked
    }
}

impl Stream {
    async fn run(mut self, place: Place) {
        let pieces = self.pieces.clone();
        tokio::select! {
            _ = self.tell() => {}
            () = place.ended() => {}
            () = pieces.closed() => {}
        }
    }

    async fn tell(&mut self) -> Result<(), Ended> {
        let mut settled = self.events.feed.settled();
        self.send(": scans as they happen\n\n".to_owned()).await?;
        if !self.follows {
            return Ok(());
        }
        let mut sent_at = Instant::now();
        let mut reads = 0;
        loop {
            // Between two reads, so that it is sent also while there is always more to read.
            let (has_sent, is_full) = self.step().await?;
            if has_sent {
                sent_at = Instant::now();
            }
            if let Some((scans, shown)) = self.window.turn(Instant::now()) {
                let body = json!({"scans": scans, "shown": shown});
                self.send(format!("event: sampled\ndata: {body}\n\n")).await?;
                sent_at = Instant::now();
            }
            if sent_at.elapsed() >= HEARTBEAT {
                self.send(": alive\n\n".to_owned()).await?;
                sent_at = Instant::now();
            }
            if is_full {
                reads += 1;
                if reads >= READS {
                    reads = 0;
                    self.skip().await?;
                }
                continue;
            }
            reads = 0;
            let quiet = async {
                // What was left out is said also when nothing follows.
                let is_owing = self.window.all > self.window.shown;
                tokio::time::sleep_until(if is_owing {
                    self.window.begun + WINDOW
                } else {
                    sent_at + HEARTBEAT
                })
                .await;
            };
            tokio::select! {
                // The feed lives as long as the process.
                _ = settled.changed() => {}
                () = quiet => {}
            }
        }
    }

    /// Reads the log once, and sends some of the scans; returns whether it sent any, and whether there may be more.
    async fn step(&mut self) -> Result<(bool, bool), Ended> {
        let read = async {
            let mut conn = self.events.db.read().await?;
            let rows = event_log::list_after(&mut conn, self.after, Some(self.account), BATCH).await?;
            let is_full = rows.len() >= BATCH as usize;
            let last = rows.last().map(|(position, _)| *position);
            let scans: Vec<ActionId> =
                rows.iter().filter_map(|(_, recorded)| self.scan(&recorded.as_ref()?.event)).collect();
            let picked = self.window.pick(&scans);
            let found = if picked.is_empty() {
                Vec::new()
            } else {
                let observers = &*self.events.actions.observers;
                lists::find_many(observers, &mut conn, self.account, &picked).await?
            };
            Ok::<_, StoreError>((is_full, last, found))
        };
        let (is_full, last, found) = read.await.map_err(|error| failed(&error))?;
        self.after = last.unwrap_or(self.after);
        for action in &found {
            self.send(format!("data: {}\n\n", shown(action, self.with_places))).await?;
        }
        Ok((!found.is_empty(), is_full))
    }

    /// Goes on at the end of the log.
    async fn skip(&mut self) -> Result<(), Ended> {
        let head = async { event_log::find_head(&mut self.events.db.read().await?).await };
        self.after = head.await.map_err(|error| failed(&error))?.max(self.after);
        Ok(())
    }

    /// The scan of an event, if it is one that the caller sees.
    fn scan(&self, event: &Event) -> Option<ActionId> {
        match event {
            Event::Action(ActionEvent { id, kind, thng, scopes, .. }) if kind == IMPLICIT_SCANS => {
                self.limit.admits(thng.as_deref().unwrap_or_default(), scopes.as_ref()).then_some(*id)
            }
            Event::Action(_)
            | Event::Actions { .. }
            | Event::Properties { .. }
            | Event::Redirections { .. }
            | Event::Job { .. }
            | Event::PrintOrder { .. }
            | Event::ShortDomain(..)
            | Event::Certificate(..)
            | Event::LinkChange { .. }
            | Event::Report(..) => None,
        }
    }

    async fn send(&self, piece: String) -> Result<(), Ended> {
        match timeout(PATIENCE, self.pieces.send(Bytes::from(piece))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Ended),
        }
    }
}

/// The client connects again by itself.
fn failed(error: &StoreError) -> Ended {
    tracing::warn!(%error, "a stream of scans ends");
    Ended
}

/// What is shown of a scan. The city and a rough position are personal data.
fn shown(action: &Action, with_places: bool) -> Value {
    let member =
        |group: &str, name: &str| action.members.get(group).and_then(|group| group.get(name)).cloned();
    let mut shown = Map::new();
    shown.insert("at".to_owned(), json!(action.timestamp.0));
    if let Some(product) = action.product {
        shown.insert("product".to_owned(), json!(product));
    }
    let place = ["city"].into_iter().filter(|_| with_places);
    let named = [("customFields", "shortDomain"), ("customFields", "shortId"), ("customFields", "bot")];
    let named = named.into_iter().chain([("context", "countryCode"), ("context", "region")]);
    for (group, name) in named.chain(place.map(|name| ("context", name))) {
        if let Some(value) = member(group, name) {
            shown.insert(if name == "countryCode" { "country" } else { name }.to_owned(), value);
        }
    }
    for name in ["latitude", "longitude"].into_iter().filter(|_| with_places) {
        if let Some(degrees) = member("location", name).as_ref().and_then(Value::as_f64) {
            shown.insert(name.to_owned(), json!((degrees * TENTH).round() / TENTH));
        }
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_shows_some_of_its_scans_and_says_so() {
        let begun = Instant::now();
        let ids: Vec<ActionId> = (0..200).map(|n| ActionId::new(n, [1; 16])).collect();
        let mut window = Window::new(begun);
        assert_eq!(window.pick(&ids[..10]).len(), 10, "few are shown whole");
        let picked = window.pick(&ids[10..]);
        assert_eq!((picked.first(), picked.len()), (Some(&ids[10]), 38), "evenly: each fifth of 190");
        assert!(picked.last().is_some_and(|last| *last > ids[190]));
        assert_eq!(window.turn(begun), None, "it is not over");
        assert_eq!(window.turn(begun + WINDOW), Some((200, 48)));
        assert_eq!(window.turn(begun + WINDOW * 2), None, "nothing was left out");
    }

    #[test]
    fn places_are_rough_and_for_some() {
        let action = Action {
            id: ActionId::new(1, [1; 16]),
            seq: 1,
            created_at: shared::time::UnixMillis(2),
            timestamp: shared::time::UnixMillis(1),
            kind: IMPLICIT_SCANS.to_owned(),
            thng: None,
            product: None,
            members: serde_json::from_value(json!({
                "customFields": {"shortDomain": "tn.gg", "shortId": "A", "own": 1},
                "context": {"countryCode": "CH", "region": "Bern", "city": "Bern", "ipAddress": "192.0.2.7"},
                "location": {"latitude": 46.948_09, "longitude": 7.447_44},
            }))
            .unwrap(),
        };
        let coarse =
            json!({"at": 1, "shortDomain": "tn.gg", "shortId": "A", "country": "CH", "region": "Bern"});
        assert_eq!(shown(&action, false), coarse);
        let mut whole = coarse;
        let more = json!({"city": "Bern", "latitude": 46.9, "longitude": 7.4});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(shown(&action, true), whole);
    }
}
