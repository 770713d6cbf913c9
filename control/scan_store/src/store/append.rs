//! Stores scans: new ones by batches of edges, and those that stood elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};

use kernel::{
    on_db,
    store::{
        Conn, Ctx, StoreError, Tx, dialect,
        dialect::{signed, unsigned},
    },
};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::{sql_scans::SqlScans, texts::Text, write_postgres, write_sqlite};
use crate::{
    Appended, Batch, Boot, NewScan,
    domain::{columns::Kind, month::Month},
};

const FIND_CURSOR: &str = "SELECT next_seq FROM scan_intake WHERE edge_id = $1 AND boot = $2";
const PG_LOCK_CURSOR: &str = "SELECT next_seq FROM scan_intake WHERE edge_id = $1 AND boot = $2 FOR UPDATE";
const ADD_CURSOR: &str = "INSERT INTO scan_intake (edge_id, boot, next_seq) VALUES ($1, $2, 0) \
    ON CONFLICT (edge_id, boot) DO NOTHING";
const MOVE_CURSOR: &str = "UPDATE scan_intake SET next_seq = $3 WHERE edge_id = $1 AND boot = $2";
const PG_PLACES: &str = "SELECT nextval('scan_counter') FROM generate_series(1, $1)";
const SQLITE_PLACES: &str = "UPDATE scan_counter SET next_seq = next_seq + $1 RETURNING next_seq";

/// A scan with the numbers of its account and texts, as it is written.
#[derive(Debug)]
pub(super) struct Numbered<'a> {
    pub(super) seq: i64,
    pub(super) created_at: UnixMillis,
    pub(super) account: i32,
    pub(super) scan: &'a NewScan,
    texts: HashMap<Kind, i32>,
}

impl Numbered<'_> {
    /// The number of a text.
    pub(super) fn text(&self, kind: Kind) -> Option<i32> {
        self.texts.get(&kind).copied()
    }
}

impl SqlScans {
    pub(super) async fn next_seq(&self, boot: Boot<'_>) -> Result<Option<u64>, StoreError> {
        find_cursor(&mut self.db.read().await?, FIND_CURSOR, boot).await
    }

    pub(super) async fn append_batch(&self, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        let month = Month::of(batch.created_at);
        self.make_known(month).await?;
        // What does not depend on the cursor comes first: the transaction holds the one writer of SQLite.
        let scans: Vec<&NewScan> = batch.scans.iter().map(|(_, scan)| scan).collect();
        let mut rows = self.number(month, batch.created_at, &scans, true).await?;
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let expected = lock_cursor(&mut tx, batch.boot).await?.max(batch.stored_elsewhere);
        if batch.end <= expected {
            return Ok(Appended { expected, stored: 0 });
        }
        let stored_before = batch.scans.iter().take_while(|(seq, _)| *seq < expected).count();
        rows.drain(..stored_before);
        take_places(&mut tx, &mut rows).await?;
        write(&mut tx, month, &rows).await?;
        move_cursor(&mut tx, batch.boot, batch.end).await?;
        tx.commit().await?;
        Ok(Appended { expected, stored: rows.len() as u64 })
    }

