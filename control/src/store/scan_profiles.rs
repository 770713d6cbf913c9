//! The scan profiles of Thngs: read and written whole, under a lock of the row.

use std::collections::BTreeMap;

use shared::id::{AccountId, ThngId};
use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx, dialect, on_db};
use crate::domain::assessment::profile::{Observation, Profile};

const FIND: &str = "SELECT profile FROM scan_profiles WHERE account_id = $1 AND thng_id = $2";
// Rows are made before they are locked: two that begin a profile at once wait for each other.
const PG_BEGIN: &str = "INSERT INTO scan_profiles (thng_id, account_id, profile) \
    SELECT t.id, t.account_id, ''::bytea FROM thngs t WHERE t.id = ANY($1) ORDER BY t.id \
    ON CONFLICT (thng_id) DO NOTHING";
const SQLITE_BEGIN: &str = "INSERT INTO scan_profiles (thng_id, account_id, profile) \
    SELECT t.id, t.account_id, x'' FROM thngs t WHERE t.id IN (SELECT value FROM json_each($1)) \
    ON CONFLICT (thng_id) DO NOTHING";
const PG_LOCK: &str =
    "SELECT thng_id, profile FROM scan_profiles WHERE thng_id = ANY($1) ORDER BY thng_id FOR UPDATE";
const SQLITE_LOCK: &str =
    "SELECT thng_id, profile FROM scan_profiles WHERE thng_id IN (SELECT value FROM json_each($1))";
const PG_LOCK_ONE: &str = "SELECT profile FROM scan_profiles WHERE thng_id = $1 FOR UPDATE";
// A transaction that writes is the only one.
const SQLITE_LOCK_ONE: &str = "SELECT profile FROM scan_profiles WHERE thng_id = $1";
const PG_WRITE: &str = "UPDATE scan_profiles SET profile = t.profile \
    FROM UNNEST($1::text[], $2::bytea[]) AS t (thng_id, profile) WHERE scan_profiles.thng_id = t.thng_id";
const SQLITE_WRITE: &str = "UPDATE scan_profiles SET profile = $2 WHERE thng_id = $1";
const DELETE: &str = "DELETE FROM scan_profiles WHERE thng_id = $1";

fn read(bytes: &[u8], thng: &str) -> Result<Profile, StoreError> {
    if bytes.is_empty() {
        return Ok(Profile::default());
    }
    Profile::from_bytes(bytes).map_err(|error| StoreError::Row(format!("profile of {thng}: {error}")))
}

/// The profile of a Thng; empty when it was never scanned.
///
/// # Errors
/// The database failed.
pub async fn load(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<Profile, StoreError> {
    let row: Option<(Vec<u8>,)> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(thng.as_str())
        .fetch_optional(c)
        .await)?;
    row.map_or_else(|| Ok(Profile::default()), |(bytes,)| read(&bytes, thng.as_str()))
}

/// The profile of a Thng, which nobody else writes until the transaction ends; `None` when it was never scanned.
///
/// # Errors
/// The database failed.
pub async fn lock(tx: &mut Tx, thng: ThngId) -> Result<Option<Profile>, StoreError> {
    let statement = dialect::pick(tx, PG_LOCK_ONE, SQLITE_LOCK_ONE);
    let row: Option<(Vec<u8>,)> =
        on_db!(&mut **tx, |c| sqlx::query_as(statement).bind(thng.as_str()).fetch_optional(c).await)?;
    row.map(|(bytes,)| read(&bytes, thng.as_str())).transpose()
}

/// Takes scans into the profiles of their Thngs; those of Thngs that are gone are passed over.
///
/// # Errors
/// The database failed.
pub async fn add(tx: &mut Tx, scans: &[(ThngId, Observation)]) -> Result<(), StoreError> {
    let mut of_thngs: BTreeMap<String, Vec<&Observation>> = BTreeMap::new();
    for (thng, seen) in scans {
        of_thngs.entry(thng.to_string()).or_default().push(seen);
    }
    if of_thngs.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = of_thngs.keys().cloned().collect();
    let begin = dialect::pick(tx, PG_BEGIN, SQLITE_BEGIN);
    let lock = dialect::pick(tx, PG_LOCK, SQLITE_LOCK);
    let rows: Vec<(String, Vec<u8>)> = match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(begin).bind(&ids).execute(&mut *c).await?;
            sqlx::query_as(lock).bind(&ids).fetch_all(c).await?
        }
        Raw::Sqlite(c) => {
            sqlx::query(begin).bind(Json(&ids)).execute(&mut *c).await?;
            sqlx::query_as(lock).bind(Json(&ids)).fetch_all(c).await?
        }
    };
    let mut changed: Vec<(String, Vec<u8>)> = Vec::new();
    for (thng, bytes) in rows {
        let mut profile = read(&bytes, &thng)?;
        for seen in of_thngs.get(&thng).into_iter().flatten() {
            profile.add(seen);
        }
        let after = profile.to_bytes();
        if after != bytes {
            changed.push((thng, after));
        }
    }
    write(tx, changed).await
}

/// Replaces the profile of a Thng, made anew from its scans.
///
/// # Errors
/// The database failed.
pub async fn put(tx: &mut Tx, thng: ThngId, profile: &Profile) -> Result<(), StoreError> {
    write(tx, vec![(thng.to_string(), profile.to_bytes())]).await
}

async fn write(tx: &mut Tx, changed: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
    match tx.raw() {
        Raw::Pg(c) => {
            let (ids, profiles): (Vec<String>, Vec<Vec<u8>>) = changed.into_iter().unzip();
            // Planned each time, as what was planned for a small table reads all of a large one.
            sqlx::query(PG_WRITE).persistent(false).bind(ids).bind(profiles).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            for (thng, profile) in changed {
                sqlx::query(SQLITE_WRITE).bind(thng).bind(profile).execute(&mut *c).await?;
            }
        }
    }
    Ok(())
}

/// Removes the profile of a Thng that is removed.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, thng: ThngId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE).bind(thng.as_str()).execute(c).await.map(|_| ()))?;
    Ok(())
}
