//! Where a link would lead a scan, and why. Nothing is written, and no scan is counted.

use std::sync::LazyLock;

use shared::{
    availability::Closed,
    forwarding::forward_query,
    id::{AccountId, ApplicationId, ThngId},
    pages::Pages,
    problem::Code,
    redirect::Redirect,
    redirect_status::RedirectStatus,
    rules::{AccountRules, Field, Text},
    short_url::ShortDomain,
};
use tracing::instrument;
use woothee::parser::Parser;

use super::{
    DomainChoice,
    load::{hosts_of, load},
    plan::key_of,
    resolve_domain,
};
use crate::{
    domain::{
        access::Actor,
        assumed_scan::AssumedScan,
        permission::{
            Subject::{self, Cases, Commissioning, Redirections, Thngs},
            Verb,
        },
        preview::{AssumedFacts, DecidedBy, Decision, KnownFacts, Tried, decide},
        withheld::TakeDown,
    },
    error::{CommonError, RedirectsError, ServiceError},
    service::{Core, Redirects, access::require, rules::may_read},
    store::{Conn, pages, rules, scopes, withheld},
};

/// Reads user agents. Its tables are built once, when the first preview is asked for.
static AGENTS: LazyLock<Parser> = LazyLock::new(Parser::new);

/// What a scan would get, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Where it is led.
    pub location: Option<String>,
    /// The status code of the redirect, if it is led somewhere.
    pub redirect_status: RedirectStatus,
    /// The error that it gets where it is not led anywhere.
    pub code: Option<Code>,
    /// What decides.
    pub by: DecidedBy,
    /// Why the link is closed, if it is.
    pub closed: Option<Closed>,
    /// What was taken down: the link, or the host that it would lead to.
    pub taken_down: Option<TakeDown>,
    /// The rules that were tried, in their order. If a rule decides, it is the last one.
    pub tried: Vec<ShownRule>,
    /// The facts as they were taken, as far as the caller may read them.
    pub facts: KnownFacts,
}

/// A rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRule {
    /// The application of its list; `None` for the account's own.
    pub application: Option<ApplicationId>,
    /// Its place in the list, from 0.
    pub index: usize,
    /// Whether it holds.
    pub holds: bool,
    /// What is in it, if the caller may read it.
    pub tried: Option<Tried>,
}

/// Where a link would lead a scan, as an edge decides it.
///
/// # Errors
/// 404 when the link is absent, deleted, or another account's; 409 for a Digital Link; others as [`preview_of`].
#[instrument(skip_all)]
pub async fn preview(
    state: &Redirects,
    actor: &Actor,
    choice: DomainChoice,
    short_id: &str,
    scan: &AssumedScan,
) -> Result<Preview, ServiceError> {
    let grant = require(actor, Verb::Read, Redirections)?;
    let mut conn = state.db.read().await?;
    let domain = resolve_domain(&mut conn, actor.account, &choice, None).await?;
    let link = load(&mut conn, actor.account, &grant, &domain, short_id).await?.redirect;
    if link.digital_link.is_some() {
        return Err(RedirectsError::PreviewOfDigitalLink(link.short_id).into());
    }
    preview_of(state, &mut conn, actor, &domain, link, scan, true).await
}

