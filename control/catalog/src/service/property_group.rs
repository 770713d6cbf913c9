//! Batcher: small property writes that arrive at the same time share one transaction and its fsync.
//!
//! Each is checked by itself: one whose owner does not exist does not affect the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::{id::AccountId, time::Clock};

use super::{
    batcher::{Batcher, of_all},
    properties::not_found,
};
use crate::{
    domain::{
        grant::Grant,
        property::{NewPoint, Owner, Point, settle},
    },
    error::ServiceError,
    service::Readers,
    store::{
        Db, StoreError,
        audit::Entry,
        property_groups::{self, Outcome, Write},
        session::Session,
    },
};

/// Most values of a write that goes with others; a larger one is worth a transaction of its own.
pub(crate) const MAX_POINTS: usize = 32;

/// Concurrent batches. A second one would make both smaller, and each costs as much as ten values; on Postgres they
/// would also wait for each other's fsync.
const LANES: usize = 1;

/// Concurrent batches if one waits for a property that another transaction holds.
const PG_MOST_LANES: usize = 4;

/// A write in the queue.
pub(crate) struct Request {
    /// The account.
    pub account: AccountId,
    /// What the caller may write.
    pub grant: Grant,
    /// Whether the owner is a Thng or a product.
    pub owner: Owner,
    /// Id of the owner.
    pub resource: String,
    /// The values.
    pub points: Vec<NewPoint>,
    /// The connection that it came by, if that also subscribes.
    pub origin: Option<String>,
    /// Its entry in the audit trail.
    pub audit: Option<Entry>,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// It is committed.
    Written(Vec<Point>),
    /// Its account has a quota of events: it needs a transaction of its own. These are the values.
    Counted(Vec<NewPoint>),
}

type Answer = Result<Submitted, ServiceError>;

/// Handle of the writes that wait; cheap to clone.
#[derive(Debug, Clone)]
pub struct PropertyGroups(Batcher<Request, Answer>);

struct Groups {
    db: Db,
    /// Those that no group has just now; the one that was used last comes first.
    sessions: Mutex<Vec<Session>>,
    clock: Arc<dyn Clock>,
    readers: Arc<dyn Readers>,
}

impl PropertyGroups {
    /// A batcher for a database, which tells the readers of its writes.
    #[must_use]
    pub fn new(db: Db, clock: Arc<dyn Clock>, readers: Arc<dyn Readers>) -> Self {
        let most_lanes = match db {
            Db::Pg(_) => PG_MOST_LANES,
            Db::Sqlite { .. } => LANES,
        };
        let groups = Arc::new(Groups { db, sessions: Mutex::default(), clock, readers });
        // One write of each owner: of two, the later has the later time.
        let owner = |request: &Request| Some(format!("{}/{}", request.account, request.resource));
        Self(Batcher::in_turn(
            (LANES, most_lanes),
            |request| request.account,
            owner,
            Box::new(move |requests| {
                let groups = groups.clone();
                Box::pin(async move { groups.write(requests).await })
            }),
        ))
    }

    /// Writes, batched with concurrent requests; returns after the commit.
    ///
    /// A request whose caller leaves before its batch starts is skipped.
    pub(crate) async fn submit(&self, request: Request) -> Answer {
        self.0.submit(request).await?
    }
}

impl Groups {
    async fn write(&self, requests: Vec<Request>) -> Vec<Answer> {
        let answers = match self.write_once(&requests).await {
            Ok(answers) => answers,
            // What one of them cannot be written with is no fault of the others.
            Err(StoreError::Sql(_) | StoreError::Row(_) | StoreError::Unique(_)) if requests.len() > 1 => {
                let mut answers = Vec::with_capacity(requests.len());
                for request in &requests {
                    let alone = self.write_once(std::slice::from_ref(request)).await;
                    answers.push(match alone.map(|mut all| all.pop()) {
                        Ok(Some(answer)) => answer,
                        Ok(None) => Err(ServiceError::Internal("a write without an answer".to_owned())),
                        Err(error) => Err(error.into()),
                    });
                }
                answers
            }
            Err(error) => {
                tracing::error!(%error, requests = requests.len(), "a group of properties was not written");
                requests.iter().map(|_| Err(of_all(&error).into())).collect()
            }
        };
        self.readers.wake_events();
        answers
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All or nothing, but for those that are refused.
    async fn write_once(&self, requests: &[Request]) -> Result<Vec<Answer>, StoreError> {
        // A client that saw an earlier write sends its request after this, and so gets a later time.
        let now = self.clock.now();
        let settled: Vec<Vec<Point>> =
            requests.iter().map(|request| settle(request.points.clone(), now)).collect();
        let writes: Vec<Write<'_>> = requests
            .iter()
            .zip(&settled)
            .map(|(request, points)| Write {
                audit: request.audit.as_ref(),
                account: request.account,
                limit: request.grant.limit(),
                owner: request.owner,
                resource: &request.resource,
                points,
                origin: request.origin.as_deref(),
            })
            .collect();
        let mut session = self.sessions().pop().unwrap_or_else(|| Session::new(self.db.clone()));
        let written = property_groups::write(&mut session, &writes, now).await;
        self.sessions().push(session);
        let written = written?;
        let answer = |((request, points), outcome): ((&Request, Vec<Point>), Outcome)| match outcome {
            Outcome::Written => Ok(Submitted::Written(points)),
            Outcome::Absent => Err(not_found(request.owner, &request.resource)),
            Outcome::Counted => Ok(Submitted::Counted(request.points.clone())),
        };
        Ok(requests.iter().zip(settled).zip(written).map(answer).collect())
    }
}
