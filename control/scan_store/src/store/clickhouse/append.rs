//! Stores scans: new ones by batches of edges, and those that stood elsewhere.
//!
//! ClickHouse has no transactions, so the cursors and the counter of positions stay in the database, and the cursor of a
//! boot is locked there while its batch is stored. A batch is stored in three steps:
//!
//! 1. Numbers and creation time of its scans are noted in `scan_batches`, unless an earlier try noted them.
//! 2. The scans are stored in `scans`, in the positions that follow from that; those that an earlier try stored are left out.
//! 3. The cursor moves, in the database.
//!
//! After a kill between two steps the batch comes again, perhaps in other pieces. It then finds what was noted, and its scans
//! get the same keys: a row that is stored twice, also by a request that was still under way, is one scan to every reader, and
//! one that was erased or deleted since has a higher version and stays so. The token of an insert saves the work where the
//! server still remembers it; nothing depends on it.
//!
//! A batch that comes again after minutes, and of which nothing is stored, is noted anew. What looks at each day once, such as
//! exports of days and the cuts of `personalDataDays`, would miss scans that come later with the time of the first note. Their
//! places by the first note are marked as deleted, for an insert that ends after all.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    time::{Duration, Instant},
};

use kernel::store::{Ctx, Db, StoreError};
use shared::{
    id::AccountId,
    time::{Clock, UnixMillis},
};

use super::super::append::{EARLIEST, lock_cursor, move_cursor, take_numbers};
use super::{
    ClickHouseScans,
    client::away,
    params::Params,
    row_binary::{Reader, put_bytes},
    rows::{DELETED, INSERT, Place, Rows},
};
use crate::{
    Appended, Batch, Boot, FIRST_SEQ, NewScan,
    domain::{columns::Columns, month::Month},
};

// The newest one is last: it is the one that scans may have been stored by. A note has positions for `1 << BATCH_BITS` numbers,
// so that older ones, which a boot has many of, are not read.
const NOTED: &str = "SELECT first, begin, end, number, created_at FROM scan_batches \
    WHERE edge = {edge:String} AND boot = {boot:UInt64} AND begin >= {oldest:UInt64} AND end > {expected:UInt64} \
    ORDER BY number, begin";
const NOTE: &str =
    "INSERT INTO scan_batches (edge, boot, first, begin, end, number, created_at) FORMAT RowBinary";
const STORED: &str = "SELECT DISTINCT seq FROM scans WHERE month = {month:Int32} AND created_at = {at:Int64} \
    AND seq >= {first:Int64} AND seq <= {last:Int64} AND account IN {accounts:Array(String)}";
const STORED_KEYS: &str = "SELECT DISTINCT timestamp, key FROM scans WHERE account = {account:String} \
    AND month = {month:Int32} AND key IN (SELECT toFixedString(unhex(arrayJoin({keys:Array(String)})), 12))";

/// Longest run of a statement here.
const LIMIT: Duration = Duration::from_secs(8);

/// How long the lock of a cursor is trusted. Postgres ends a transaction that says nothing for 30 s, and then another
/// process may hold the cursor.
const LOCK_TRUST: Duration = Duration::from_secs(15);

/// How long a note is used of which nothing is stored. The files of a day are written ten minutes after its end.
const NOTE_TRUST_MS: i64 = 5 * 60 * 1_000;

/// Bits of a position that count the scans of a batch.
const BATCH_BITS: u32 = 14;

/// Scans that one statement names.
pub(super) const STEP: usize = 500;

/// A scan with its position and the time of its creation.
pub(super) type Placed = (i64, UnixMillis, NewScan);

/// A scan with its number and its position.
type Numbered<'a> = (u64, i64, &'a NewScan);

/// What was noted of the numbers `begin..end` of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Noted {
    /// The number from which positions are counted.
    first: u64,
    begin: u64,
    end: u64,
    number: i64,
    created_at: UnixMillis,
}

impl Noted {
    /// The position of a scan.
    fn position(&self, seq: u64) -> Option<i64> {
        let within = i64::try_from(seq.checked_sub(self.first)?).ok().filter(|at| *at < 1 << BATCH_BITS)?;
        let number = self.number.checked_sub(FIRST_SEQ)?.checked_mul(1 << BATCH_BITS)?;
        FIRST_SEQ.checked_add(number)?.checked_add(within)
    }

