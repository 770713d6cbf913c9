//! Changes of certificates on their way to edges.

use redirects::store::log;
use shared::{
    time::UnixMillis,
    wire::stream::{Change, Event, Rev},
};

use kernel::store::{StoreError, Tx};

/// Publishes a change; gives its revision. The private key in it is encrypted.
pub async fn publish(tx: &mut Tx, change: Change, now: UnixMillis) -> Result<Rev, StoreError> {
    let rev = log::take_revs(tx, 1).await?;
    log::append(tx, now.0, &[Event { rev, change }]).await?;
    Ok(rev)
}
