//! The audit trail of the platform: what concerns no single account.

use tenants::service::audit::chain_if_possible;
use tracing::instrument;

use crate::{
    domain::{audit::Entry, grant::Limit, listing::ListRequest, page::Page},
    error::ServiceError,
    service::Core,
    store::{audit::platform_trail, audit_trail, listing::Selection},
};

/// Lists its entries.
#[instrument(skip_all)]
pub async fn list(core: &Core, request: &ListRequest) -> Result<Page<Entry>, ServiceError> {
    chain_if_possible(core).await;
    let selection = Selection { account: platform_trail(), limit: &Limit::Account, request, within: &[] };
    Ok(audit_trail::list(&mut core.db.read().await?, &selection).await?)
}
