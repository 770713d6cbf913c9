//! Settings of short domains.

use kernel::{
    domain::permission::{Subject::Accounts, Verb},
    error::ServiceError,
    service::access::{Caller, require},
};
use redirects::store::{domains as published, log};
use serde_json::{Value, json};
use shared::short_url::ShortDomain;
use tenants::{
    service::tenants::own_account,
    store::{accounts, domain_files},
};
use tracing::instrument;

use super::{DomainState, OwnDomain, claims, named};
use crate::domain::change::ShortDomainChange;

/// Changes a short domain of an account; edges learn of it.
///
/// # Errors
/// It is another account, or the domain is not the account's, or was never proven.
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
    let after = change.apply(before.clone());
    if after != before {
        if !accounts::set_redirect_max_age(&mut tx, account, &after).await? {
            return Err(absent());
        }
        let files = after.files.as_deref().cloned().unwrap_or_default();
        domain_files::put(&mut tx, account, &host, &files).await?;
        tx.note(account, ("shortDomain", host.as_str()), || (Some(shown(&before)), Some(shown(&after))));
        published::publish_one(&mut tx, account, &host, state.clock.now()).await?;
        tx.commit().await?;
        state.readers.wake_edges();
    }
    claims::load(&mut state.db.read().await?, account, &host).await
}

/// What the audit trail shows: files by their size, because an entry of 128 KiB is read by nobody.
fn shown(domain: &ShortDomain) -> Value {
    let mut shown = json!({"redirectMaxAge": domain.redirect_max_age});
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