    const fn holds(&self, seq: u64) -> bool {
        self.begin <= seq && seq < self.end
    }

    fn positions<'a>(&self, scans: &[&'a (u64, NewScan)]) -> Result<Vec<Numbered<'a>>, StoreError> {
        let mut numbered = Vec::with_capacity(scans.len());
        for (seq, scan) in scans.iter().copied() {
            let position = self.position(*seq);
            let position = position.ok_or_else(|| StoreError::Row(format!("no position in {self:?}")))?;
            numbered.push((*seq, position, scan));
        }
        Ok(numbered)
    }
}

impl ClickHouseScans {
    pub(super) async fn append_batch(&self, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        let _permit = self.writers.acquire().await.map_err(|_| StoreError::Stopped)?;
        // A number is never given twice, and a later try has a higher one. A sequence of Postgres keeps what it gave; on
        // SQLite, where one batch at a time is stored, it is a transaction of its own.
        let before = match &self.cursors.db {
            Db::Sqlite { .. } => Some(self.take_number().await?),
            Db::Pg(_) => None,
        };
        let mut tx = self.cursors.db.begin(&Ctx::default()).await?;
        let expected = lock_cursor(&mut tx, batch.boot).await?.max(batch.stored_elsewhere);
        let locked = Instant::now();
        let created_at = self.cursors.last_created.next(self.now(batch.clock).await?);
        if batch.end <= expected {
            return Ok(Appended { expected, created_at, positions: Vec::new() });
        }
        let scans: Vec<&(u64, NewScan)> = batch.scans.iter().filter(|(seq, _)| *seq >= expected).collect();
        let mut positions = Vec::with_capacity(scans.len());
        if let Some((first, _)) = scans.first() {
            let number = match before {
                Some(number) => number,
                None => one(take_numbers(&mut tx, 1).await?)?,
            };
            let earlier = self.list_noted(batch.boot, expected).await?;
            let used = self.list_used(&earlier, &scans, created_at).await?;
            let new = missing(*first..batch.end, &used, (number, created_at));
            self.note(batch.boot, &new).await?;
            let all: Vec<Noted> = earlier.iter().chain(&new).copied().collect();
            self.hide_superseded(&all, &scans).await?;
            if locked.elapsed() > LOCK_TRUST {
                return Err(away("the cursor of a batch was locked for too long"));
            }
            for (index, noted) in all.iter().enumerate() {
                let mine = of_note(&all, index, &scans);
                positions.extend(self.store_noted(batch.boot, noted, index >= earlier.len(), &mine).await?);
            }
        }
        if positions.len() != scans.len() {
            return Err(StoreError::Row(format!("scans of {:?} got no positions", batch.boot)));
        }
        positions.sort_unstable();
        move_cursor(&mut tx, batch.boot, batch.end).await?;
        tx.commit().await?;
        Ok(Appended { expected, created_at, positions })
    }

    async fn take_number(&self) -> Result<i64, StoreError> {
        let mut tx = self.cursors.db.begin(&Ctx::default()).await?;
        let number = one(take_numbers(&mut tx, 1).await?)?;
        tx.commit().await?;
        Ok(number)
    }

    /// What was noted of scans of a boot that its cursor has not passed, the oldest first.
    async fn list_noted(&self, boot: Boot<'_>, expected: u64) -> Result<Vec<Noted>, StoreError> {
        let mut params = Params::default();
        params.text("edge", boot.edge).text("boot", &boot.boot.to_string());
        params.text("expected", &expected.to_string());
        params.text("oldest", &expected.saturating_sub(1 << BATCH_BITS).to_string());
        let answer = self.client.query(NOTED, &params, LIMIT).await?;
        let (mut reader, mut found) = (Reader::new(&answer), Vec::new());
        while reader.is_more() {
            let (first, begin, end) = (reader.uint64()?, reader.uint64()?, reader.uint64()?);
            let (number, created_at) = (reader.int64()?, UnixMillis(reader.int64()?));
            found.push(Noted { first, begin, end, number, created_at });
        }
        Ok(found)
    }

