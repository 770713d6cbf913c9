//! Looks through the scans of an account for those of a Thng, or from a network.

use std::net::IpAddr;

use kernel::{
    domain::action::Action,
    on_db,
    store::{Conn, StoreError},
};
use shared::id::AccountId;
use sqlx::AssertSqlSafe;

use super::{
    months::{self, is_gone, of_month},
    rows::{self, Row},
    sql_scans::SqlScans,
};
use crate::{
    ScanPosition, Seen, Sighted, Sought,
    domain::{ids, month::Month},
};

// Each step looks at so many rows in the order of an index, whether they are sought or not: none takes long.
const THNG: &str = "SELECT t.seq, t.created_at, t.timestamp, t.shape, t.agent, t.place, t.referer, t.language, t.rule, \
    t.key, t.thng, t.ip, t.short_id, t.entry, t.redirect_url FROM scans t WHERE t.account = $1 AND t.thng = $2 \
    AND t.created_at >= $3 AND (t.created_at, t.seq) > ($3, $4) ORDER BY t.created_at, t.seq LIMIT $5";
const CREATED: &str = "SELECT t.seq, t.created_at, t.timestamp, t.shape, t.agent, t.place, t.referer, t.language, t.rule, \
    t.key, t.thng, t.ip, t.short_id, t.entry, t.redirect_url FROM scans t WHERE t.account = $1 AND t.created_at >= $2 \
    AND (t.created_at, t.seq) > ($2, $3) AND t.created_at < $4 ORDER BY t.created_at, t.seq LIMIT $5";
const END: &str = "SELECT w.created_at, w.seq FROM (SELECT t.created_at, t.seq FROM scans t WHERE t.account = $1 \
    AND t.created_at >= $2 AND (t.created_at, t.seq) > ($2, $3) ORDER BY t.created_at, t.seq LIMIT $4) AS w \
    ORDER BY w.created_at DESC, w.seq DESC LIMIT 1";
const NETWORK: &str = "SELECT t.seq, t.created_at, t.timestamp, t.shape, t.agent, t.place, t.referer, t.language, t.rule, \
    t.key, t.thng, t.ip, t.short_id, t.entry, t.redirect_url FROM scans t WHERE t.account = $1 \
    AND t.created_at >= $2 AND (t.created_at, t.seq) > ($2, $3) AND t.created_at <= $4 \
    AND (t.created_at, t.seq) <= ($4, $5) AND t.timestamp >= $6 AND t.timestamp < $7 \
    AND ((t.ip >= $8 AND t.ip <= $9 AND length(t.ip) = $10) OR (t.ip >= $11 AND t.ip <= $12 AND length(t.ip) = $13)) \
    ORDER BY t.created_at, t.seq";

// By the index of times, which is that of all accounts.
const IN_TIME: &str =
    "SELECT 1 FROM scans t WHERE t.timestamp >= $1 AND t.timestamp < $2 ORDER BY t.timestamp LIMIT 1";

/// Rows that a step looks at.
const WINDOW: i64 = 500;

