//! Operations on many named resources in one request: updated or deleted together, or created one by one from an array.

use std::{fmt, future::Future};

use futures_util::future::BoxFuture;
use serde::Serialize;
use shared::problem::Code;
use tracing::instrument;

use super::{
    access::{Caller, require},
    state::Core,
};
use crate::{
    domain::{access::Actor, grant::Grant, permission::Verb},
    error::{CommonError, ServiceError},
    store::{Tx, documents::Document},
};

/// Most resources that one array creates.
pub const MAX_CREATED: usize = 1_000;

/// Work that a subject does after a commit. It owns what it needs.
pub type Task = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), ServiceError>> + Send>;

/// Work after the commit.
#[derive(Default)]
pub struct AfterCommit {
    wakes_edges: bool,
    revokes_keys: bool,
    tasks: Vec<(String, Task)>,
}

impl fmt::Debug for AfterCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tasks.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AfterCommit")
            .field("wakes_edges", &self.wakes_edges)
            .field("revokes_keys", &self.revokes_keys)
            .field("tasks", &names)
            .finish()
    }
}

impl AfterCommit {
    /// Tells edges of the change, if they must learn of it.
    #[must_use]
    pub const fn wake_edges(mut self, is_due: bool) -> Self {
        self.wakes_edges |= is_due;
        self
    }

    /// Forgets looked-up keys, as some were revoked.
    #[must_use]
    pub const fn revoke_keys(mut self) -> Self {
        self.revokes_keys = true;
        self
    }

    /// Adds work; of several with one name, the last is done.
    #[must_use]
    pub fn then(mut self, name: impl Into<String>, task: Task) -> Self {
        self.push(name.into(), task);
        self
    }

    fn push(&mut self, name: String, task: Task) {
        self.tasks.retain(|(other, _)| *other != name);
        self.tasks.push((name, task));
    }

    /// Adds the work of another change.
    pub fn join(&mut self, other: Self) {
        self.wakes_edges |= other.wakes_edges;
        self.revokes_keys |= other.revokes_keys;
        for (name, task) in other.tasks {
            self.push(name, task);
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// The database failed: the change itself is committed.
    pub async fn run(self, core: &Core) -> Result<(), ServiceError> {
        if self.revokes_keys {
            core.key_lookups.revoked();
        }
        if self.wakes_edges {
            core.readers.wake_edges();
        }
        for (_, task) in self.tasks {
            task().await?;
        }
        Ok(())
    }
}

/// A named resource of which one request may change or remove many; `S` is what its operations need.
pub trait Bulk<S>: Document {
    /// The body of an update.
    type Change: Clone + Send + Sync;

    /// Merges the members given into one, within a transaction.
    fn update_in(
        state: &S,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: Self::Change,
    ) -> impl Future<Output = Result<(Self, AfterCommit), ServiceError>> + Send;

    /// Removes one, within a transaction.
    fn delete_in(
        state: &S,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> impl Future<Output = Result<AfterCommit, ServiceError>> + Send;
}

/// A named resource that an array may create many of; `S` is what its operations need.
pub trait CreateEach<S>: Document {
    /// The body of a create.
    type Change: Clone + Send + Sync;

    /// Creates one, within a transaction.
    fn create_in(
        state: &S,
        tx: &mut Tx,
        actor: &Actor,
        change: Self::Change,
        project: Option<&str>,
    ) -> impl Future<Output = Result<Self, ServiceError>> + Send;
}

/// Merges the members given into one resource.
///
/// # Errors
/// 404, or the reason why the update is refused.
pub async fn update_one<S: AsRef<Core> + Sync, D: Bulk<S>>(
    state: &S,
    caller: &Caller,
    reference: &str,
    change: D::Change,
) -> Result<D, ServiceError> {
    let grant = require(caller, Verb::Update, D::SUBJECT)?;
    let core = state.as_ref();
    let (_place, mut tx) = core.begin_write(caller).await?;
    let (updated, after) = D::update_in(state, &mut tx, caller, &grant, reference, change).await?;
    tx.commit().await?;
    after.run(core).await?;
    Ok(updated)
}

/// Removes one resource.
///
/// # Errors
/// 404.
pub async fn delete_one<S: AsRef<Core> + Sync, D: Bulk<S>>(
    state: &S,
    caller: &Caller,
    reference: &str,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, D::SUBJECT)?;
    let core = state.as_ref();
    let (_place, mut tx) = core.begin_write(caller).await?;
    let after = D::delete_in(state, &mut tx, caller, &grant, reference).await?;
    tx.commit().await?;
    after.run(core).await
}

/// Merges the members given into each of some resources: all of them, or none.
///
/// # Errors
/// 404 that names every absent one, or the reason why an update is refused.
#[instrument(skip_all)]
pub async fn update<S: AsRef<Core> + Sync, D: Bulk<S>>(
    state: &S,
    caller: &Caller,
    ids: &[String],
    change: D::Change,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, D::SUBJECT)?;
    let core = state.as_ref();
    let (_place, mut tx) = core.begin_write(caller).await?;
    tx.leave_links(caller.account);
    let (mut after, mut absent) = (AfterCommit::default(), Vec::new());
    for id in in_order(ids) {
        match D::update_in(state, &mut tx, caller, &grant, id, change.clone()).await {
            Ok((_, left)) => after.join(left),
            Err(error) => absent.extend(absence(error)?),
        }
    }
    finish(core, tx, absent, after).await
}

/// Removes each of some resources: all of them, or none.
///
/// # Errors
/// 404 that names every absent one.
#[instrument(skip_all)]
pub async fn delete<S: AsRef<Core> + Sync, D: Bulk<S>>(
    state: &S,
    caller: &Caller,
    ids: &[String],
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, D::SUBJECT)?;
    let core = state.as_ref();
    let (_place, mut tx) = core.begin_write(caller).await?;
    tx.leave_links(caller.account);
    let (mut after, mut absent) = (AfterCommit::default(), Vec::new());
    for id in in_order(ids) {
        match D::delete_in(state, &mut tx, caller, &grant, id).await {
            Ok(left) => after.join(left),
            Err(error) => absent.extend(absence(error)?),
        }
    }
    finish(core, tx, absent, after).await
}