    async fn note(&self, boot: Boot<'_>, new: &[Noted]) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        for noted in new {
            put_bytes(&mut rows, boot.edge.as_bytes());
            for number in [boot.boot, noted.first, noted.begin, noted.end] {
                rows.extend_from_slice(&number.to_le_bytes());
            }
            rows.extend_from_slice(&noted.number.to_le_bytes());
            rows.extend_from_slice(&noted.created_at.0.to_le_bytes());
        }
        if rows.is_empty() { Ok(()) } else { self.client.insert(NOTE, None, rows, LIMIT).await }
    }

    /// The notes that go on to be used.
    async fn list_used(
        &self,
        earlier: &[Noted],
        scans: &[&(u64, NewScan)],
        now: UnixMillis,
    ) -> Result<Vec<Noted>, StoreError> {
        let mut used = Vec::new();
        for (index, noted) in earlier.iter().enumerate() {
            let is_new = now.0.saturating_sub(noted.created_at.0) <= NOTE_TRUST_MS;
            let mine = noted.positions(&of_note(earlier, index, scans))?;
            if is_new || !self.list_stored(noted, &mine).await?.is_empty() {
                used.push(*noted);
            }
        }
        Ok(used)
    }

    /// Marks the places of scans by notes that are not the newest one as deleted.
    async fn hide_superseded(&self, all: &[Noted], scans: &[&(u64, NewScan)]) -> Result<(), StoreError> {
        let nothing = Columns::default();
        let mut rows = Rows::default();
        for (index, noted) in all.iter().enumerate() {
            for (seq, scan) in scans.iter().copied() {
                let is_superseded =
                    noted.holds(*seq) && all.iter().skip(index + 1).any(|newer| newer.holds(*seq));
                if let Some(position) = noted.position(*seq).filter(|_| is_superseded) {
                    let place = Place::of(scan, noted.created_at, position);
                    rows.push(scan.account, &Place { version: DELETED, ..place }, &nothing);
                }
            }
        }
        if rows.bytes.is_empty() { Ok(()) } else { self.client.insert(INSERT, None, rows.bytes, LIMIT).await }
    }

    /// Stores scans as it was noted; gives their numbers and positions.
    async fn store_noted(
        &self,
        boot: Boot<'_>,
        noted: &Noted,
        is_new: bool,
        scans: &[&(u64, NewScan)],
    ) -> Result<Vec<(u64, i64)>, StoreError> {
        let mine = noted.positions(scans)?;
        let (Some(first), Some(last)) = (mine.first(), mine.last()) else { return Ok(Vec::new()) };
        let token = format!("{}/{}/{}/{}/{}", boot.edge, boot.boot, first.0, last.0, noted.number);
        let stored = if is_new { HashSet::new() } else { self.list_stored(noted, &mine).await? };
        let mut rows = Rows::default();
        for (_, position, scan) in mine.iter().filter(|(_, position, _)| !stored.contains(position)) {
            rows.push(scan.account, &Place::of(scan, noted.created_at, *position), &scan.columns);
        }
        if !rows.bytes.is_empty() {
            self.client.insert(INSERT, Some(&token), rows.bytes, LIMIT).await?;
        }
        Ok(mine.into_iter().map(|(seq, position, _)| (seq, position)).collect())
    }

    /// The positions of those that are stored already, or deleted since.
    async fn list_stored(&self, noted: &Noted, scans: &[Numbered<'_>]) -> Result<HashSet<i64>, StoreError> {
        let (Some(first), Some(last)) = (scans.first(), scans.last()) else { return Ok(HashSet::new()) };
        let accounts: HashSet<AccountId> = scans.iter().map(|(.., scan)| scan.account).collect();
        let mut params = Params::default();
        let month = Month::of(noted.created_at).number();
        params.whole("month", i64::from(month)).time("at", noted.created_at);
        params.whole("first", first.1).whole("last", last.1);
        params.names("accounts", accounts.iter().map(AccountId::as_str));
        let answer = self.client.query(STORED, &params, LIMIT).await?;
        let (mut reader, mut found) = (Reader::new(&answer), HashSet::new());
        while reader.is_more() {
            found.insert(reader.int64()?);
        }
        Ok(found)
    }

    /// The time. A clock that cannot be right is taken for the begin of the newest month, as in the other stores.
    async fn now(&self, clock: &dyn Clock) -> Result<UnixMillis, StoreError> {
        let now = clock.now();
        if now >= EARLIEST {
            return Ok(now);
        }
        let newest = self.months().await?.pop();
        Ok(newest.map_or(EARLIEST, Month::start).max(EARLIEST))
    }

    pub(super) async fn adopt_all(&self, scans: &[Placed]) -> Result<(), StoreError> {
        let mut groups: BTreeMap<(AccountId, Month), Vec<&Placed>> = BTreeMap::new();
        for scan in scans {
            groups.entry((scan.2.account, Month::of(scan.1))).or_default().push(scan);
        }
        for ((account, month), scans) in groups {
            for scans in scans.chunks(STEP) {
                let mut params = Params::of(account, month);
                params.bytes("keys", scans.iter().map(|(.., scan)| scan.key.as_slice()));
                let answer = self.client.query(STORED_KEYS, &params, LIMIT).await?;
                let (mut reader, mut stored) = (Reader::new(&answer), HashSet::new());
                while reader.is_more() {
                    stored.insert((reader.int64()?, reader.fixed::<12>()?));
                }
                let mut rows = Rows::default();
                for (seq, created_at, scan) in scans {
                    if !stored.contains(&(scan.timestamp.0, scan.key)) {
                        rows.push(account, &Place::of(scan, *created_at, *seq), &scan.columns);
                    }
                }
                if !rows.bytes.is_empty() {
                    self.client.insert(INSERT, None, rows.bytes, LIMIT).await?;
                }
            }
        }
        Ok(())
    }
}

