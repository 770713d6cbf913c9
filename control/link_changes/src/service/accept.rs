//! Changes and undos are accepted: counted, shown, and checked while their caller waits.

use kernel::{
    domain::{common::Stamp, grant::Limit, subject::Verb},
    service::access::Caller,
    store::Tx,
};
use redirects::service::redirections::{self, PlannedChange};
use serde_json::{Value, json};
use shared::{
    id::{JobId, ProjectId},
    time::UnixMillis,
};
use tenants::store::{accounts, tenants as account_table};
use tracing::instrument;

use super::{
    LinkChangeState, changes,
    links::{self, Part},
    require_operator,
};
use crate::{
    domain::{
        change::{Details, Kind, LinkChange, Maker, Status},
        draft::ChangeDraft,
    },
    error::{CommonError, LinkChangeError, ServiceError},
    store::{changes as table, former},
};

/// Most changes of an account that have not ended.
pub const MAX_OPEN: u64 = 10;

/// Most links of a change.
pub const MAX_LINKS: u64 = 1_000_000;

/// Most links of an account whose former values are kept: twenty changes of the most links, some 20 GB with 1 KB a link.
pub const MAX_KEPT: u64 = 20 * MAX_LINKS;

/// Links that an answer shows before and after the change.
const SAMPLE: u32 = 10;

/// What the caller of a change learns at once.
#[derive(Debug)]
pub struct Accepted {
    /// The job; none of a dry run.
    pub change: Option<LinkChange>,
    /// How many links it finds.
    pub links: u64,
    /// The projects that the caller is confined to: links of others were not looked at.
    pub projects: Vec<ProjectId>,
    /// The first links, and what becomes of them.
    pub sample: Vec<PlannedChange>,
}

/// Counts the links of a change and shows some; unless it is a dry run, the worker carries it out.
///
/// # Errors
/// The key lacks the permission; the change is refused for every link (400), or finds none, or too many; another number of links
/// was expected, or too many former values are kept (409); too many changes are under way (429).
#[instrument(skip_all)]
pub async fn create(
    state: &LinkChangeState,
    caller: &Caller,
    draft: ChangeDraft,
) -> Result<Accepted, ServiceError> {
    let _ = require_operator(caller, Verb::List)?;
    let grant = require_operator(caller, Verb::Update)?;
    let _place = state.capacity.write(caller)?;
    let now = state.clock.now();
    let mut conn = state.db.read().await?;
    let part = Part { asked: now, after: None, count: SAMPLE, counted: true };
    let page = links::read(&mut conn, caller, &draft.selection, part).await?;
    let count = page.total.unwrap_or_default();
    let (faults, sample) =
        redirections::preview_patch(&mut conn, caller, page.items, &draft.patch, now).await?;
    drop(conn);
    if !faults.is_empty() {
        let faults = faults.into_iter().map(|fault| format!("patch.{fault}")).collect();
        return Err(CommonError::Faults(faults).into());
    }
    if let Some(expected) = draft.expect.filter(|expected| *expected != count) {
        return Err(LinkChangeError::OtherCount { expected, found: count }.into());
    }
    if count > MAX_LINKS {
        return Err(LinkChangeError::TooManyLinks { count, most: MAX_LINKS }.into());
    }
    let projects = match grant.limit() {
        Limit::Projects(projects) => projects.clone(),
        Limit::Account | Limit::User(_) | Limit::Itself(_) => Vec::new(),
    };
    if draft.dry_run {
        return Ok(Accepted { change: None, links: count, projects, sample });
    }
    if count == 0 {
        return Err(LinkChangeError::NothingFound.into());
    }
    let details = Details {
        selection: draft.sent_selection,
        patch: Some(draft.sent_patch),
        expect: draft.expect,
        ..Details::new(maker(caller), count)
    };
    let mut tx = state.db.begin(&caller.ctx).await?;
    let change = insert(state, &mut tx, caller, (Kind::Change, None, details), now).await?;
    tx.commit().await?;
    state.wake.notify_one();
    Ok(Accepted { change: Some(change), links: count, projects, sample })
}