/// [`preview`] of a link of this account and domain that was read, with or without its rules.
///
/// # Errors
/// 400 for what is assumed of a Thng that it does not have.
pub async fn preview_of(
    core: &Core,
    conn: &mut Conn,
    actor: &Actor,
    domain: &ShortDomain,
    link: Redirect,
    scan: &AssumedScan,
    by_rules: bool,
) -> Result<Preview, ServiceError> {
    let key = key_of(domain, &link.short_id);
    let link = scan.assume(link).map_err(CommonError::Faults)?;
    let at = scan.time.unwrap_or_else(|| core.clock.now());
    let facts = AssumedFacts::new(&actor.account, &link, scan, &AGENTS, at);
    let rules = if by_rules {
        rules::load(conn, actor.account).await?
    } else {
        AccountRules::new(actor.account, Vec::new())
    };
    let decision = decide(&link, &rules, &facts).map_err(ServiceError::Internal)?;
    let hosts = hosts_of(decision.target.as_deref().into_iter());
    let take_downs = withheld::take_downs(conn, &[&key], &hosts).await?;
    let Decision { by, closed, target, tried } = decision;
    let hidden = hidden(conn, actor, link.thng_id).await?;
    // The status code of a link is for the way to its own target.
    let redirect_status = if by == DecidedBy::Target { link.status_code } else { RedirectStatus::default() };
    let mut preview = Preview {
        location: None,
        redirect_status,
        code: closed.filter(|_| target.is_none()).map(Closed::code),
        by,
        closed,
        taken_down: None,
        tried: tried.into_iter().map(|tried| shown(actor, tried, &hidden)).collect(),
        facts: facts.known(),
    };
    preview.facts.texts.retain(|(field, _)| !hidden.contains(field));
    // A link that was taken down is not looked at further; of a host it matters where the scan would be led.
    let of_link = take_downs.of_link(&key);
    if let Some(take_down) = of_link.or_else(|| take_downs.of_target(target.as_deref()?)) {
        if of_link.is_some() {
            preview.closed = None;
            preview.tried.clear();
        }
        preview.by = DecidedBy::TakeDown;
        preview.code = Some(Code::TakenDown);
        preview.taken_down = Some(take_down.clone());
        return Ok(preview);
    }
    if by == DecidedBy::Target && shown_pages(conn, actor.account, domain).await?.stops(&link.standing) {
        preview.by = DecidedBy::Copy;
        preview.code = Some(Code::SuspectedCopy);
        return Ok(preview);
    }
    preview.location = match (target, &scan.query) {
        (Some(target), Some(query)) if link.forward_query => Some(forward_query(&target, query)),
        (target, _) => target,
    };
    Ok(preview)
}

/// The pages of a domain: its own, or those of its account.
pub async fn shown_pages(
    conn: &mut Conn,
    account: AccountId,
    domain: &ShortDomain,
) -> Result<Pages, ServiceError> {
    let own = pages::find(conn, account, Some(&domain.host)).await?;
    if let Some(own) = own.filter(|pages| !pages.is_empty()) {
        return Ok(own);
    }
    Ok(pages::find(conn, account, None).await?.unwrap_or_default())
}

fn shown(actor: &Actor, mut tried: Tried, hidden: &[Text]) -> ShownRule {
    let is_hidden = |field: &Field| matches!(field, Field::Text(text) if hidden.contains(text));
    tried.explained.because.retain(|(field, _)| !is_hidden(field));
    ShownRule {
        application: tried.owner.map(|owner| owner.application),
        index: tried.index,
        holds: tried.explained.holds,
        tried: may_read(actor, tried.owner.as_ref()).then_some(tried),
    }
}

/// Facts of the Thng behind that the caller may not read.
async fn hidden(conn: &mut Conn, actor: &Actor, thng: Option<ThngId>) -> Result<Vec<Text>, ServiceError> {
    let Some(thng) = thng.map(|id| id.to_string()) else { return Ok(Vec::new()) };
    let scopes = scopes::list(conn, actor.account, std::slice::from_ref(&thng)).await?;
    let is_read = |subject: Subject| {
        require(actor, Verb::Read, subject).is_ok_and(|grant| grant.admits(&thng, scopes.get(&thng)))
    };
    let facts = [
        (Thngs, &[Text::ThngName][..]),
        (Commissioning, &[Text::CommissionState]),
        (Cases, &[Text::Assessment, Text::Counterfeit, Text::GrayMarket]),
    ];
    let hidden = facts.into_iter().filter(|(subject, _)| !is_read(*subject));
    Ok(hidden.flat_map(|(_, fields)| fields).copied().collect())
}
