//! Settings of short domains.

use kernel::{
    domain::permission::{Subject::Accounts, Verb},
    error::ServiceError,
    service::{
        access::{Caller, require},
        named as versions,
    },
    store::Tx,
};
use redirects::store::{domains as published, log};
use serde_json::{Value, json};
use shared::{id::AccountId, short_url::ShortDomain};
use tenants::{
    service::tenants::own_account,
    store::{accounts, domain_files},
};
use tracing::instrument;

use super::{DomainState, OwnDomain, claims, named, settings_tag};
use crate::{domain::change::ShortDomainChange, error::DomainsError};

/// Most bytes of the files of all accounts: every edge holds them, is told all of them when it connects, and the Redis view
/// holds them in one key that is written as a whole. Some 4,000 domains have files of a usual size, which is 4 KiB, then.
const MAX_TOTAL_BYTES: i64 = 16 << 20;

/// Most bytes of the files of one account, so that none uses up what all have: 8 domains with files of the greatest size.
const MAX_ACCOUNT_BYTES: i64 = 1 << 20;

/// Changes a short domain of an account; edges learn of it.
///
/// # Errors
/// It is another account, or the domain is not the account's, or was never proven; its files would take more than the account,
/// or all accounts together, may have (409); its settings are not as `If-Match` says (412).
#[instrument(skip_all)]
pub async fn update(
    state: &DomainState,
    caller: &Caller,
    (account, host): (&str, &str),
    change: ShortDomainChange,
) -> Result<OwnDomain, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let account = own_account(caller, account)?;
    let host = named(host).ok_or_else(|| claims::absent(host))?;
    let absent = || claims::absent(host.as_str());
    let mut tx = state.db.begin(&caller.ctx).await?;
    // It also keeps others from changing the domain between the read and the write.
    log::lock(&mut tx).await?;
    let domains = domain_files::list_of(&mut tx, account).await?;
    let before = domains.into_iter().find(|domain| domain.host == host).ok_or_else(absent)?;
    versions::check(&tx, || settings_tag(&host, Some(&before)))?;
    let after = change.apply(before.clone());
    if after != before {
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
            digital_links::service::follow_domain(&mut tx, account, state.clock.now()).await?;
        }
        tx.note(account, ("shortDomain", host.as_str()), || (Some(shown(&before)), Some(shown(&after))));
        published::publish_one(&mut tx, account, &host, state.clock.now()).await?;
        tx.commit().await?;
        state.readers.wake_edges();
    }
    claims::load(&mut state.db.read().await?, account, &host).await
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

/// What the audit trail shows: files by their size, because an entry of 128 KiB is read by nobody.
fn shown(domain: &ShortDomain) -> Value {
    let mut shown = json!({"redirectMaxAge": domain.redirect_max_age});
    if domain.digital_links {
        shown["digitalLinks"] = true.into();
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
