//! Settings of assessment, and the last verdict of each Thng.

use shared::{
    id::{AccountId, ThngId},
    standing::Verdict,
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect, execute, fetch_optional, on_db};
use crate::domain::assessment::settings::Overrides;

const FIND: &str = "SELECT owner, settings, version, created_at, updated_at FROM assessment_settings \
    WHERE account_id = $1 AND owner = $2";
const PG_LIST: &str = "SELECT owner, settings, version, created_at, updated_at FROM assessment_settings \
    WHERE account_id = $1 AND owner = ANY($2)";
const SQLITE_LIST: &str = "SELECT owner, settings, version, created_at, updated_at FROM assessment_settings \
    WHERE account_id = $1 AND owner IN (SELECT value FROM json_each($2))";
const INSERT: &str = "INSERT INTO assessment_settings (account_id, owner, settings, version, created_at, updated_at) \
    VALUES ($1, $2, $3, 1, $4, $4) ON CONFLICT (account_id, owner) DO NOTHING";
const UPDATE: &str = "UPDATE assessment_settings SET settings = $3, version = version + 1, updated_at = $4 \
    WHERE account_id = $1 AND owner = $2 AND version = $5";
const PUT_VERDICT: &str = "UPDATE thngs SET verdict = $3 WHERE account_id = $1 AND id = $2 \
    AND (verdict IS NULL OR verdict <> $3)";

/// Settings as they are stored; version 0 if there are none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stored {
    /// The project or product that they are of; empty for the account.
    pub owner: String,
    /// The settings.
    pub settings: Overrides,
    /// How often they were replaced.
    pub version: i64,
    /// Creation time.
    pub created_at: UnixMillis,
    /// When they were replaced last.
    pub updated_at: UnixMillis,
}

type Row = (String, Json<Overrides>, i64, i64, i64);

fn stored((owner, Json(settings), version, created_at, updated_at): Row) -> Stored {
    Stored {
        owner,
        settings,
        version,
        created_at: UnixMillis(created_at),
        updated_at: UnixMillis(updated_at),
    }
}

/// The settings of an owner; empty for the account itself.
pub async fn find(conn: &mut Conn, account: AccountId, owner: &str) -> Result<Option<Stored>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), owner)?;
    Ok(row.map(stored))
}

/// Those settings that some owners have, in no order.
pub async fn list(conn: &mut Conn, account: AccountId, owners: &[String]) -> Result<Vec<Stored>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, Row, PG_LIST, SQLITE_LIST, [account.as_str()], owners)?;
    Ok(rows.into_iter().map(stored).collect())
}

/// Replaces the settings of an owner, if they are of this version; returns whether they were.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    owner: &str,
    settings: &Overrides,
    version: i64,
    at: UnixMillis,
) -> Result<bool, StoreError> {
    let written = on_db!(&mut **tx, |c| {
        let query = if version == 0 { sqlx::query(INSERT) } else { sqlx::query(UPDATE) };
        let query = query.bind(account.as_str()).bind(owner).bind(Json(settings)).bind(at.0);
        let query = if version == 0 { query } else { query.bind(version) };
        query.execute(c).await.map(|done| done.rows_affected())
    })?;
    Ok(written == 1)
}

/// Puts the verdict on a Thng; returns whether it was another one before.
pub async fn put_verdict(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    verdict: Verdict,
) -> Result<bool, StoreError> {
    let changed = execute!(&mut **tx, PUT_VERDICT, account.as_str(), thng.as_str(), verdict.to_string())?;
    Ok(changed == 1)
}