/// Accepts the undoing of a change; the worker carries it out.
///
/// # Errors
/// There is no such change, or its former values are gone (404); it has not ended, is an undo, or is being undone (409); where the
/// undo is strict, a link was changed since (409).
#[instrument(skip_all)]
pub async fn undo(
    state: &LinkChangeState,
    caller: &Caller,
    id: &str,
    is_strict: bool,
) -> Result<LinkChange, ServiceError> {
    let _ = require_operator(caller, Verb::Update)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    // Two undos of one change do not pass the checks side by side.
    accounts::lock(&mut tx, caller.account).await?;
    let of = changes::find_in(&mut tx, caller, id).await?;
    let now = state.clock.now();
    if of.kind == Kind::Undo {
        return Err(LinkChangeError::IsUndo(of.id).into());
    }
    if !of.status.is_terminal() {
        return Err(LinkChangeError::NotEnded { id: of.id, status: of.status.as_str() }.into());
    }
    if of.undo_until.is_none() && of.details.former_removed_at.is_none() {
        // Nobody approved it.
        return Err(LinkChangeError::NothingToUndo(of.id).into());
    }
    if of.undo_until.is_none_or(|until| until <= now) {
        return Err(LinkChangeError::FormerRemoved(of.id).into());
    }
    if table::is_being_undone(&mut tx, caller.account, of.id).await? {
        return Err(LinkChangeError::BeingUndone(of.id).into());
    }
    let links = former::count(&mut tx, of.stamp.seq).await?;
    if links == 0 {
        return Err(LinkChangeError::NothingToUndo(of.id).into());
    }
    if is_strict {
        refuse_changed(&mut tx, of.stamp.seq).await?;
    }
    let details =
        Details { of_seq: Some(of.stamp.seq), strict: is_strict, ..Details::new(maker(caller), links) };
    let change = insert(state, &mut tx, caller, (Kind::Undo, Some(of.id), details), now).await?;
    tx.commit().await?;
    state.wake.notify_one();
    Ok(change)
}

/// Refuses a strict undo where a link was changed since.
pub(super) async fn refuse_changed(tx: &mut Tx, of_seq: i64) -> Result<(), ServiceError> {
    match former::count_changed(tx, of_seq).await? {
        0 => Ok(()),
        count => Err(LinkChangeError::ChangedSince { count }.into()),
    }
}

/// Stores a new job, which waits for an approval where the account wants that.
async fn insert(
    state: &LinkChangeState,
    tx: &mut Tx,
    caller: &Caller,
    (kind, of, details): (Kind, Option<JobId>, Details),
    now: UnixMillis,
) -> Result<LinkChange, ServiceError> {
    accounts::lock(tx, caller.account).await?;
    if table::count_open(tx, caller.account).await? >= MAX_OPEN {
        return Err(LinkChangeError::TooManyChanges { most: MAX_OPEN }.into());
    }
    match kind {
        Kind::Change => {
            let kept = table::count_kept(tx, caller.account).await?;
            if kept.saturating_add(details.links) > MAX_KEPT {
                return Err(LinkChangeError::TooManyKept { kept, most: MAX_KEPT }.into());
            }
        }
        // It keeps none, and each link that it restores makes room for another.
        Kind::Undo => {}
    }
    let account = account_table::find_account(tx, caller.account).await?;
    let waits = account.is_some_and(|account| account.approve_bulk_changes);
    let mut change = LinkChange {
        id: JobId::new(now.0, state.random16()?),
        account: caller.account,
        kind,
        of,
        made_by: caller.own_name(),
        stamp: Stamp::new(now),
        status: if waits { Status::AwaitingApproval } else { Status::Waiting },
        completed_at: None,
        undo_until: None,
        details,
    };
    change.stamp.seq = table::insert(tx, &change).await?;
    tx.note(caller.account, (changes::KIND, change.id.as_str()), || (None, Some(audited(&change))));
    Ok(change)
}

/// Who asks, with what the audit trail says of the request.
fn maker(caller: &Caller) -> Maker {
    let maker = Maker::of(caller);
    match caller.ctx.principal() {
        None => maker,
        Some(principal) => Maker {
            key: principal.key.clone(),
            network: principal.network.clone(),
            request: principal.request.clone(),
            operation: principal.operation.clone(),
            ..maker
        },
    }
}

fn audited(change: &LinkChange) -> Value {
    let details = &change.details;
    json!({"type": change.kind.as_str(), "status": change.status.as_str(), "of": change.of, "strict": details.strict,
        "selection": details.selection, "patch": details.patch, "links": details.links})
}
