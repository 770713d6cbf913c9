//! The tables of codes that an operator uses once: to set a new password, and to sign in by the link of a start.

use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_optional, parse};

/// The codes of one purpose, by the statements on their table.
#[derive(Debug)]
pub struct OperatorCodes {
    insert: &'static str,
    // The code is all that is known of who asks.
    find: &'static str,
    take: &'static str,
    delete: &'static str,
    purge: &'static str,
}

macro_rules! codes {
    ($table:expr) => {
        OperatorCodes {
            insert: concat!(
                "INSERT INTO ",
                $table,
                " (hash, account_id, operator_id, expires_at) VALUES ($1, $2, $3, $4)"
            ),
            find: concat!(
                "SELECT account_id, operator_id FROM ",
                $table,
                " WHERE hash = $1 AND expires_at > $2"
            ),
            take: concat!(
                "DELETE FROM ",
                $table,
                " WHERE hash = $1 AND account_id = $2 AND operator_id = $3 AND expires_at > $4"
            ),
            delete: concat!("DELETE FROM ", $table, " WHERE account_id = $1 AND operator_id = $2"),
            purge: concat!(
                "DELETE FROM ",
                $table,
                " WHERE hash IN (SELECT hash FROM ",
                $table,
                " WHERE expires_at <= $1 ORDER BY expires_at, hash LIMIT $2)"
            ),
        }
    };
}

/// By which operators set a new password.
pub const RESETS: OperatorCodes = codes!("operator_password_resets");

/// By which the link of a start signs an owner in.
pub const SIGN_IN_LINKS: OperatorCodes = codes!("operator_sign_in_links");

impl OperatorCodes {
    /// Adds the SHA-256 of a code.
    pub async fn insert(
        &self,
        tx: &mut Tx,
        hash: &[u8; 32],
        account: AccountId,
        operator: OperatorId,
        expires_at: UnixMillis,
    ) -> Result<(), StoreError> {
        execute!(&mut **tx, self.insert, &hash[..], account.as_str(), operator.as_str(), expires_at.0)?;
        Ok(())
    }

    /// The account and operator of a code that has not expired.
    pub async fn find(
        &self,
        conn: &mut Conn,
        hash: &[u8; 32],
        now: UnixMillis,
    ) -> Result<Option<(AccountId, OperatorId)>, StoreError> {
        let row: Option<(String, String)> = fetch_optional!(conn, self.find, &hash[..], now.0)?;
        let read = |(account, operator): (String, String)| {
            Ok((parse("account_id", &account)?, parse("operator_id", &operator)?))
        };
        row.map(read).transpose()
    }

    /// Uses a code of an operator up; returns whether it was there and had not expired.
    pub async fn take(
        &self,
        tx: &mut Tx,
        hash: &[u8; 32],
        account: AccountId,
        operator: OperatorId,
        now: UnixMillis,
    ) -> Result<bool, StoreError> {
        let done = execute!(&mut **tx, self.take, &hash[..], account.as_str(), operator.as_str(), now.0)?;
        Ok(done == 1)
    }

    /// Removes the codes of an operator.
    pub async fn delete_of(
        &self,
        tx: &mut Tx,
        account: AccountId,
        operator: OperatorId,
    ) -> Result<(), StoreError> {
        execute!(&mut **tx, self.delete, account.as_str(), operator.as_str())?;
        Ok(())
    }

    /// Removes some codes that have expired; returns how many.
    pub async fn purge(&self, tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
        tx.purge(self.purge, now, limit).await
    }
}