fn one(numbers: Vec<i64>) -> Result<i64, StoreError> {
    numbers.first().copied().ok_or_else(|| StoreError::Row("a batch got no number".to_owned()))
}

/// The scans that are stored by a note: those of which none is newer.
fn of_note<'a>(all: &[Noted], index: usize, scans: &[&'a (u64, NewScan)]) -> Vec<&'a (u64, NewScan)> {
    let is_its = |seq: u64| all.iter().rposition(|noted| noted.holds(seq)) == Some(index);
    scans.iter().copied().filter(|(seq, _)| is_its(*seq)).collect()
}

/// The parts of a range of numbers of which nothing was noted.
fn missing(range: Range<u64>, earlier: &[Noted], (number, created_at): (i64, UnixMillis)) -> Vec<Noted> {
    let mut known: Vec<(u64, u64)> = earlier.iter().map(|noted| (noted.begin, noted.end)).collect();
    known.sort_unstable();
    let (first, mut begin, mut found) = (range.start, range.start, Vec::new());
    for (from, to) in known.into_iter().chain([(range.end, range.end)]) {
        let end = from.min(range.end);
        if begin < end {
            found.push(Noted { first, begin, end, number, created_at });
        }
        begin = begin.max(to);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: UnixMillis = UnixMillis(1_790_000_000_000);

    fn noted(first: u64, begin: u64, end: u64, number: i64) -> Noted {
        Noted { first, begin, end, number, created_at: AT }
    }

    #[test]
    fn what_was_not_noted_is_noted_once() {
        let of = |range, earlier: &[Noted]| missing(range, earlier, (9, AT));
        assert_eq!(of(0..5, &[]), [noted(0, 0, 5, 9)]);
        assert_eq!(of(2..5, &[noted(0, 0, 5, 1)]), []);
        assert_eq!(of(2..7, &[noted(0, 0, 5, 1)]), [noted(2, 5, 7, 9)]);
        let holes = [noted(3, 3, 4, 1), noted(6, 6, 8, 2), noted(6, 7, 9, 3)];
        assert_eq!(of(1..12, &holes), [noted(1, 1, 3, 9), noted(1, 4, 6, 9), noted(1, 9, 12, 9)]);
    }

    #[test]
    fn positions_differ_and_follow_the_batches() {
        let (one, other) = (noted(7, 7, 9, FIRST_SEQ), noted(7, 12, 14, FIRST_SEQ));
        assert_eq!(one.position(7), Some(FIRST_SEQ));
        assert_eq!(other.position(12), Some(FIRST_SEQ + 5));
        assert_eq!(noted(0, 0, 2, FIRST_SEQ + 1).position(0), Some(FIRST_SEQ + (1 << 14)));
        assert_eq!(one.position(7 + (1 << 14)), None);
        assert_eq!(one.position(6), None);
        assert_eq!(noted(0, 0, 1, i64::MAX).position(0), None);
    }
}