    pub(super) async fn adopt_all(
        &self,
        account: AccountId,
        scans: &[(i64, UnixMillis, NewScan)],
    ) -> Result<(), StoreError> {
        let ids: Vec<ActionId> = scans.iter().filter_map(|(_, _, scan)| scan.id()).collect();
        let there: HashSet<i64> =
            self.find_all(account, &ids).await?.into_iter().map(|action| action.seq).collect();
        let mut months: BTreeMap<Month, Vec<&(i64, UnixMillis, NewScan)>> = BTreeMap::new();
        for scan in scans.iter().filter(|(seq, ..)| !there.contains(seq)) {
            months.entry(Month::of(scan.1)).or_default().push(scan);
        }
        for (month, scans) in months {
            // Another process may have dropped it since.
            self.forget(month);
            self.make_known(month).await?;
            let new: Vec<&NewScan> = scans.iter().map(|(_, _, scan)| scan).collect();
            let mut rows = self.number(month, UnixMillis(0), &new, false).await?;
            for (row, (seq, created_at, _)) in rows.iter_mut().zip(scans) {
                (row.seq, row.created_at) = (*seq, *created_at);
            }
            let mut tx = self.db.begin(&Ctx::default()).await?;
            write(&mut tx, month, &rows).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Scans with the numbers of their accounts and texts; their places are still missing.
    async fn number<'a>(
        &self,
        month: Month,
        created_at: UnixMillis,
        scans: &[&'a NewScan],
        is_current: bool,
    ) -> Result<Vec<Numbered<'a>>, StoreError> {
        let mut accounts = HashMap::new();
        for scan in scans {
            if let Entry::Vacant(place) = accounts.entry(scan.account) {
                place.insert(self.account(scan.account).await?);
            }
        }
        let account_of = |scan: &NewScan| accounts.get(&scan.account).copied().unwrap_or_default();
        let mut texts: HashSet<Text<'a>> = HashSet::new();
        for scan in scans {
            texts.extend(scan.columns.texts().map(|(kind, text)| (account_of(scan), kind, text)));
        }
        let numbers = self.number_texts(month, texts, is_current).await?;
        let row = |scan: &&'a NewScan| {
            let account = account_of(scan);
            let texts = scan.columns.texts().map(|(kind, text)| {
                let number = numbers.get(&(account, kind, text)).copied();
                let missing = || StoreError::Row("a text of a scan has no number".to_owned());
                Ok((kind, number.ok_or_else(missing)?))
            });
            let texts = texts.collect::<Result<HashMap<Kind, i32>, StoreError>>()?;
            Ok(Numbered { seq: 0, created_at, account, scan, texts })
        };
        scans.iter().map(row).collect()
    }
}

async fn find_cursor(conn: &mut Conn, sql: &'static str, boot: Boot<'_>) -> Result<Option<u64>, StoreError> {
    let next: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(sql)
        .bind(boot.edge)
        .bind(signed(boot.boot))
        .fetch_optional(c)
        .await)?;
    Ok(next.map(unsigned))
}

/// The cursor of a boot, which stays locked until the transaction ends.
async fn lock_cursor(tx: &mut Tx, boot: Boot<'_>) -> Result<u64, StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(ADD_CURSOR)
        .bind(boot.edge)
        .bind(signed(boot.boot))
        .execute(c)
        .await
        .map(|_| ()))?;
    let sql = dialect::lock_row(tx, PG_LOCK_CURSOR, FIND_CURSOR);
    Ok(find_cursor(tx, sql, boot).await?.unwrap_or_default())
}

async fn move_cursor(tx: &mut Tx, boot: Boot<'_>, to: u64) -> Result<(), StoreError> {
    let moved = on_db!(&mut **tx, |c| sqlx::query(MOVE_CURSOR)
        .bind(boot.edge)
        .bind(signed(boot.boot))
        .bind(signed(to))
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    if moved == 1 { Ok(()) } else { Err(StoreError::Row(format!("the cursor of {boot:?} is gone"))) }
}

/// Gives rows their places, after those of every scan that was stored before.
async fn take_places(tx: &mut Tx, rows: &mut [Numbered<'_>]) -> Result<(), StoreError> {
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    if count == 0 {
        return Ok(());
    }
    let sql = dialect::pick(tx, PG_PLACES, SQLITE_PLACES);
    let found: Vec<i64> = on_db!(&mut **tx, |c| sqlx::query_scalar(sql).bind(count).fetch_all(c).await)?;
    // SQLite gives the end of a run, Postgres each number.
    let run = found.first().filter(|_| found.len() == 1).map(|end| end - count..*end);
    let places: Vec<i64> = match &**tx {
        Conn::Sqlite(_) | Conn::SqliteTx(_) => run.into_iter().flatten().collect(),
        Conn::Pg(_) | Conn::PgTx(_) => found,
    };
    if places.len() != rows.len() {
        return Err(StoreError::Row("scans got no places".to_owned()));
    }
    for (row, place) in rows.iter_mut().zip(places) {
        row.seq = place;
    }
    Ok(())
}

async fn write(tx: &mut Tx, month: Month, rows: &[Numbered<'_>]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => write_postgres::write(c, month, rows).await,
        Conn::SqliteTx(c) => write_sqlite::write(c, month, rows).await,
        Conn::Pg(_) | Conn::Sqlite(_) => Err(dialect::outside_transaction()),
    }
}
