//! Which rules decided the scans of a link. Roll-ups do not know rules, so the scans themselves are read.

use redirects::{
    domain::redirection::Redirection,
    service::{
        Redirects,
        redirections::{self, DomainChoice},
    },
};
use serde_json::Value;
use shared::time::UnixMillis;
use tracing::instrument;

use super::{StatisticsState, access::require, lists};
use crate::{
    domain::{
        access::Actor,
        filter::Filter,
        listing::{ACTIONS, ListRequest},
        page::PageRequest,
        periods::Period,
        permission::{Subject::Statistics, Verb},
        roll_ups::HOUR_MS,
        rule_query::RuleCounts,
    },
    error::{ServiceError, StatisticsError},
    store::listing::Selection,
};

/// Scans that are read at once: some 500 KiB.
const STEP: u32 = 500;

/// Most scans that are read for an answer: some 40 steps, and half a second.
const MAX_SCANS: usize = 20_000;

/// Counts the scans of a link in a range by the rule that decided.
///
/// # Errors
/// The caller may not read statistics or the link, there is no such link, or the range has too many scans.
#[instrument(skip_all)]
pub async fn read(
    state: &StatisticsState,
    redirects: &Redirects,
    actor: &Actor,
    (choice, short_id): (DomainChoice, &str),
    range: Period,
) -> Result<(Redirection, RuleCounts), ServiceError> {
    let grant = require(actor, Verb::List, Statistics)?;
    let link = redirections::find(redirects, actor, choice, short_id).await?;
    let _permit = state.read_permit(actor.account).await;
    let mut request = ListRequest {
        page: PageRequest { per_page: STEP, ..PageRequest::default() },
        filter: Some(filter(&link, range)?),
        ..ListRequest::default()
    };
    let (mut counts, mut number) = (RuleCounts::default(), 0);
    loop {
        let selection = Selection {
            account: actor.account,
            limit: grant.limit(),
            request: &request,
            within: &[("type", "implicitScans")],
        };
        let page = lists::list(&*state.events.actions.observers, &state.db, &selection).await?;
        number += page.items.len();
        if number > MAX_SCANS {
            return Err(StatisticsError::TooManyScans { most: MAX_SCANS }.into());
        }
        for scan in &page.items {
            let is_robot = scan.members.get("customFields").and_then(|fields| fields.get("bot"));
            counts.add(scan.members.get("reactions"), is_robot == Some(&Value::Bool(true)));
        }
        match page.next {
            None => return Ok((link, counts.sorted())),
            next @ Some(_) => request.page.after = next,
        }
    }
}

/// The scans of a link in a range.
fn filter(link: &Redirection, range: Period) -> Result<Filter, ServiceError> {
    let (domain, short_id) = (&link.redirect.domain, &link.redirect.short_id);
    let text = format!("customFields.shortDomain={domain}&customFields.shortId={short_id}");
    let of_link = Filter::parse(&text, ACTIONS.fields).map_err(ServiceError::Internal)?;
    let at = |hour: i32| i64::from(hour) * HOUR_MS;
    let within =
        Filter::between("timestamp", Some(UnixMillis(at(range.from))), Some(UnixMillis(at(range.to) - 1)));
    Ok(match within {
        Some(within) => of_link.and(within),
        None => of_link,
    })
}
