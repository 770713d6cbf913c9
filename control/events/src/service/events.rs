//! The event stream of an account: live, or resumed from a position in the log.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use shared::id::AccountId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc},
    time::{Instant, timeout},
};
use tracing::instrument;

use super::{
    EventState,
    access::require,
    actions::{coarsen_members, is_personal},
    capacity,
    connections::{self, Connection},
    export::Groups,
};
use crate::{
    domain::{
        access::Actor,
        action_names::RESULTS,
        event::Position,
        event_filter::{Condition, Types},
        grant::Limit,
        permission::{
            Subject::{Cases, Events, PersonalData},
            Verb,
        },
    },
    error::{EventsError, ServiceError},
    messages::{Message, expand},
    store::event_log::{self, TRIMMED},
};

/// Rows of the log per read.
const BATCH: u32 = 200;

/// Longest time without a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a client may take to read what was sent; then the stream ends, and the client may resume.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Pieces that wait for the client.
const WAITING: usize = 64;

/// How soon a client comes back after the end of a stream, in milliseconds.
const RETRY_MS: u32 = 2_000;

/// The request of a stream.
#[derive(Debug, Clone)]
pub struct Request {
    /// The types that are streamed.
    pub types: Types,
    /// What an event must meet.
    pub condition: Option<Condition>,
    /// The place behind which it begins: without one, now; of one that ends, with the oldest that is kept.
    pub after: Option<Position>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Whether it continues with new events; else it ends after the existing ones.
    pub follows: bool,
}

/// Fair scheduling of the exports of a process.
#[derive(Debug)]
pub struct Streams {
    exports: Semaphore,
    /// Exports that hold a row group in memory.
    pub(super) groups: Arc<Groups>,
    by_account: Mutex<HashMap<AccountId, Arc<Semaphore>>>,
}

/// Exports that read from the database at the same moment: the API has the other connections.
const EXPORTS: usize = 2;

impl Default for Streams {
    fn default() -> Self {
        Self { exports: Semaphore::new(EXPORTS), groups: Arc::default(), by_account: Mutex::default() }
    }
}

impl Streams {
    /// Waits for a permit to read. An account has one, so that two accounts are served however many streams the first
    /// has open.
    pub(super) async fn read_permit(&self, account: AccountId) -> Option<ReadPermit<'_>> {
        let own = {
            let mut table = self.by_account.lock().unwrap_or_else(PoisonError::into_inner);
            // Drops permits that are neither held nor waited for.
            table.retain(|_, permits| Arc::strong_count(permits) > 1);
            table.entry(account).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        // They are never closed.
        let own = own.acquire_owned().await.ok()?;
        Some(ReadPermit { _all: self.exports.acquire().await.ok()?, _own: own })
    }
}

/// A permit to read for an export.
pub(super) struct ReadPermit<'a> {
    _all: SemaphorePermit<'a>,
    _own: OwnedSemaphorePermit,
}

