//! Cases: listed, read and decided on by operators; opened by assessments.

use serde_json::json;
use shared::id::CaseId;
use tracing::instrument;

use super::{
    AssessmentState,
    access::{Caller, require, require_enterprise},
    assessment::standing,
    bulk::{AfterCommit, Bulk},
    redirections::follow_thng,
};
use crate::{
    domain::{
        access::Actor,
        case::{Case, CaseState, DecidedBy, DecisionRequest},
        grant::Grant,
        limits::{MAX_LIST, shorten},
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{Cases, PersonalData, Thngs},
            Verb,
        },
        report::FinderReport,
        resource::{Thng, ThngChange},
        scopes::Scopes,
    },
    error::{AssessmentError, ServiceError},
    store::{Conn, Tx, cases, documents, listing::Selection, reports},
};

/// The tag of an item that many people scan where it is shown.
const DISPLAY: &str = "display";

/// Lists cases.
///
/// # Errors
/// The account or the key may not.
#[instrument(skip_all)]
pub async fn list(
    state: &AssessmentState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<Case>, ServiceError> {
    let grant = admit(actor, Verb::List)?;
    let mut conn = state.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    Ok(cases::list(&mut conn, &selection).await?)
}

/// Reads a case, with the newest reports of finders; their addresses only with the permission `personalData:read`.
///
/// # Errors
/// The account or the key may not or it does not exist.
#[instrument(skip_all)]
pub async fn read(
    state: &AssessmentState,
    actor: &Actor,
    id: &str,
) -> Result<(Case, Vec<FinderReport>), ServiceError> {
    let mut conn = state.db.read().await?;
    let case = visible(&mut conn, actor, id).await?;
    let mut found = reports::list(&mut conn, actor.account, case.state.id).await?;
    if require(actor, Verb::Read, PersonalData).is_err() {
        found.iter_mut().for_each(|report| report.mail = None);
    }
    Ok((case, found))
}

/// A case that the caller may read.
pub(super) async fn visible(conn: &mut Conn, actor: &Actor, id: &str) -> Result<Case, ServiceError> {
    let grant = admit(actor, Verb::Read)?;
    admitted(cases::find(conn, actor.account, parse(id)?).await?, &grant, id)
}

/// Decides on a case; the status of its Thng follows in the same transaction.
///
/// # Errors
/// The account or the key lacks the permission, the case does not exist, its version differs from the one given
/// (409), or the Thng has no room for the tag.
#[instrument(skip_all)]
pub async fn decide(
    state: &AssessmentState,
    caller: &Caller,
    id: &str,
    request: &DecisionRequest,
) -> Result<Case, ServiceError> {
    let grant = admit(caller, Verb::Update)?;
    let (parsed, now) = (parse(id)?, state.clock.now());
    let mut tx = state.db.begin(&caller.ctx).await?;
    let found = admitted(cases::find(&mut tx, caller.account, parsed).await?, &grant, id)?;
    // Serialises assessments and decisions of one item; what was read before is read again.
    let thng: Option<Thng> = documents::find_locked(&mut tx, caller.account, found.thng).await?;
    let mut thng = thng.ok_or_else(|| not_found(id))?;
    let case = admitted(cases::find(&mut tx, caller.account, parsed).await?, &grant, id)?;
    let before = case.state.version;
    if request.version.is_some_and(|version| version != before) {
        return Err(AssessmentError::CaseChanged(before).into());
    }
    let decided = case.state.clone().decide(request, DecidedBy::of(caller), now);
    if !cases::update(&mut tx, caller.account, &decided, before, now).await? {
        return Err(AssessmentError::CaseChanged(before).into());
    }
    tx.note(caller.account, ("case", &parsed.to_string()), || {
        let state = |case: &CaseState| {
            json!({"status": case.status.as_str(), "version": case.version, "decision": case.details.decision})
        };
        (Some(state(&case.state)), Some(state(&decided)))
    });
    let mut after = AfterCommit::default();
    if request.is_display {
        let (tagged, left) = tag_display(state, &mut tx, caller, &thng).await?;
        thng = tagged;
        after.join(left);
    }
    if standing::judge_again(state.sources(), &mut tx, caller.account, &thng, now).await? {
        let followed = follow_thng(&mut tx, caller.account, thng.id, thng.product, true, now).await?;
        after = after.wake_edges(followed);
    }
    tx.commit().await?;
    after.run(state).await?;
    Ok(Case { state: decided, updated_at: now, ..case })
}

/// The Thng with the tag of display pieces, written as by any change of it.
async fn tag_display(
    state: &AssessmentState,
    tx: &mut Tx,
    actor: &Actor,
    thng: &Thng,
) -> Result<(Thng, AfterCommit), ServiceError> {
    let grant = require(actor, Verb::Update, Thngs)?;
    let mut tags = thng.details.common.tags.clone().unwrap_or_default();
    if tags.iter().any(|tag| tag == DISPLAY) {
        return Ok((thng.clone(), AfterCommit::default()));
    }
    if tags.len() >= MAX_LIST {
        return Err(AssessmentError::TooManyTags(tags.len()).into());
    }
    tags.push(DISPLAY.to_owned());
    let mut change = ThngChange::default();
    change.details.common.tags = Some(tags);
    Thng::update_in(state, tx, actor, &grant, thng.id.as_str(), change).await
}

fn admit(actor: &Actor, verb: Verb) -> Result<Grant, ServiceError> {
    let grant = require(actor, verb, Cases)?;
    require_enterprise(actor, "Assessment")?;
    Ok(grant)
}

/// The case, if it exists for the caller.
fn admitted(found: Option<Case>, grant: &Grant, id: &str) -> Result<Case, ServiceError> {
    let scopes = |case: &Case| {
        case.project.map(|project| Scopes { users: Vec::new(), projects: vec![project.to_string()] })
    };
    found
        .filter(|case| grant.admits(case.state.id.as_str(), scopes(case).as_ref()))
        .ok_or_else(|| not_found(id))
}

fn parse(id: &str) -> Result<CaseId, ServiceError> {
    id.parse().map_err(|_| not_found(id))
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("case", shorten(id))
}
