//! Stores scans: new ones by batches of edges, and those that stood elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};

use kernel::{
    execute, on_db,
    store::{
        Conn, Ctx, Raw, StoreError, Tx, dialect,
        dialect::{signed, unsigned},
    },
};
use shared::time::{Clock, UnixMillis};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
    texts::Text,
    write_postgres, write_sqlite,
};
use crate::{
    Appended, Batch, Boot, NewScan,
    domain::{
        columns::Kind,
        month::{Month, day_of},
    },
};

const FIND_CURSOR: &str = "SELECT next_seq FROM scan_intake WHERE edge_id = $1 AND boot = $2";
const PG_LOCK_CURSOR: &str = "SELECT next_seq FROM scan_intake WHERE edge_id = $1 AND boot = $2 FOR UPDATE";
const ADD_CURSOR: &str = "INSERT INTO scan_intake (edge_id, boot, next_seq) VALUES ($1, $2, 0) \
    ON CONFLICT (edge_id, boot) DO NOTHING";
const MOVE_CURSOR: &str = "UPDATE scan_intake SET next_seq = $3 WHERE edge_id = $1 AND boot = $2";
const PG_POSITIONS: &str = "SELECT nextval('scan_counter') FROM generate_series(1, $1)";
const SQLITE_POSITIONS: &str = "UPDATE scan_counter SET next_seq = next_seq + $1 RETURNING next_seq";

// By ids, which are the same wherever a scan was stored.
const PG_STORED: &str = "SELECT t.account, t.timestamp, t.key FROM scans t WHERE t.timestamp = ANY($1)";
const SQLITE_STORED: &str = "SELECT t.account, t.timestamp, t.key FROM scans t \
    WHERE t.timestamp IN (SELECT value FROM json_each($1))";

/// How often a batch begins again; each time needs a midnight, or a month that was dropped.
const TRIES: usize = 3;

/// 2025-01-01, before there was this store.
pub(super) const EARLIEST: UnixMillis = UnixMillis(1_735_689_600_000);

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
        for _ in 0..TRIES {
            if let Some(appended) = self.try_append(batch).await? {
                return Ok(appended);
            }
        }
        Err(StoreError::Row(format!("a batch of {:?} found no day that lasts", batch.boot)))
    }

    /// Stores a batch; `None` where the day has changed meanwhile, or the month was dropped.
    async fn try_append(&self, batch: &Batch<'_>) -> Result<Option<Appended>, StoreError> {
        // What does not depend on the cursor comes first: the transaction holds the one writer of SQLite.
        let begun = self.now(batch.clock).await?;
        let month = Month::of(begun);
        self.make_known(month).await?;
        let scans: Vec<&NewScan> = batch.scans.iter().map(|(_, scan)| scan).collect();
        let mut rows = match self.number(month, begun, &scans).await {
            Err(error) if is_gone(&error) => {
                self.forget(month);
                return Ok(None);
            }
            rows => rows?,
        };
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let expected = lock_cursor(&mut tx, batch.boot).await?.max(batch.stored_elsewhere);
        // Behind the lock: whoever follows a list of SQLite by its end misses none that are committed later.
        let created_at = self.last_created.next(self.now(batch.clock).await?);
        if batch.end <= expected {
            return Ok(Some(Appended { expected, created_at, positions: Vec::new() }));
        }
        if day_of(created_at) != day_of(begun) {
            return Ok(None);
        }
        let stored_before = batch.scans.iter().take_while(|(seq, _)| *seq < expected).count();
        rows.drain(..stored_before);
        take_positions(&mut tx, &mut rows).await?;
        rows.iter_mut().for_each(|row| row.created_at = created_at);
        match write(&mut tx, month, &rows).await {
            Err(error) if is_gone(&error) => {
                self.forget(month);
                return Ok(None);
            }
            written => written?,
        }
        move_cursor(&mut tx, batch.boot, batch.end).await?;
        tx.commit().await?;
        let stored = batch.scans.iter().skip(stored_before).zip(&rows);
        let positions = stored.map(|((seq, _), row)| (*seq, row.seq)).collect();
        Ok(Some(Appended { expected, created_at, positions }))
    }

    /// The time. A clock that cannot be right, as that of a machine before it asked the network, is taken for the begin of
    /// the newest month, so that retention does not remove what was just stored.
    async fn now(&self, clock: &dyn Clock) -> Result<UnixMillis, StoreError> {
        let now = clock.now();
        if now >= EARLIEST {
            return Ok(now);
        }
        let newest = months::list(&mut self.db.read().await?).await?.pop();
        Ok(newest.map_or(EARLIEST, Month::start).max(EARLIEST))
    }

    pub(super) async fn adopt_all(
        &self,
        mut within: Option<&mut Tx>,
        now: UnixMillis,
        scans: &[(i64, UnixMillis, NewScan)],
    ) -> Result<(), StoreError> {
        let mut months: BTreeMap<Month, Vec<&(i64, UnixMillis, NewScan)>> = BTreeMap::new();
        for scan in scans {
            months.entry(Month::of(scan.1)).or_default().push(scan);
        }
        for (month, scans) in months {
            // Another process may have dropped it since this one saw it.
            months::make(&self.db, month).await?;
            let new: Vec<&NewScan> = scans.iter().map(|(_, _, scan)| scan).collect();
            // Texts last as long as their scans, whatever the clock said when these were created.
            let now = scans.iter().map(|scan| scan.1).fold(now, UnixMillis::max);
            let mut rows = self.number(month, now, &new).await?;
            for (row, (seq, created_at, _)) in rows.iter_mut().zip(scans) {
                (row.seq, row.created_at) = (*seq, *created_at);
            }
            match &mut within {
                Some(tx) => adopt_rows(tx, month, rows).await?,
                None => {
                    let mut tx = self.db.begin(&Ctx::default()).await?;
                    adopt_rows(&mut tx, month, rows).await?;
                    tx.commit().await?;
                }
            }
        }
        Ok(())
    }

    /// Scans with the numbers of their accounts and texts; their positions are still missing.
    pub(super) async fn number<'a>(
        &self,
        month: Month,
        now: UnixMillis,
        scans: &[&'a NewScan],
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
        let numbers = self.number_texts(month, now, texts).await?;
        let row = |scan: &&'a NewScan| {
            let account = account_of(scan);
            let texts = scan.columns.texts();
            let texts =
                texts.filter_map(|(kind, text)| Some((kind, (*numbers.get(&(account, kind, text))?)?)));
            Numbered { seq: 0, created_at: now, account, scan, texts: texts.collect() }
        };
        Ok(scans.iter().map(row).collect())
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
pub(super) async fn lock_cursor(tx: &mut Tx, boot: Boot<'_>) -> Result<u64, StoreError> {
    execute!(&mut **tx, ADD_CURSOR, boot.edge, signed(boot.boot))?;
    let sql = dialect::pick(tx, PG_LOCK_CURSOR, FIND_CURSOR);
    Ok(find_cursor(tx, sql, boot).await?.unwrap_or_default())
}

