//! Operations on many named resources in one request: updated or deleted together, or created one by one from an array.

use std::future::Future;

use serde::Serialize;
use shared::problem::Code;
use tracing::instrument;

use super::{App, access::require, files, followers, properties, webhooks};
use crate::{
    domain::{access::Actor, grant::Grant, permission::Verb},
    error::ServiceError,
    store::{Tx, documents::Document, followers::Follows},
};

/// Most resources that one array creates.
pub const MAX_CREATED: usize = 1_000;

/// Work after the commit.
#[derive(Debug, Default)]
pub struct AfterCommit {
    /// Redirections changed too: edges must learn of it.
    pub wakes_edges: bool,
    /// Keys were revoked.
    pub revokes_keys: bool,
    /// Properties are left behind that nothing has any more.
    pub sweeps_properties: bool,
    /// Content that no file has any more.
    pub blobs: Vec<String>,
    /// A webhook may have something to send.
    pub wakes_webhooks: bool,
    /// Webhooks that were activated, by sequence number: their waiting messages are due now.
    pub resumed_webhooks: Vec<i64>,
    /// Queues whose webhook or reaction, by its place in lists, is gone.
    pub abandoned_queues: Vec<(&'static Follows, i64)>,
}

impl AfterCommit {
    pub(super) fn join(&mut self, other: Self) {
        self.wakes_edges |= other.wakes_edges;
        self.revokes_keys |= other.revokes_keys;
        self.sweeps_properties |= other.sweeps_properties;
        self.blobs.extend(other.blobs);
        self.wakes_webhooks |= other.wakes_webhooks;
        self.resumed_webhooks.extend(other.resumed_webhooks);
        self.abandoned_queues.extend(other.abandoned_queues);
    }

    /// Does it.
    ///
    /// # Errors
    /// The database failed: the change itself is committed.
    pub(super) async fn run(self, app: &App) -> Result<(), ServiceError> {
        if self.revokes_keys {
            app.key_lookups.revoked();
        }
        if self.wakes_edges {
            app.hub.wake();
        }
        if self.sweeps_properties {
            properties::sweep_once(app).await;
        }
        for blob in self.blobs {
            files::discard(app, &blob).await;
        }
        for webhook in self.resumed_webhooks {
            webhooks::renew_messages(app, webhook).await?;
        }
        if self.wakes_webhooks {
            app.webhooks.wake.notify_one();
        }
        for (queue, owner) in self.abandoned_queues {
            followers::clear_queue(app, queue, owner).await?;
        }
        Ok(())
    }
}

/// A named resource of which one request may change or remove many.
pub trait Bulk: Document {
    /// The body of an update.
    type Change: Clone + Send + Sync;

    /// Merges the members given into one, within a transaction.
    fn update_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: Self::Change,
    ) -> impl Future<Output = Result<(Self, AfterCommit), ServiceError>> + Send;

    /// Removes one, within a transaction.
    fn delete_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> impl Future<Output = Result<AfterCommit, ServiceError>> + Send;
}

/// A named resource that an array may create many of.
pub trait CreateEach: Document {
    /// The body of a create.
    type Change: Send;

    /// Creates one, within a transaction.
    fn create_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        change: Self::Change,
        project: Option<&str>,
    ) -> impl Future<Output = Result<Self, ServiceError>> + Send;
}

/// Merges the members given into each of some resources: all of them, or none.
///
/// # Errors
/// 404 that names every absent one, or the reason why an update is refused.
#[instrument(skip_all)]
pub async fn update<D: Bulk>(
    app: &App,
    actor: &Actor,
    ids: &[String],
    change: D::Change,
) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Update, D::SUBJECT)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let (mut after, mut absent) = (AfterCommit::default(), Vec::new());
    for id in in_order(ids) {
        match D::update_in(app, &mut tx, actor, &grant, id, change.clone()).await {
            Ok((_, left)) => after.join(left),
            Err(error) => absent.extend(absence(error)?),
        }
    }
    finish(app, tx, absent, after).await
}

/// Removes each of some resources: all of them, or none.
///
/// # Errors
/// 404 that names every absent one.
#[instrument(skip_all)]
pub async fn delete<D: Bulk>(app: &App, actor: &Actor, ids: &[String]) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Delete, D::SUBJECT)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let (mut after, mut absent) = (AfterCommit::default(), Vec::new());
    for id in in_order(ids) {
        match D::delete_in(app, &mut tx, actor, &grant, id).await {
            Ok(left) => after.join(left),
            Err(error) => absent.extend(absence(error)?),
        }
    }
    finish(app, tx, absent, after).await
}

/// Rows are locked in one order by all, so that two requests never wait for each other.
pub(super) fn in_order(ids: &[String]) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The faults of an absent resource; any other error ends the request.
pub(super) fn absence(error: ServiceError) -> Result<Vec<String>, ServiceError> {
    match error {
        ServiceError::Refused { code: Code::NotFound, errors } => Ok(errors),
        error => Err(error),
    }
}

/// Commits, unless a resource was absent.
pub(super) async fn finish(
    app: &App,
    tx: Tx,
    absent: Vec<String>,
    after: AfterCommit,
) -> Result<(), ServiceError> {
    if !absent.is_empty() {
        return Err(ServiceError::Refused { code: Code::NotFound, errors: absent });
    }
    tx.commit().await?;
    after.run(app).await
}

/// What became of one item of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ItemResult {
    /// It was created.
    Created {
        /// 201.
        status: u16,
        /// Its id.
        id: String,
    },
    /// It was refused; the others are not touched by it.
    Refused {
        /// Such as 400 or 409.
        status: u16,
        /// Every fault found.
        errors: Vec<String>,
        /// A number of the table of codes.
        code: u32,
    },
}

/// Creates up to [`MAX_CREATED`] resources in one transaction; each item stands or falls by itself.
///
/// `items` are the changes, or the faults found while reading them; the answer is in their order.
///
/// # Errors
/// The key lacks the permission, a wrong count, or the database failed: then nothing was created.
#[instrument(skip_all)]
pub async fn create_each<D: CreateEach>(
    app: &App,
    actor: &Actor,
    items: Vec<Result<D::Change, Vec<String>>>,
    project: Option<&str>,
) -> Result<Vec<ItemResult>, ServiceError> {
    let _ = require(actor, Verb::Create, D::SUBJECT)?;
    if items.is_empty() || items.len() > MAX_CREATED {
        let fault = format!("The array must hold 1 to {MAX_CREATED} items, not {}.", items.len());
        return Err(ServiceError::refused(Code::Invalid, fault));
    }
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let refused =
            |code: Code, errors| ItemResult::Refused { status: code.status(), errors, code: code as u32 };
        let change = match item {
            Ok(change) => change,
            Err(faults) => {
                results.push(refused(Code::Invalid, faults));
                continue;
            }
        };
        tx.savepoint().await?;
        match D::create_in(app, &mut tx, actor, change, project).await {
            Ok(made) => {
                tx.release_savepoint().await?;
                results.push(ItemResult::Created { status: 201, id: made.id().to_string() });
            }
            Err(ServiceError::Refused { code, errors }) => {
                tx.rollback_to_savepoint().await?;
                results.push(refused(code, errors));
            }
            Err(error) => return Err(error),
        }
    }
    tx.commit().await?;
    Ok(results)
}
