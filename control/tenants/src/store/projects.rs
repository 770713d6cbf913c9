//! Projects that other resources name; their rows belong to the crate `applications`.

use shared::id::{AccountId, ProjectId};

use super::{StoreError, Tx, dialect, fetch_optional};

// Creates in a project wait for a transaction that deletes it, but not for each other.
const PG_HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2";

/// Whether a project exists; it cannot be deleted until the transaction ends.
pub async fn hold(tx: &mut Tx, account: AccountId, id: ProjectId) -> Result<bool, StoreError> {
    let sql = dialect::pick(tx, PG_HOLD, HOLD);
    let row: Option<(String,)> = fetch_optional!(&mut **tx, sql, account.as_str(), id.as_str())?;
    Ok(row.is_some())
}