/// The slot of one stream, returned on drop.
pub struct Place {
    pub(super) state: Arc<EventState>,
    account: AccountId,
    pub(super) connection: Connection,
    _share: capacity::Place,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Place {
    /// Takes one, for as long as the key stands.
    ///
    /// # Errors
    /// Too many streams are open.
    pub async fn take(
        state: &Arc<EventState>,
        actor: &Actor,
        key: [u8; 32],
        client: Option<IpAddr>,
    ) -> Result<Self, ServiceError> {
        let share = state.capacity.stream(actor, client)?;
        let connection = connections::open(state, actor, key, client, None).await?;
        Ok(Self { state: state.clone(), account: actor.account, connection, _share: share })
    }

    /// Returns when the stream must end: its key is revoked, or the process stops.
    pub async fn ended(&self) {
        tokio::select! {
            () = self.connection.ends.cancelled() => {}
            () = self.state.connections.stopping.cancelled() => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        connections::release(&self.state, &self.connection.id);
    }
}

/// Opens a stream; what comes are pieces of `text/event-stream`.
///
/// It ends when its key is revoked, the process stops, or the client does not read.
///
/// # Errors
/// The key lacks the permission, too many streams are open, or the place is not kept any more (409).
#[instrument(skip_all)]
pub async fn open(
    state: &Arc<EventState>,
    actor: &Actor,
    key: [u8; 32],
    request: Request,
) -> Result<mpsc::Receiver<Bytes>, ServiceError> {
    let grant = require(actor, Verb::Read, Events)?;
    let limit = grant.limit().clone();
    let with_personal_data = require(actor, Verb::Read, PersonalData).is_ok();
    let hidden = request.condition.iter().flat_map(Condition::fields).find(|field| is_personal(field));
    if let Some(field) = hidden.filter(|_| !with_personal_data) {
        return Err(EventsError::HiddenField(field.to_owned()).into());
    }
    let mut conn = state.db.read().await?;
    let head = event_log::find_head(&mut conn).await?;
    let trimmed = event_log::find_place(&mut conn, TRIMMED).await?.unwrap_or(Position::START);
    drop(conn);
    let after = match request.after {
        Some(after) if after < trimmed || after > head => {
            return Err(EventsError::EventsRemoved(after).into());
        }
        Some(after) => after,
        None if request.follows => head,
        None => trimmed,
    };
    let place = Place::take(state, actor, key, request.client).await?;
    let (pieces, receiver) = mpsc::channel(WAITING);
    let with_cases = require(actor, Verb::Read, Cases).is_ok();
    let stream = Stream { place, limit, request, after, pieces, with_personal_data, with_cases };
    state.connections.sessions.spawn(stream.run());
    Ok(receiver)
}

/// Why a stream ends.
struct Ended;

struct Stream {
    place: Place,
    limit: Limit,
    request: Request,
    after: Position,
    pieces: mpsc::Sender<Bytes>,
    with_personal_data: bool,
    with_cases: bool,
}

impl Stream {
    async fn run(mut self) {
        let ends = self.place.connection.ends.clone();
        let stopping = self.place.state.connections.stopping.clone();
        let pieces = self.pieces.clone();
        tokio::select! {
            _ = self.tell() => {}
            () = ends.cancelled() => {}
            () = stopping.cancelled() => {}
            () = pieces.closed() => {}
        }
    }

    async fn tell(&mut self) -> Result<(), Ended> {
        let mut settled = self.place.state.feed.settled();
        self.send(format!("retry: {RETRY_MS}\nid: {}\n\n", self.after)).await?;
        let mut sent_at = Instant::now();
        loop {
            let is_full = self.step(&mut sent_at).await?;
            if is_full {
                continue;
            }
            if !self.request.follows {
                return Ok(());
            }
            tokio::select! {
                // The feed lives as long as the process.
                _ = settled.changed() => {}
                () = tokio::time::sleep_until(sent_at + HEARTBEAT) => {
                    // A client that resumes from here need not skip the events of others again.
                    self.send(format!(": alive\nid: {}\n\n", self.after)).await?;
                    sent_at = Instant::now();
                }
            }
        }
    }

    /// Reads and sends once; returns whether there may be more.
    async fn step(&mut self, sent_at: &mut Instant) -> Result<bool, Ended> {
        let read = async {
            let mut conn = self.place.state.db.read().await?;
            let trimmed = event_log::find_place(&mut conn, TRIMMED).await?;
            let account = Some(self.place.account);
            let rows = event_log::list_after(&mut conn, self.after, account, BATCH).await?;
            Ok::<_, crate::store::StoreError>((trimmed, rows))
        };
        let (trimmed, rows) = read.await.map_err(|error| self.failed(&error))?;
        // It was so slow that its position has expired: the response to its next request says so.
        if trimmed.is_some_and(|trimmed| trimmed > self.after) {
            return Err(Ended);
        }
        let is_full = rows.len() >= BATCH as usize;
        for (place, recorded) in rows {
            let is_same = (place.xid, place.seq) == (self.after.xid, self.after.seq);
            let mut next =
                if is_same { usize::try_from(self.after.item.saturating_add(1)).ok() } else { Some(0) };
            let recorded = recorded.filter(|recorded| !recorded.quiet.notifications);
            while let (Some(recorded), Some(from)) = (&recorded, next) {
                let read = async {
                    let mut conn = self.place.state.db.read().await?;
                    expand(&*self.place.state.actions.observers, &mut conn, place, recorded, from).await
                };
                let (messages, more) = read.await.map_err(|error| self.failed(&error))?;
                for mut message in messages.into_iter().filter(|message| self.is_wanted(message)) {
                    if !self.with_personal_data
                        && let Some(kind) = message.kind.strip_prefix("action.")
                        && let Some(members) = message.data.as_object_mut()
                    {
                        coarsen_members(members, kind == RESULTS);
                    }
                    self.send(format!("id: {}\ndata: {}\n\n", message.position, message.body())).await?;
                    *sent_at = Instant::now();
                }
                next = more;
            }
            self.after = place;
        }
        Ok(is_full)
    }

    fn is_wanted(&self, message: &Message) -> bool {
        self.request.types.admit(&message.kind)
            && message.is_admitted(&self.limit)
            && (self.with_cases || !message.is_of_case())
            && self.request.condition.as_ref().is_none_or(|condition| condition.holds(&message.facts))
    }

    async fn send(&self, piece: String) -> Result<(), Ended> {
        match timeout(PATIENCE, self.pieces.send(Bytes::from(piece))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Ended),
        }
    }

    /// The client comes back by itself, with the last id that it has.
    fn failed(&self, error: &crate::store::StoreError) -> Ended {
        tracing::warn!(%error, "a stream of events ends");
        Ended
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_account_reads_its_exports_one_after_the_other() {
        let streams = Streams::default();
        let (one, other) = (AccountId::new(1, [1; 16]), AccountId::new(1, [2; 16]));
        let permit = streams.read_permit(one).await.unwrap();
        let mut second = Box::pin(streams.read_permit(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(
            streams.read_permit(other).now_or_never().flatten().is_some(),
            "another account gets a permit"
        );
        drop(permit);
        assert!(second.await.is_some());
    }
}
