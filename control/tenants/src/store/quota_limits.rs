//! What quotas are set to: for all accounts, and for single ones. The use of an account ([`super::quotas`]) has a row
//! exactly where a limit holds for it.

use std::collections::HashMap;

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx,
    dialect::{signed, unsigned},
    execute, fetch_all, fetch_one, on_db,
};
use crate::domain::quota::{Nature, Quota, Setting};

const DEFAULTS: &str = "SELECT kind, most FROM quota_defaults";
const OWN: &str = "SELECT kind, most FROM quota_limits WHERE account_id = $1";
// Reads go on, and so do writes that only look for limits.
const PG_LOCK: &str = "LOCK TABLE quota_defaults IN SHARE ROW EXCLUSIVE MODE";
// Rows of use are locked in another order than by those who count, and some by who holds the order of changes.
const PG_SHORT_WAIT: &str = "SELECT set_config('lock_timeout', '250ms', true)";
const PUT_DEFAULT: &str = "INSERT INTO quota_defaults (kind, most) VALUES ($1, $2) \
    ON CONFLICT (kind) DO UPDATE SET most = excluded.most";
const DELETE_DEFAULT: &str = "DELETE FROM quota_defaults WHERE kind = $1";
const PUT_OWN: &str = "INSERT INTO quota_limits (account_id, kind, most) VALUES ($1, $2, $3) \
    ON CONFLICT (account_id, kind) DO UPDATE SET most = excluded.most";
const DELETE_OWN: &str = "DELETE FROM quota_limits WHERE account_id = $1 AND kind = $2";
const PUT_USE: &str = "INSERT INTO quota_uses (account_id, kind, most, day, used, over, fence, counted_at) \
    VALUES ($1, $2, $3, 0, 0, 0, $4, $5) ON CONFLICT (account_id, kind) DO UPDATE SET most = excluded.most";
const DELETE_USE: &str = "DELETE FROM quota_uses WHERE account_id = $1 AND kind = $2";
const BEGIN_ACCOUNT: &str = "INSERT INTO quota_uses (account_id, kind, most, day, used, over, fence, counted_at) \
    SELECT $1, kind, most, 0, 0, 0, $2, $2 FROM quota_defaults";

macro_rules! has_own {
    ($account:literal, $kind:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM quota_limits l WHERE l.account_id = ",
            $account,
            " AND l.kind = ",
            $kind,
            ")"
        )
    };
}
macro_rules! removed {
    () => {
        concat!(
            "FROM quota_uses WHERE NOT ",
            has_own!("quota_uses.account_id", "quota_uses.kind"),
            " AND NOT EXISTS (SELECT 1 FROM quota_defaults d WHERE d.kind = quota_uses.kind)"
        )
    };
}
macro_rules! changed {
    () => {
        concat!(
            "WHERE NOT ",
            has_own!("quota_uses.account_id", "quota_uses.kind"),
            " AND EXISTS (SELECT 1 FROM quota_defaults d WHERE d.kind = quota_uses.kind AND d.most <> quota_uses.most)"
        )
    };
}
macro_rules! missing {
    () => {
        concat!(
            "FROM quota_defaults d CROSS JOIN accounts a WHERE NOT ",
            has_own!("a.id", "d.kind"),
            " AND NOT EXISTS (SELECT 1 FROM quota_uses u WHERE u.account_id = a.id AND u.kind = d.kind)"
        )
    };
}
const REMOVE: &str = concat!("DELETE ", removed!());
const CHANGE: &str = concat!(
    "UPDATE quota_uses SET most = (SELECT d.most FROM quota_defaults d WHERE d.kind = quota_uses.kind) ",
    changed!()
);
const ADD: &str = concat!(
    "INSERT INTO quota_uses (account_id, kind, most, day, used, over, fence, counted_at) \
     SELECT a.id, d.kind, d.most, 0, 0, 0, $1, \
     CASE WHEN d.kind IN ('things', 'links', 'storageBytes', 'users') THEN NULL ELSE CAST($1 AS BIGINT) END ",
    missing!(),
    " ON CONFLICT (account_id, kind) DO NOTHING"
);
const DIFFER: &str = concat!(
    "SELECT EXISTS (SELECT 1 ",
    removed!(),
    ") OR EXISTS (SELECT 1 FROM quota_uses ",
    changed!(),
    ") OR EXISTS (SELECT 1 ",
    missing!(),
    ")"
);

