//! States of sign-ins that came back, each until it would have expired.
//!
//! They belong to no account: who signs in is not known yet.

use shared::time::UnixMillis;

use super::{StoreError, Tx, execute};

const CLAIM: &str =
    "INSERT INTO oidc_used_states (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
const PURGE: &str = "DELETE FROM oidc_used_states WHERE hash IN \
    (SELECT hash FROM oidc_used_states WHERE expires_at <= $1 ORDER BY expires_at, hash LIMIT $2)";

/// Marks a state as used; `false` when it was before.
pub async fn claim(tx: &mut Tx, hash: &[u8; 32], expires_at: UnixMillis) -> Result<bool, StoreError> {
    let added = execute!(&mut **tx, CLAIM, &hash[..], expires_at.0)?;
    Ok(added == 1)
}

/// Removes some that have expired; returns how many.
pub async fn purge(tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, now, limit).await
}
