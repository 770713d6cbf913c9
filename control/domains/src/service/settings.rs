//! Settings of short domains.

use ::certificates::{service as orders, store::certificates as stored};
use kernel::{
    domain::permission::Verb,
    error::ServiceError,
    service::{access::Caller, named as versions},
    store::Tx,
};
use redirects::store::{domains as published, log};
use serde_json::{Value, json};
use shared::{id::AccountId, short_url::ShortDomain};
use tenants::store::{accounts, domain_files};
use tracing::instrument;

use super::{DomainState, OwnDomain, claims, own_host, settings_tag};
use crate::{
    domain::change::ShortDomainChange,
    error::DomainsError,
    store::{claims as claimed, domains as domain_links},
};

/// Most bytes of the files of all accounts: every edge holds them, is told all of them when it connects, and the Redis view
/// holds them in one key that is written as a whole. Some 4,000 domains have files of a usual size, which is 4 KiB, then.
const MAX_TOTAL_BYTES: i64 = 16 << 20;

/// Most bytes of the files of one account, so that none uses up what all have: 8 domains with files of the greatest size.
const MAX_ACCOUNT_BYTES: i64 = 1 << 20;

/// Changes a short domain of an account; edges learn of it.
///
/// # Errors
/// It is another account, or the domain is not the account's, or was never proven; its files would take more than the account,
/// or all accounts together, may have, or it was given by the platform and shall have no certificate (409); its paths would be
/// others than codes may have, or lack the prefix that URLs should have (409); its settings are not as `If-Match` says (412).
#[instrument(skip_all)]
pub async fn update(
    state: &DomainState,
    caller: &Caller,
    (account, host): (&str, &str),
    change: ShortDomainChange,
) -> Result<OwnDomain, ServiceError> {
    let (account, host) = own_host(caller, Verb::Update, account, host)?;
    let absent = || claims::absent(host.as_str());
    let mut tx = state.db.begin(&caller.ctx).await?;
    // It also keeps others from changing the domain between the read and the write.
    log::lock(&mut tx).await?;
    let domains = domain_files::list_of(&mut tx, account).await?;
    let before = domains.into_iter().find(|domain| domain.host == host).ok_or_else(absent)?;
    let is_off = stored::find(&mut tx, account, &host).await?.is_some_and(|order| order.is_off);
    versions::check(&tx, || settings_tag(&host, Some(&before), is_off))?;
    let wants_off = change.automatic_certificate.map_or(is_off, |is_automatic| !is_automatic);
    if wants_off && !is_off {
        let claim = claimed::find(&mut tx, account, &host).await?;
        if !claim.as_ref().is_some_and(claims::is_proven) {
            return Err(DomainsError::OtherCertificate(host.clone()).into());
        }
    }
    let after = change.apply(before.clone());
    let now = state.clock.now();
    if wants_off != is_off {
        orders::switch(&mut tx, account, &host, wants_off, now).await?;
    }
    if after != before || wants_off != is_off {
        if after.paths != before.paths {
            check_paths(&mut tx, &before, &after).await?;
        }
        if !accounts::set_settings(&mut tx, account, &after).await? {
            return Err(absent());
        }
        let files = after.files.as_deref().cloned().unwrap_or_default();
        domain_files::put(&mut tx, account, &host, &files).await?;
        // Less is always stored, so that an account can get below a bound.
        if size_bytes(&after) > size_bytes(&before) {
            check_room(&mut tx, account).await?;
        }
        if after.digital_links != before.digital_links {
            digital_links::service::follow_domain(&mut tx, account, now).await?;
        }
        tx.note(account, ("shortDomain", host.as_str()), || {
            (Some(shown(&before, is_off)), Some(shown(&after, wants_off)))
        });
        published::publish_one(&mut tx, account, &host, now).await?;
        tx.commit().await?;
        state.readers.wake_edges();
        state.certificates.wake();
    }
    claims::load(state, account, &host).await
}

fn size_bytes(domain: &ShortDomain) -> usize {
    domain.files.as_ref().map_or(0, |files| files.size_bytes())
}

/// Refuses files that are stored already in this transaction, if they are too much.
async fn check_room(tx: &mut Tx, account: AccountId) -> Result<(), ServiceError> {
    let (of_account, of_all) = domain_files::stored_bytes(tx, account).await?;
    if of_account > MAX_ACCOUNT_BYTES {
        return Err(DomainsError::TooManyFiles { most: MAX_ACCOUNT_BYTES }.into());
    }
    if of_all > MAX_TOTAL_BYTES {
        return Err(DomainsError::NoRoomForFiles { most: MAX_TOTAL_BYTES }.into());
    }
    Ok(())
}

/// Refuses paths with which printed codes would lead nowhere, or a path would mean two links.
async fn check_paths(tx: &mut Tx, before: &ShortDomain, after: &ShortDomain) -> Result<(), ServiceError> {
    let (host, old, new) = (&after.host, &before.paths, &after.paths);
    if new.prefix_in_urls && new.path_prefix.is_none() {
        return Err(DomainsError::NoPrefix.into());
    }
    let is_other = new.path_prefix != old.path_prefix;
    let refusal = if is_other && old.prefix_in_urls {
        DomainsError::PrefixInUrls(host.clone())
    } else if is_other && old.multi_segment {
        DomainsError::PrefixOfSegments(host.clone())
    } else if old.multi_segment && !new.multi_segment {
        DomainsError::SegmentsStay(host.clone())
    } else {
        return Ok(());
    };
    if domain_links::has_links(tx, host).await? { Err(refusal.into()) } else { Ok(()) }
}

/// What the audit trail shows: files by their size, because an entry of 128 KiB is read by nobody.
fn shown(domain: &ShortDomain, is_off: bool) -> Value {
    let mut shown = json!({"redirectMaxAge": domain.redirect_max_age, "automaticCertificate": !is_off});
    if domain.digital_links {
        shown["digitalLinks"] = true.into();
    }
    if let (Ok(Value::Object(paths)), Value::Object(members)) =
        (serde_json::to_value(&domain.paths), &mut shown)
    {
        members.extend(paths);
    }
    if let (Some(files), Value::Object(members)) = (&domain.files, &mut shown) {
        members.insert("robots".to_owned(), files.robots.as_str().into());
        let all = [
            ("assetLinks", &files.asset_links),
            ("appleAppSiteAssociation", &files.apple_app_site_association),
        ];
        for (name, file) in all {
            if let Some(file) = file {
                members.insert(name.to_owned(), json!({"bytes": file.as_str().len()}));
            }
        }
    }
    shown
}
