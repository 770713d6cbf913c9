//! Jobs: created, read, cancelled and removed by operators; run by workers (`control/README.md`, "Jobs").

mod archive;
pub mod execute;
pub mod load;
mod purge;
mod targets;

pub use self::purge::{delete, purge, purge_before};

use crate::service::access::Caller;
use background::retention;
use futures_util::FutureExt;
use serde_json::json;
use shared::id::{FileId, JobId, ProjectId};
use tracing::instrument;

use super::{
    JobState,
    access::require,
    action_creation::{Circumstances, alike},
};
use crate::{
    domain::{
        access::Actor,
        action_draft::ActionDraft,
        file::File,
        grant::Grant,
        job::{Job, JobEvent, JobLog},
        job_file::file_of,
        job_input::{ContentType, Input, JobDraft, JobRequest, Source},
        job_lines::Entry,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Jobs, Verb},
        scopes::Scopes,
    },
    error::{CommonError, JobsError, ServiceError},
    store::{Tx, accounts, audit::state_of, documents, job_chunks, job_logs, jobs, listing::Selection},
};

// Spec gap: how many jobs may be under way at once is not shown.
/// Most jobs of an account that have not ended.
const MAX_OPEN: u64 = 1_000;

/// Attempts of a cancel that meets a worker's step; a worker takes no more steps than there are states.
const MAX_LOOKS: u32 = 8;

/// What the audit trail calls them.
const KIND: &str = "job";

/// Parts of ended jobs that one transaction removes.
const CLEAR_STEP: u32 = 50;

/// Accepts a job, in a project if `project` names one; every fault is found before.
///
/// `base` is the address by which the caller reaches the service, whose `contentUrl`s are ours.
///
/// # Errors
/// The key lacks the permission, a member is missing or wrong, or too many jobs are under way.
#[instrument(skip_all)]
pub async fn submit(
    state: &JobState,
    caller: &Caller,
    draft: JobDraft,
    base: &str,
    project: Option<&str>,
) -> Result<JobId, ServiceError> {
    // Every caller with this permission reaches the whole account.
    let _ = require(caller, Verb::Create, Jobs)?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    let mut faults = draft.faults;
    if let Some(template) = &draft.draft {
        let around = Circumstances { project, ..Circumstances::default() };
        let found = alike::check(&state.actions, &mut tx, caller, around, template).await?;
        faults.extend(found.into_iter().map(|fault| format!("payload.{fault}")));
    }
    let (mut blob, mut default_domain) = (None, None);
    if let Some(input) = &draft.input {
        default_domain = check_domain(&mut tx, caller, input, &mut faults).await?;
        if let Source::File { location, .. } = &input.source {
            match find_blob(&mut tx, caller, location, base).await? {
                Ok(found) => blob = Some(found),
                Err(fault) => faults.push(format!("input.location {fault}.")),
            }
        }
    }
    let refuse = |faults| Err(CommonError::Faults(faults).into());
    let Some(mut request) = draft.request.filter(|_| faults.is_empty()) else { return refuse(faults) };
    request.default_domain = default_domain;
    if let Some(template) = &draft.draft
        && let Some(fault) = find_other_product(state, &mut tx, caller, &request, template).await?
    {
        return refuse(vec![fault]);
    }
    accounts::lock(&mut tx, caller.account).await?;
    if jobs::count_open(&mut tx, caller.account).await? >= MAX_OPEN {
        return Err(JobsError::TooManyJobs { most: MAX_OPEN }.into());
    }
    request.operator.clone_from(&caller.id);
    let now = state.clock.now();
    let id = JobId::new(now.0, state.random16()?);
    // The check of the template has found it.
    let project: Option<ProjectId> = project.and_then(|text| text.parse().ok());
    let job = Job::new(id, caller.account, project, request, blob, now);
    jobs::insert(&mut tx, &job).await?;
    tx.note(caller.account, (KIND, id.as_str()), || (None, Some(state_of(&job.request))));
    tx.commit().await?;
    state.wake.notify_waiters();
    Ok(id)
}

/// Checks the domain of short ids; returns the account's first where the input needs one and names none.
async fn check_domain(
    tx: &mut Tx,
    actor: &Actor,
    input: &Input,
    faults: &mut Vec<String>,
) -> Result<Option<String>, ServiceError> {
    if input.content_type != ContentType::ShortIds {
        return Ok(None);
    }
    let domains = accounts::list_domains(tx, actor.account).await?;
    let first = domains.first().map(|domain| domain.host.to_string());
    match &input.short_domain {
        None if first.is_none() => {
            faults.push("input.shortDomain: the account has no short domain.".to_owned());
        }
        Some(host) if !domains.iter().any(|domain| domain.host.as_str() == host) => {
            let host = shorten(host);
            faults.push(format!("input.shortDomain: {host} is not a short domain of this account."));
        }
        None => return Ok(first),
        Some(_) => {}
    }
    Ok(None)
}

