//! Tasks of batches: created by operators, run in the background.
//!
//! A task runs in steps. Each is one transaction that creates Thngs and their short URLs and records the progress, or
//! nothing. After a restart it continues where the last step ended, and two workers on one task create nothing twice.

use std::time::Duration;

use crate::service::access::Caller;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use shared::{
    id::{AccountId, ResourceId, TaskId},
    redirect::ResourceType,
    time::UnixMillis,
};
use tokio::time::sleep;
use tracing::instrument;

use super::{Redirects, access::require, named, redirections, thngs};
use crate::{
    domain::{
        access::Actor,
        availability::{AvailabilityChange, Patch},
        batch::Batch,
        common::Stamp,
        limits::shorten,
        link_details::Described,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Batches},
            Verb,
        },
        quota::Quota,
        redirection::{Draft, Writable},
        scopes::Scopes,
        task::{POPULATING, Population, ShortUrls, Task, TaskDetails, TaskStatus},
    },
    error::{CommonError, RedirectsError, ServiceError},
    store::{Ctx, StoreError, Tx, accounts, documents, listing::Selection, quotas, tasks},
    writer::Lane,
};

/// Most tasks of an account that have not ended.
const MAX_OPEN: u64 = 10;

/// Thngs of one step: some 50 ms of the only writer on SQLite.
const STEP: u32 = 25;

/// How often a step is tried again, and the pause before, when another transaction holds what it needs.
const MAX_TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// A task that did not move for so long was left by a process that ended.
const STALE_MS: i64 = 60_000;

/// Accepts a task of a batch; [`run`] carries it out.
///
/// # Errors
/// The key lacks the permission, the batch does not exist, the short domain is not the account's, or too many tasks
/// are under way.
#[instrument(skip_all)]
pub async fn create(
    state: &Redirects,
    caller: &Caller,
    batch: &str,
    population: &Population,
    input_parameters: Map<String, Value>,
) -> Result<Task, ServiceError> {
    let grant = require(caller, Verb::Create, Batches)?;
    // The task acts for the whole account.
    let _ = require(caller, Verb::Create, Subject::Thngs)?;
    if population.short_urls.is_some() {
        let _ = require(caller, Verb::Create, Subject::Redirections)?;
    }
    let now = state.clock.now();
    let id = TaskId::new(now.0, state.random16()?);
    let (_place, mut tx) = state.begin_write(caller).await?;
    let batch = named::find_locked::<Batch>(&mut tx, caller, &grant, batch).await?.id;
    check_domain(&mut tx, caller, population.short_urls.as_ref()).await?;
    accounts::lock(&mut tx, caller.account).await?;
    if tasks::count_open(&mut tx, caller.account).await? >= MAX_OPEN {
        return Err(RedirectsError::TooManyTasks { most: MAX_OPEN }.into());
    }
    let details = TaskDetails {
        input_parameters,
        quantity: population.quantity,
        operator: caller.id.clone(),
        ..TaskDetails::default()
    };
    let kind = POPULATING.to_owned();
    let new = Task { id, stamp: Stamp::new(now), kind, batch, status: TaskStatus::Executing, details };
    let task = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(task)
}

async fn check_domain(
    tx: &mut Tx,
    actor: &Actor,
    short_urls: Option<&ShortUrls>,
) -> Result<(), ServiceError> {
    let Some(short_urls) = short_urls else { return Ok(()) };
    let domains = accounts::list_domains(tx, actor.account).await?;
    match &short_urls.domain {
        None if domains.is_empty() => Err(RedirectsError::NoDomainOfTask.into()),
        Some(host) if !domains.iter().any(|domain| domain.host.as_str() == host) => {
            Err(RedirectsError::ForeignDomainOfTask(shorten(host).to_owned()).into())
        }
        None | Some(_) => Ok(()),
    }
}

/// Lists the tasks of a batch.
///
/// # Errors
/// The batch does not exist.
#[instrument(skip_all)]
pub async fn list(
    state: &Redirects,
    actor: &Actor,
    batch: &str,
    request: &ListRequest,
) -> Result<Page<Task>, ServiceError> {
    let grant = require(actor, Verb::List, Batches)?;
    let mut conn = state.db.read().await?;
    let batch = named::find::<Batch>(&mut conn, actor, &grant, batch).await?.id;
    let within = [("batch", batch.as_str())];
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(documents::list(&mut conn, &selection).await?)
}

/// Reads a task of a batch.
///
/// # Errors
/// The batch or the task does not exist.
#[instrument(skip_all)]
pub async fn read(state: &Redirects, actor: &Actor, batch: &str, id: &str) -> Result<Task, ServiceError> {
    let grant = require(actor, Verb::Read, Batches)?;
    let not_there = || ServiceError::not_found("task", shorten(id));
    let mut conn = state.db.read().await?;
    let batch = named::find::<Batch>(&mut conn, actor, &grant, batch).await?.id;
    let found: Option<Task> =
        documents::find(&mut conn, actor.account, id.parse().map_err(|_| not_there())?).await?;
    found.filter(|task| task.batch == batch).ok_or_else(not_there)
}