impl SqlScans {
    pub(super) async fn seek_some(
        &self,
        account: AccountId,
        sought: &Sought,
        after: Option<ScanPosition>,
    ) -> Result<Sighted, StoreError> {
        let Some(number) = self.find_account(account).await? else { return Ok(Sighted::default()) };
        let mut conn = self.db.read().await?;
        for month in months::list(&mut conn).await? {
            let after = match after {
                Some(after) if after.month > month.number() => continue,
                Some(after) if after.month == month.number() => (after.at, after.seq),
                Some(_) | None => match is_outside(&mut conn, month, sought).await {
                    Ok(false) => (i64::MIN, i64::MIN),
                    Ok(true) => continue,
                    Err(error) if is_gone(&error) => continue,
                    Err(error) => return Err(error),
                },
            };
            match seek(&mut conn, month, number, sought, after).await {
                Ok(sighted) if sighted.end.is_some() => return Ok(sighted),
                Ok(_) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Sighted::default())
    }
}

/// Whether no scan of a month happened in the time that is sought. The month says when scans arrived, and an edge may keep some
/// for weeks.
async fn is_outside(conn: &mut Conn, month: Month, sought: &Sought) -> Result<bool, StoreError> {
    let Sought::Network { from, to, .. } = *sought else { return Ok(false) };
    let sql = AssertSqlSafe(of_month(IN_TIME, month));
    let found: Option<i32> = on_db!(conn, |c| sqlx::query_scalar(sql)
        .persistent(false)
        .bind(from.0)
        .bind(to.0)
        .fetch_optional(c)
        .await)?;
    Ok(found.is_none())
}

async fn seek(
    conn: &mut Conn,
    month: Month,
    account: i32,
    sought: &Sought,
    after: (i64, i64),
) -> Result<Sighted, StoreError> {
    let at = |(at, seq): (i64, i64)| ScanPosition { month: month.number(), at, seq };
    let (rows, end) = match *sought {
        Sought::Thng(thng) => {
            let sql = AssertSqlSafe(of_month(THNG, month));
            let rows: Vec<Row> = on_db!(conn, |c| sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(ids::pack(&thng))
                .bind(after.0)
                .bind(after.1)
                .bind(WINDOW)
                .fetch_all(c)
                .await)?;
            (rows, None)
        }
        Sought::Created { from, to } => {
            let sql = AssertSqlSafe(of_month(CREATED, month));
            let after = after.max((from.0, i64::MIN));
            let rows: Vec<Row> = on_db!(conn, |c| sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(after.0)
                .bind(after.1)
                .bind(to.0)
                .bind(WINDOW)
                .fetch_all(c)
                .await)?;
            (rows, None)
        }
        Sought::Network { first, last, from, to } => {
            let sql = AssertSqlSafe(of_month(END, month));
            let end: Option<(i64, i64)> = on_db!(conn, |c| sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(after.0)
                .bind(after.1)
                .bind(WINDOW)
                .fetch_optional(c)
                .await)?;
            let Some(end) = end else { return Ok(Sighted::default()) };
            let [own, mapped] = ranges(first, last);
            let sql = AssertSqlSafe(of_month(NETWORK, month));
            let rows: Vec<Row> = on_db!(conn, |c| sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(after.0)
                .bind(after.1)
                .bind(end.0)
                .bind(end.1)
                .bind(from.0)
                .bind(to.0)
                .bind(own.0.as_slice())
                .bind(own.1.as_slice())
                .bind(bytes(&own.0))
                .bind(mapped.0.as_slice())
                .bind(mapped.1.as_slice())
                .bind(bytes(&mapped.0))
                .fetch_all(c)
                .await)?;
            (rows, Some(at(end)))
        }
    };
    let end = end.or_else(|| rows.last().map(|row| at(row.position())));
    let found = rows::readable(conn, month, rows).await?;
    let seen = |scan: &Action| Seen { position: at((scan.created_at.0, scan.seq)), version: 0 };
    let found = found.into_iter().map(|scan| (seen(&scan), scan)).collect();
    Ok(Sighted { found, end })
}

/// The addresses of a range as they are stored: by their own, and an IPv4 address also as IPv6.
pub(super) fn ranges(first: IpAddr, last: IpAddr) -> [(Vec<u8>, Vec<u8>); 2] {
    let own = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let mapped = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    [(own(first), own(last)), (mapped(first), mapped(last))]
}

pub(super) fn bytes(address: &[u8]) -> i32 {
    i32::try_from(address.len()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv4_is_sought_in_both_forms() {
        let [own, mapped] = ranges("203.0.113.0".parse().unwrap(), "203.0.113.255".parse().unwrap());
        assert_eq!(own, (vec![203, 0, 113, 0], vec![203, 0, 113, 255]));
        assert_eq!((mapped.0.len(), &mapped.0[10..]), (16, &[255, 255, 203, 0, 113, 0][..]));
        let [own, mapped] = ranges("2001:db8::".parse().unwrap(), "2001:db8::1".parse().unwrap());
        assert_eq!((own.0.len(), &own), (16, &mapped));
    }
}