/// A fault when the template names a product and a listed Thng is an instance of another one.
///
/// Entries of a file are checked when they are carried out: such an entry is a failed operation.
async fn find_other_product(
    state: &JobState,
    tx: &mut Tx,
    actor: &Actor,
    request: &JobRequest,
    template: &ActionDraft,
) -> Result<Option<String>, ServiceError> {
    let Source::List { payload } = &request.input.source else { return Ok(None) };
    if template.product.is_none() {
        return Ok(None);
    }
    let product = alike::product_of(&state.actions, tx, actor, template).await?;
    let entries: Vec<Entry> = payload.iter().cloned().map(Entry::Id).collect();
    for (index, found) in
        targets::resolve(tx, actor.account, request, &entries).await?.into_iter().enumerate()
    {
        let own = found.ok().and_then(|target| target.product);
        if let (Some(named), Some(own)) = (product, own)
            && named != own
        {
            let fault =
                format!("payload.product: input.payload[{index}] is an instance of {own}, not of {named}.");
            return Ok(Some(fault));
        }
    }
    Ok(None)
}

/// The content of the file that a location names, or the fault.
async fn find_blob(
    tx: &mut Tx,
    actor: &Actor,
    location: &str,
    base: &str,
) -> Result<Result<String, String>, ServiceError> {
    let id: FileId = match file_of(location, base) {
        Ok(id) => id,
        Err(fault) => return Ok(Err(fault)),
    };
    let found: Option<File> = documents::find(tx, actor.account, id).await?;
    Ok(match found.map(|file| file.content) {
        Some(Some(content)) => Ok(content.blob),
        Some(None) => Err(format!("names the file {id}, which has no content yet")),
        None => Err(format!("names the file {id}, which was not found")),
    })
}

/// Lists jobs, without their input.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(state: &JobState, actor: &Actor, request: &ListRequest) -> Result<Page<Job>, ServiceError> {
    let grant = require(actor, Verb::List, Jobs)?;
    let mut conn = state.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    Ok(jobs::list(&mut conn, &selection).await?)
}

/// Reads a job.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(state: &JobState, actor: &Actor, id: &str) -> Result<Job, ServiceError> {
    let grant = require(actor, Verb::Read, Jobs)?;
    let mut conn = state.db.read().await?;
    admitted(jobs::find(&mut conn, actor.account, parse(id)?).await?, &grant, id)
}

/// Lists the operations of a job that failed.
///
/// # Errors
/// There is no such job.
#[instrument(skip_all)]
pub async fn logs(
    state: &JobState,
    actor: &Actor,
    id: &str,
    request: &ListRequest,
) -> Result<Page<JobLog>, ServiceError> {
    let grant = require(actor, Verb::Read, Jobs)?;
    let mut conn = state.db.read().await?;
    let found = admitted(jobs::find(&mut conn, actor.account, parse(id)?).await?, &grant, id)?;
    let within = [("jobId", found.id.as_str())];
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(job_logs::list(&mut conn, &selection).await?)
}

/// Requests the end of a job; what it created stays.
///
/// # Errors
/// It does not exist (404) or has ended (409).
#[instrument(skip_all)]
pub async fn cancel(state: &JobState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Jobs)?;
    let parsed = parse(id)?;
    for _ in 0..MAX_LOOKS {
        let mut tx = state.db.begin(&caller.ctx).await?;
        let job = admitted(jobs::find(&mut tx, caller.account, parsed).await?, &grant, id)?;
        let before = job.status;
        let job = job
            .on(JobEvent::CancelAsked, state.clock.now())
            .map_err(|unfit| JobsError::Ended { id: parsed, status: unfit.0 })?;
        // A worker may have moved it on since it was read.
        if before == job.status || jobs::change_status(&mut tx, &job, before).await? {
            tx.note(caller.account, (KIND, parsed.as_str()), || {
                (Some(json!({"status": before.as_str()})), Some(json!({"status": job.status.as_str()})))
            });
            tx.commit().await?;
            state.wake.notify_waiters();
            return Ok(());
        }
    }
    Err(ServiceError::Internal(format!("the job {parsed} does not stand still")))
}

/// Deletes the remaining input of jobs that were cancelled or failed; returns how many chunks.
pub async fn sweep(state: &JobState) -> Result<u64, ServiceError> {
    let mut conn = state.db.read().await?;
    let left = job_chunks::list_left(&mut conn, CLEAR_STEP).await?;
    drop(conn);
    let mut removed = 0;
    for job in left {
        removed += clear(state, job).await?;
    }
    Ok(removed)
}

async fn clear(state: &JobState, job: i64) -> Result<u64, ServiceError> {
    Ok(retention::clear(&state.db, CLEAR_STEP, |tx| job_chunks::clear(tx, job, CLEAR_STEP).boxed()).await?)
}

/// The job, if it exists for the caller.
fn admitted(found: Option<Job>, grant: &Grant, id: &str) -> Result<Job, ServiceError> {
    let scopes = |job: &Job| {
        job.project.map(|project| Scopes { users: Vec::new(), projects: vec![project.to_string()] })
    };
    found.filter(|job| grant.admits(job.id.as_str(), scopes(job).as_ref())).ok_or_else(|| not_found(id))
}

fn parse(id: &str) -> Result<JobId, ServiceError> {
    id.parse().map_err(|_| not_found(id))
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("job", shorten(id))
}
