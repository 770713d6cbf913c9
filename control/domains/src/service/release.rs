//! The platform takes a short domain from its account.

use ::certificates::{service as orders, store::clock};
use kernel::{
    domain::{event::Event, quota::Quota},
    error::ServiceError,
    store::{Ctx, Db, events, quotas},
};
use redirects::store::{domains as published, log};
use serde_json::json;
use shared::{short_url::Host, time::UnixMillis};
use tenants::store::domain_files;

use super::claims::{KIND, absent};
use crate::{
    domain::claim::{Claim, State},
    error::DomainsError,
    store::{claims, domains},
};

/// What became of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It had no links, and is gone.
    Removed,
    /// It had links that were deleted: it stays with its account, which can make none on it, until somebody proves it.
    Open,
}

/// Releases a short domain without links, so that whoever proves it next gets it. `bits` are random: its account must prove it
/// anew. It takes the database and not the state of a server, because a command calls it.
///
/// # Errors
/// There is none (404), or it has links (409).
pub async fn release(
    db: &Db,
    ctx: &Ctx,
    host: &str,
    bits: [u8; 16],
    now: UnixMillis,
) -> Result<(Host, Released), ServiceError> {
    let host: Host = host.parse().map_err(|_| absent(host))?;
    let mut tx = db.begin(ctx).await?;
    log::lock(&mut tx).await?;
    let account = domains::find_holder(&mut tx, &host).await?.ok_or_else(|| absent(host.as_str()))?;
    if domains::has_live_links(&mut tx, &host).await? {
        return Err(DomainsError::HasLiveLinks(host).into());
    }
    let before = claims::find(&mut tx, account, &host).await?;
    let shown = before.as_ref().map(|claim| json!({"state": claim.state.as_str()}));
    let released = if domains::has_links(&mut tx, &host).await? {
        let is_new = before.is_none();
        let is_event = before.as_ref().is_none_or(|claim| claim.state != State::Unproven);
        let at = clock::now(&mut tx).await?;
        let claim = before.unwrap_or_else(|| Claim::new(account, host.clone(), bits, at));
        let claim = claim.released(bits, at);
        if is_new {
            claims::insert(&mut tx, &claim).await?;
            // It is released when the claim ends. A quota that is used up does not keep the platform from releasing a domain.
            quotas::charge_some(&mut tx, account, Quota::ShortDomains, 1, now).await?;
        }
        claims::update(&mut tx, &claim).await?;
        claims::open_in(&mut tx, account, &host, 0).await?;
        if is_event {
            let event = Event::ShortDomain(host.to_string(), false);
            events::record(&mut tx, now, &[(account, event)]).await?;
        }
        Released::Open
    } else {
        let held = domain_files::list_of(&mut tx, account).await?;
        domain_files::delete(&mut tx, account, &host).await?;
        orders::forget(&mut tx, account, &host, now).await?;
        domains::delete(&mut tx, account, &host).await?;
        if let Some(domain) = held.into_iter().find(|domain| domain.host == host) {
            published::withdraw(&mut tx, domain, now).await?;
        }
        if claims::delete(&mut tx, account, &host).await? {
            quotas::release(&mut tx, account, Quota::ShortDomains, 1);
        }
        Released::Removed
    };
    let after = (released == Released::Open).then(|| json!({"state": "unproven"}));
    let shown = shown.or_else(|| Some(json!({"source": "platform"})));
    tx.note(account, (KIND, host.as_str()), || (shown, after));
    tx.commit().await?;
    Ok((host, released))
}