fn limits(rows: Vec<(String, Option<i64>)>) -> HashMap<Quota, Option<u64>> {
    // A kind of a newer release is known to that release alone.
    let limit = |(kind, most): (String, Option<i64>)| Some((kind.parse().ok()?, most.map(unsigned)));
    rows.into_iter().filter_map(limit).collect()
}

/// The limits of all accounts.
pub async fn list_defaults(conn: &mut Conn) -> Result<HashMap<Quota, u64>, StoreError> {
    let rows: Vec<(String, Option<i64>)> = fetch_all!(conn, DEFAULTS)?;
    Ok(limits(rows).into_iter().filter_map(|(quota, most)| Some((quota, most?))).collect())
}

/// What was said of an account: a limit, or that it has none.
pub async fn list_own(
    conn: &mut Conn,
    account: AccountId,
) -> Result<HashMap<Quota, Option<u64>>, StoreError> {
    let rows: Vec<(String, Option<i64>)> = fetch_all!(conn, OWN, account.as_str())?;
    Ok(limits(rows))
}

/// Lets nobody else set limits until the transaction ends, and bounds how long it waits for rows of use.
pub async fn lock(tx: &mut Tx) -> Result<(), StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_LOCK).execute(&mut **c).await?;
        sqlx::query(PG_SHORT_WAIT).execute(&mut **c).await?;
    }
    Ok(())
}

/// Sets what all accounts may have, but for those of which something else was said; [`apply_defaults`] must follow.
pub async fn set_default(tx: &mut Tx, quota: Quota, most: Option<u64>) -> Result<(), StoreError> {
    let kind = quota.as_str();
    match most {
        Some(most) => on_db!(&mut **tx, |c| sqlx::query(PUT_DEFAULT)
            .bind(kind)
            .bind(signed(most))
            .execute(c)
            .await
            .map(|_| ()))?,
        None => {
            execute!(&mut **tx, DELETE_DEFAULT, kind)?;
        }
    }
    Ok(())
}

/// Whether [`apply_defaults`] would change anything. It reads the rows of all accounts.
pub async fn differ(conn: &mut Conn) -> Result<bool, StoreError> {
    let (differ,): (bool,) = fetch_one!(conn, DIFFER)?;
    Ok(differ)
}

/// Makes the rows of use of all accounts what the limits say; returns how many changed. What a new row holds is counted
/// later.
pub async fn apply_defaults(tx: &mut Tx, now: UnixMillis) -> Result<u64, StoreError> {
    let mut changed = 0;
    for sql in [REMOVE, CHANGE] {
        changed += execute!(&mut **tx, sql)?;
    }
    changed += execute!(&mut **tx, ADD, now.0)?;
    Ok(changed)
}

/// Sets what one account may have. What a new row holds is counted later.
pub async fn set_own(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    setting: Setting,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let (id, kind) = (account.as_str(), quota.as_str());
    let own = match setting {
        Setting::Default => None,
        Setting::Unlimited => Some(None),
        Setting::Most(most) => Some(Some(most)),
    };
    match own {
        None => {
            on_db!(&mut **tx, |c| sqlx::query(DELETE_OWN).bind(id).bind(kind).execute(c).await.map(|_| ()))?
        }
        Some(most) => on_db!(&mut **tx, |c| sqlx::query(PUT_OWN)
            .bind(id)
            .bind(kind)
            .bind(most.map(signed))
            .execute(c)
            .await
            .map(|_| ()))?,
    }
    let limit = match own {
        Some(limit) => limit,
        None => list_defaults(tx).await?.get(&quota).copied(),
    };
    // Of what is not held nothing was before.
    let counted_at = (quota.nature() != Nature::Held).then_some(now.0);
    match limit {
        Some(most) => on_db!(&mut **tx, |c| sqlx::query(PUT_USE)
            .bind(id)
            .bind(kind)
            .bind(signed(most))
            .bind(now.0)
            .bind(counted_at)
            .execute(c)
            .await
            .map(|_| ()))?,
        None => {
            on_db!(&mut **tx, |c| sqlx::query(DELETE_USE).bind(id).bind(kind).execute(c).await.map(|_| ()))?
        }
    }
    Ok(())
}

/// Begins to count for an account that is made in this transaction, and holds nothing yet.
pub async fn begin_account(tx: &mut Tx, account: AccountId, now: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, BEGIN_ACCOUNT, account.as_str(), now.0)?;
    Ok(())
}