/// Carries a task out to its end, or until its account is suspended.
pub async fn run(state: Redirects, account: AccountId, id: TaskId) {
    let mut tries = 0;
    loop {
        let stepped = state
            .writer
            .submit(&Ctx::default(), (account, Lane::Bulk), {
                let state = state.clone();
                move |tx| async move { step(&state, tx, account, id).await }.boxed()
            })
            .await;
        match stepped {
            Ok(true) => tries = 0,
            Ok(false) => return,
            Err(ServiceError::Refused { code, errors }) if code.status() < 429 => {
                if let Err(error) = fail(&state, account, id, errors.join(" ")).await {
                    tracing::warn!(%error, "a task could not be ended; retried later");
                }
                return;
            }
            Err(ServiceError::Store(StoreError::Unavailable(_))) if tries < MAX_TRIES => {
                tries += 1;
                // Tasks that wait for the same request do not come back at the same moment.
                let jitter = state.random16().map_or(0, |bytes| u64::from(bytes[0]));
                sleep(PAUSE + Duration::from_millis(jitter)).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a task stopped; retried later");
                return;
            }
        }
    }
}

/// Resumes tasks that made no progress for a while; returns how many.
pub async fn resume(state: &Redirects) -> Result<usize, ServiceError> {
    let before = UnixMillis(state.clock.now().0.saturating_sub(STALE_MS));
    let mut conn = state.db.read().await?;
    let stale = tasks::list_stale(&mut conn, before).await?;
    drop(conn);
    for (account, id) in &stale {
        tokio::spawn(run(state.clone(), *account, *id));
    }
    Ok(stale.len())
}

/// One step; whether there are more.
async fn step(state: &Redirects, tx: &mut Tx, account: AccountId, id: TaskId) -> Result<bool, ServiceError> {
    let found: Option<Task> = documents::find_locked(tx, account, id).await?;
    let Some(task) = found.filter(|task| task.status == TaskStatus::Executing) else { return Ok(false) };
    if accounts::is_suspended(tx, account).await? {
        // It waits until `resume` finds it after the suspension.
        return Ok(false);
    }
    let input = Value::Object(task.details.input_parameters.clone());
    let population = Population::parse(&input).map_err(CommonError::Faults)?;
    // It was accepted from an operator, and continues with an operator's rights.
    let actor = Actor::operator(account, task.details.operator.clone());
    // This transaction holds the order of changes, and with it the writes of all accounts. It does not wait for long for
    // another request of this account, such as a long array of Thngs; `run` tries again.
    let mut needed = vec![Quota::Things];
    needed.extend(population.short_urls.is_some().then_some(Quota::Links));
    needed.extend((!population.template.properties.is_empty()).then_some(Quota::EventsPerDay));
    quotas::lock_soon(tx, account, &needed).await?;
    let count = task.details.quantity.saturating_sub(task.details.done).min(STEP);
    let mut drafts = Vec::new();
    for _ in 0..count {
        let thng = thngs::create_in(state, tx, &actor, population.template.clone(), None).await?;
        if let Some(short_urls) = &population.short_urls {
            let scopes = thng.details.common.scopes.clone().unwrap_or_default();
            drafts.push(draft(short_urls, thng.id.into(), scopes)?);
        }
    }
    if !drafts.is_empty() {
        let candidates = drafts.iter().map(|_| state.random16()).collect::<Result<Vec<_>, _>>()?;
        redirections::create_in(tx, &actor, drafts, candidates, state.clock.now()).await?;
    }
    let task = task.advance(count, state.clock.now());
    documents::update(tx, account, &task).await?;
    Ok(task.status == TaskStatus::Executing)
}

fn draft(short_urls: &ShortUrls, thng: ResourceId, scopes: Scopes) -> Result<Draft, ServiceError> {
    let short_id = short_urls.by_thng_id.then(|| thng.as_str().parse()).transpose();
    Ok(Draft {
        platform_id: thng,
        resource_type: Some(ResourceType::Thng),
        short_id: short_id.map_err(|_| ServiceError::Internal("an id is no short id".to_owned()))?,
        short_domain: short_urls.domain.clone(),
        writable: Writable {
            target: short_urls.target.clone(),
            forward_query: false,
            status_code: Patch::Keep,
            availability: AvailabilityChange::default(),
            scopes,
            described: Described::default(),
        },
    })
}

async fn fail(
    state: &Redirects,
    account: AccountId,
    id: TaskId,
    message: String,
) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let found: Option<Task> = documents::find_locked(&mut tx, account, id).await?;
    if let Some(task) = found.filter(|task| task.status == TaskStatus::Executing) {
        documents::update(&mut tx, account, &task.fail(message, state.clock.now())).await?;
        tx.commit().await?;
    }
    Ok(())
}