pub(super) async fn move_cursor(tx: &mut Tx, boot: Boot<'_>, to: u64) -> Result<(), StoreError> {
    let moved = execute!(&mut **tx, MOVE_CURSOR, boot.edge, signed(boot.boot), signed(to))?;
    if moved == 1 { Ok(()) } else { Err(StoreError::Row(format!("the cursor of {boot:?} is gone"))) }
}

/// Gives rows their positions, after those of every scan that was stored before.
async fn take_positions(tx: &mut Tx, rows: &mut [Numbered<'_>]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let positions = take_numbers(tx, rows.len()).await?;
    for (row, position) in rows.iter_mut().zip(positions) {
        row.seq = position;
    }
    Ok(())
}

/// So many numbers, each above those that were given before.
pub(super) async fn take_numbers(tx: &mut Tx, count: usize) -> Result<Vec<i64>, StoreError> {
    let wanted = count;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = dialect::pick(tx, PG_POSITIONS, SQLITE_POSITIONS);
    let found: Vec<i64> = on_db!(&mut **tx, |c| sqlx::query_scalar(sql).bind(count).fetch_all(c).await)?;
    // SQLite gives the end of a run, Postgres each number.
    let run = found.first().filter(|_| found.len() == 1).map(|end| end - count..*end);
    let numbers: Vec<i64> = match &**tx {
        Conn::Sqlite(_) | Conn::SqliteTx(_) => run.into_iter().flatten().collect(),
        Conn::Pg(_) | Conn::PgTx(_) => found,
    };
    if numbers.len() == wanted {
        Ok(numbers)
    } else {
        Err(StoreError::Row("scans got no positions".to_owned()))
    }
}

/// Stores scans that stood elsewhere, without those that are there.
async fn adopt_rows(tx: &mut Tx, month: Month, mut rows: Vec<Numbered<'_>>) -> Result<(), StoreError> {
    let times: Vec<i64> = rows.iter().map(|row| row.scan.timestamp.0).collect();
    let sql = AssertSqlSafe(of_month(dialect::pick(tx, PG_STORED, SQLITE_STORED), month));
    let stored: Vec<(i32, i64, Vec<u8>)> = match tx.raw() {
        Raw::Pg(c) => sqlx::query_as(sql).persistent(false).bind(times).fetch_all(c).await?,
        Raw::Sqlite(c) => sqlx::query_as(sql).bind(Json(times)).fetch_all(c).await?,
    };
    let stored: HashSet<(i32, i64, Vec<u8>)> = stored.into_iter().collect();
    rows.retain(|row| !stored.contains(&(row.account, row.scan.timestamp.0, row.scan.key.to_vec())));
    write(tx, month, &rows).await
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
