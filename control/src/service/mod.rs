//! Operations of no subject: one function each.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod base_urls;
pub mod intake;
pub mod seed;
pub mod write_probe;

use kernel::{
    service::{Random, Secrets},
    store::{Ctx, Db, dialect},
};
use redirects::store::log;
use secrets::{SecretsError, keys::SecretKeys};
use shared::{id::AccountId, time::Clock};
use tenants::store::accounts;

/// Data that the store must hold before the service starts.
pub struct Prepared {
    /// Shared keys.
    pub secrets: Secrets,
    /// The first account, if there is one.
    pub first_account: Option<AccountId>,
}

/// Sets up the log and the shared keys; safe to run at each start and from several processes.
///
/// `history_file_id` is the id in the file beside a SQLite database; on Postgres the server's own history
/// id serves. A copy of the database thus gets a new epoch.
///
/// # Errors
/// The shared keys do not decrypt, or there are no random bits; nothing was written.
pub async fn prepare(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    history_file_id: &str,
    keys: &SecretKeys,
) -> Result<Prepared, SecretsError> {
    let now = clock.now().0;
    let mut epoch = [0; 16];
    random.fill(&mut epoch)?;
    let epoch = shared::id::ActionId::new(now, epoch).to_string();
    let mut tx = db.begin(&Ctx::default()).await?;
    let history = dialect::find_history_id(&mut tx).await?;
    log::bind(&mut tx, &epoch, history.as_deref().unwrap_or(history_file_id)).await?;
    let (loaded, were_plain) = secrets::load(&mut tx, keys, random, now).await?;
    let first_account = accounts::find_first(&mut tx).await?;
    tx.commit().await?;
    if were_plain {
        tracing::info!(key = %keys.current(), "the secrets in the database are encrypted from now on");
        secrets::store::checkpoint(db).await?;
    }
    Ok(Prepared { secrets: loaded, first_account })
}
