//! The audit trail of the platform: what concerns no single account.

use tracing::instrument;

use crate::{
    domain::{audit::Entry, grant::Limit, listing::ListRequest, page::Page},
    error::ServiceError,
    store::{Db, audit::platform_trail, audit_trail, listing::Selection},
};

/// Lists its entries.
#[instrument(skip_all)]
pub async fn list(db: &Db, request: &ListRequest) -> Result<Page<Entry>, ServiceError> {
    let selection = Selection { account: platform_trail(), limit: &Limit::Account, request, within: &[] };
    Ok(audit_trail::list(&mut db.read().await?, &selection).await?)
}
