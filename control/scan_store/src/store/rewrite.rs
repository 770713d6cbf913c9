//! Writes scans again, with less in them.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{
    execute, fetch_optional,
    store::{Conn, Ctx, StoreError},
};
use shared::time::UnixMillis;
use sqlx::AssertSqlSafe;

use super::{
    append::Numbered,
    delete::{Texts, loosen},
    months::{is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::{
    NewScan, ScanPosition, Seen,
    domain::{columns::Kind, month::Month},
};

const FIND: &str =
    "SELECT agent, place, referer, language FROM scans WHERE account = $1 AND created_at = $2 AND seq = $3";
const UPDATE: &str = "UPDATE scans SET shape = $4, agent = $5, place = $6, referer = $7, language = $8, rule = $9, \
    ip = $10, short_id = $11, entry = $12, redirect_url = $13 WHERE account = $1 AND created_at = $2 AND seq = $3";

impl SqlScans {
    pub(super) async fn rewrite_all(
        &self,
        now: UnixMillis,
        scans: &[(Seen, NewScan)],
    ) -> Result<(), StoreError> {
        let mut months: BTreeMap<i32, Vec<&(Seen, NewScan)>> = BTreeMap::new();
        for scan in scans {
            months.entry(scan.0.position.month).or_default().push(scan);
        }
        for (number, scans) in months {
            let Some(month) = Month::stored(number) else { continue };
            match self.rewrite_month(month, now, &scans).await {
                Err(error) if is_gone(&error) => {}
                written => written?,
            }
        }
        Ok(())
    }

    async fn rewrite_month(
        &self,
        month: Month,
        now: UnixMillis,
        scans: &[&(Seen, NewScan)],
    ) -> Result<(), StoreError> {
        let new: Vec<&NewScan> = scans.iter().map(|(_, scan)| scan).collect();
        let rows = self.number(month, now, &new).await?;
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let mut loose = BTreeSet::new();
        for ((Seen { position, .. }, _), row) in scans.iter().zip(&rows) {
            let sql = AssertSqlSafe(of_month(FIND, month));
            let before: Option<Texts> =
                fetch_optional!(&mut *tx, sql, row.account, position.at, position.seq)?;
            let Some((agent, place, referer, language)) = before else { continue };
            let texts = [
                (Kind::Agent, agent),
                (Kind::Place, place),
                (Kind::Referer, referer),
                (Kind::Language, language),
            ];
            // What the scan keeps is not loose.
            let left = texts.into_iter().filter(|(kind, id)| *id != row.text(*kind));
            loose.extend(left.filter_map(|(_, id)| id));
            update(&mut tx, month, *position, row).await?;
        }
        loosen(&mut tx, month, loose).await?;
        tx.commit().await
    }
}

async fn update(
    conn: &mut Conn,
    month: Month,
    position: ScanPosition,
    row: &Numbered<'_>,
) -> Result<(), StoreError> {
    let columns = &row.scan.columns;
    let sql = AssertSqlSafe(of_month(UPDATE, month));
    execute!(
        conn,
        sql,
        row.account,
        position.at,
        position.seq,
        row.text(Kind::Shape),
        row.text(Kind::Agent),
        row.text(Kind::Place),
        row.text(Kind::Referer),
        row.text(Kind::Language),
        row.text(Kind::Rule),
        columns.ip.as_deref(),
        columns.short_id.as_deref(),
        columns.entry.as_deref(),
        columns.redirect_url.as_deref()
    )?;
    Ok(())
}