/// Rows are locked in one order by all, so that two requests never wait for each other.
pub fn in_order(ids: &[String]) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The faults of an absent resource; any other error ends the request.
pub fn absence(error: ServiceError) -> Result<Vec<String>, ServiceError> {
    match error {
        ServiceError::Refused { code: Code::NotFound, errors } => Ok(errors),
        error => Err(error),
    }
}

/// Commits with what was left to the end, unless a resource was absent.
pub async fn finish(
    core: &Core,
    mut tx: Tx,
    absent: Vec<String>,
    after: AfterCommit,
) -> Result<(), ServiceError> {
    if !absent.is_empty() {
        return Err(CommonError::Absent(absent).into());
    }
    let followed = core.dependents.follow_left(&mut tx, core.clock.now()).await?;
    tx.commit().await?;
    after.wake_edges(followed).run(core).await
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
pub async fn create_each<S: AsRef<Core> + Sync, D: CreateEach<S>>(
    state: &S,
    caller: &Caller,
    items: Vec<Result<D::Change, Vec<String>>>,
    project: Option<&str>,
) -> Result<Vec<ItemResult>, ServiceError> {
    let _ = require(caller, Verb::Create, D::SUBJECT)?;
    if items.is_empty() || items.len() > MAX_CREATED {
        return Err(CommonError::ItemCount { most: MAX_CREATED, found: items.len() }.into());
    }
    let _place = state.as_ref().capacity.write(caller)?;
    match create_all::<S, D>(state, caller, &items, project, true).await {
        // A Digital Link that cannot be made is the fault of one item: that one is found where each follows at once.
        Err(ServiceError::Refused { .. }) => create_all::<S, D>(state, caller, &items, project, false).await,
        made => made,
    }
}

/// [`create_each`] in one transaction; `is_late`: Digital Links are made at its end, so that the order of changes is not held
/// while the items are written.
async fn create_all<S: AsRef<Core> + Sync, D: CreateEach<S>>(
    state: &S,
    caller: &Caller,
    items: &[Result<D::Change, Vec<String>>],
    project: Option<&str>,
    is_late: bool,
) -> Result<Vec<ItemResult>, ServiceError> {
    let core = state.as_ref();
    let mut tx = core.db.begin(&caller.ctx).await?;
    if is_late {
        tx.leave_links(caller.account);
    }
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let refused =
            |code: Code, errors| ItemResult::Refused { status: code.status(), errors, code: code as u32 };
        let change = match item {
            Ok(change) => change.clone(),
            Err(faults) => {
                results.push(refused(Code::Invalid, faults.clone()));
                continue;
            }
        };
        tx.savepoint().await?;
        match D::create_in(state, &mut tx, caller, change, project).await {
            Ok(made) => {
                tx.release_savepoint().await?;
                results.push(ItemResult::Created { status: 201, id: made.id().to_string() });
            }
            Err(ServiceError::Refused { code, errors }) => {
                tx.rewind_to_savepoint().await?;
                tx.release_savepoint().await?;
                results.push(refused(code, errors));
            }
            Err(error) => return Err(error),
        }
    }
    let followed = core.dependents.follow_left(&mut tx, core.clock.now()).await?;
    tx.commit().await?;
    AfterCommit::default().wake_edges(followed).run(core).await?;
    Ok(results)
}
