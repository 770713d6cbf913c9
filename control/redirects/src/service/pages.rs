//! Pages that people see where a code leads nowhere: those of an account, and those of one of its domains.

use ::tenants::{domain::pages as rules, service::tenants::own_account};
use futures_util::FutureExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::{
    entity_tag::EntityTag, id::AccountId, pages::Pages, short_url::Host, target::Target, time::UnixMillis,
};
use tracing::instrument;

use super::{
    Redirects,
    access::{Caller, require},
    named,
    redirections::Written,
};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::Accounts, Verb},
    },
    error::{CommonError, RedirectsError, ServiceError},
    store::{Conn, Tx, domains, log, pages as table, tenants},
    writer::Lane,
};

/// Most bytes of the pages of all domains of all accounts: every edge holds them, and gets all of them when it begins.
/// Some 1,600 domains have a logo and texts in several languages then.
const MAX_TOTAL_BYTES: i64 = 32 << 20;

/// The pages of an account, or of one of its domains: what was chosen there, empty if nothing was.
///
/// # Errors
/// The key lacks the permission, it is another account, or the account has no such domain.
#[instrument(skip_all)]
pub async fn read(
    state: &Redirects,
    actor: &Actor,
    id: &str,
    host: Option<&str>,
) -> Result<Pages, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let account = own_account(actor, id)?;
    let host = host.map(parse_host).transpose()?;
    let mut conn = state.db.read().await?;
    find(&mut conn, account, host.as_ref()).await
}

/// Replaces the pages of an account, or of one of its domains, as a whole; edges acknowledge it. An empty object removes them.
///
/// # Errors
/// The key lacks the permission, it is another account, the account has no such domain, the body has faults, or there is no room.
#[instrument(skip_all)]
pub async fn replace(
    state: &Redirects,
    caller: &Caller,
    id: &str,
    host: Option<&str>,
    body: Value,
) -> Result<Written<Pages>, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let _place = state.capacity.change(caller)?;
    // A picture is decoded: some milliseconds.
    let parsed = tokio::task::spawn_blocking(move || rules::parse(&body)).await;
    let parsed = parsed.map_err(|error| ServiceError::Internal(format!("pages were not read: {error}")))?;
    let pages = parsed.map_err(CommonError::Faults)?;
    let account = own_account(caller, id)?;
    let host = host.map(parse_host).transpose()?;
    let now = state.clock.now();
    state
        .writer
        .submit(&caller.ctx, (account, Lane::Urgent), move |tx| put(tx, account, host, pages, now).boxed())
        .await
}

fn parse_host(text: &str) -> Result<Host, ServiceError> {
    text.parse().map_err(|_| absent(text))
}

fn absent(host: &str) -> ServiceError {
    ServiceError::not_found("short domain", shorten(host))
}

async fn find(conn: &mut Conn, account: AccountId, host: Option<&Host>) -> Result<Pages, ServiceError> {
    let found = table::find(conn, account, host).await?;
    found.ok_or_else(|| match host {
        Some(host) => absent(host.as_str()),
        None => ServiceError::not_found("account", account),
    })
}

async fn put(
    tx: &mut Tx,
    account: AccountId,
    host: Option<Host>,
    pages: Pages,
    now: UnixMillis,
) -> Result<Written<Pages>, ServiceError> {
    let before = find(tx, account, host.as_ref()).await?;
    named::check(tx, || EntityTag::of(&before))?;
    if pages == before {
        return Ok(Written { value: pages, rev: log::newest_rev(tx).await? });
    }
    if let Some(link) = &pages.link {
        let fault = match Target::parse(&link.url) {
            Ok(target) => tenants::find_target_hosts(tx, account).await?.fault(&target),
            // Where no link may lead, no button leads.
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            return Err(CommonError::Faults(vec![format!("link.url {fault}.")]).into());
        }
    }
    let total_before = table::total_bytes(tx).await?;
    table::put(tx, account, host.as_ref(), &pages).await?;
    let total = table::total_bytes(tx).await?;
    // New domains show the pages of their account, so the total may be too large already. Then smaller pages are still taken.
    if total > MAX_TOTAL_BYTES && total > total_before {
        return Err(RedirectsError::NoRoomForPages { most: MAX_TOTAL_BYTES }.into());
    }
    match &host {
        None => domains::publish(tx, account, now).await?,
        Some(host) => domains::publish_one(tx, account, host, now).await?,
    }
    let id = host.as_ref().map_or_else(|| account.to_string(), Host::to_string);
    tx.note(account, ("pages", &id), || (Some(state_of(&before)), Some(state_of(&pages))));
    Ok(Written { value: pages, rev: log::newest_rev(tx).await? })
}

/// What the audit trail shows of pages: all of it, and of the logo its fingerprint.
fn state_of(pages: &Pages) -> Value {
    let logo = pages.logo.as_ref().map(|url| {
        let kind = url.split(';').next().unwrap_or_default();
        let digest = Sha256::digest(url.as_bytes());
        let shown: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{kind}, {} bytes, sha256 {shown}…", url.len())
    });
    let Pages { name, logo: _, colors, link, copies, reports, photos, texts } = pages;
    json!({"name": name, "logo": logo, "colors": colors, "link": link, "copies": copies, "reports": reports,
        "photos": photos, "texts": texts})
}
