//! Small writes of properties that come at once share one transaction, and the disk is waited for once.
//!
//! Each is looked at by itself: one whose owner is not there takes nobody else along.

use std::{collections::HashMap, sync::Arc};

use shared::{id::AccountId, time::Clock};

use super::{
    properties::not_found,
    rounds::{Rounds, of_all},
};
use crate::{
    domain::{
        event::Event,
        grant::Grant,
        property::{NewPoint, Owner, Point, settle},
    },
    error::ServiceError,
    publish::feed::Feed,
    store::{
        Db, StoreError, events,
        properties::{self, Values},
        property_owners,
    },
};

/// Most values of a write that goes with others; a larger one is worth a transaction of its own.
pub(super) const MAX_POINTS: usize = 32;

/// Groups under way at once on Postgres: while one waits for the disk the next is made.
const PG_LANES: usize = 2;

/// A write that waits for its turn.
pub(super) struct Request {
    pub(super) account: AccountId,
    pub(super) grant: Grant,
    pub(super) owner: Owner,
    /// Id of the owner.
    pub(super) resource: String,
    pub(super) points: Vec<NewPoint>,
    /// The connection that it came by, if that also hears.
    pub(super) origin: Option<String>,
}

type Answer = Result<Vec<Point>, ServiceError>;

/// Handle of the writes that wait; cheap to clone.
#[derive(Debug, Clone)]
pub struct PropertyGroups(Rounds<Request, Answer>);

struct Groups {
    db: Db,
    clock: Arc<dyn Clock>,
    feed: Feed,
}

impl PropertyGroups {
    /// Groups for a database, which tell the feed of what they wrote.
    #[must_use]
    pub fn new(db: Db, clock: Arc<dyn Clock>, feed: Feed) -> Self {
        let lanes = match db {
            Db::Pg(_) => PG_LANES,
            Db::Sqlite { .. } => 1,
        };
        let groups = Arc::new(Groups { db, clock, feed });
        // One write of each owner: of two, the later has the later time.
        let owner = |request: &Request| Some(format!("{}/{}", request.account, request.resource));
        Self(Rounds::new(
            lanes,
            owner,
            Box::new(move |requests| {
                let groups = groups.clone();
                Box::pin(async move { groups.write(requests).await })
            }),
        ))
    }

    /// Writes with whoever else does just now; the answer comes after the commit.
    ///
    /// A caller that leaves before its turn is passed over.
    pub(super) async fn submit(&self, request: Request) -> Answer {
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
        self.feed.wake();
        answers
    }

    /// All or nothing, but for those that are refused.
    async fn write_once(&self, requests: &[Request]) -> Result<Vec<Answer>, StoreError> {
        let mut tx = self.db.begin().await?;
        let mut found = HashMap::new();
        for owner in [Owner::Thng, Owner::Product] {
            let of_owner = requests.iter().filter(|request| request.owner == owner);
            let wanted: Vec<_> = of_owner.map(|request| (request.account, &*request.resource)).collect();
            if !wanted.is_empty() {
                found.insert(owner, property_owners::hold_many(&mut tx, owner, &wanted).await?);
            }
        }
        // After the owners are held, so that the later of two groups also has the later time.
        let now = self.clock.now();
        let answer = |request: &Request| -> Answer {
            let place = (request.account.to_string(), request.resource.clone());
            match found.get(&request.owner).and_then(|found| found.get(&place)) {
                Some(scopes) if request.grant.admits(&request.resource, scopes.as_ref()) => {
                    Ok(settle(request.points.clone(), now))
                }
                Some(_) | None => Err(not_found(request.owner, &request.resource)),
            }
        };
        let answers: Vec<Answer> = requests.iter().map(answer).collect();
        let written = || {
            let all = requests.iter().zip(&answers);
            all.filter_map(|(request, answer)| Some((request, answer.as_ref().ok()?)))
        };
        let values: Vec<Values<'_>> = written()
            .map(|(request, points)| Values { account: request.account, resource: &request.resource, points })
            .collect();
        properties::write(&mut tx, &values, now).await?;
        let mut told: HashMap<Option<&str>, Vec<(AccountId, Event)>> = HashMap::new();
        for (request, points) in written().filter(|(_, points)| !points.is_empty()) {
            let (owner, resource) = (request.owner, request.resource.clone());
            let event = Event::Properties { owner, resource, points: points.clone() };
            told.entry(request.origin.as_deref()).or_default().push((request.account, event));
        }
        for (origin, happened) in told {
            let record = events::record(&mut tx, now, &happened);
            match origin {
                Some(origin) => events::with_origin(origin.to_owned(), record).await?,
                None => record.await?,
            }
        }
        tx.commit().await?;
        Ok(answers)
    }
}
