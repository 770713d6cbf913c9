//! Texts that scans share: each is stored once in a month for each account.
//!
//! A text goes with the scans that have it: it notes the last day on which one was stored, and retention removes it when
//! that day is over. So each text is written once a day where it is used. What the client chooses (browser, referer,
//! language) is limited for each account and month; above that a scan keeps only the names of browser and system.

use std::collections::{HashMap, HashSet};

use kernel::{
    on_db,
    store::{Conn, Ctx, Raw, StoreError, dialect},
};
use serde_json::{Value, json};
use shared::time::UnixMillis;
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    months::of_month,
    sql_scans::{SqlScans, lock},
    text_cache::{Hashed, MOST_OF_KIND, is_of_client},
};
use crate::domain::{
    columns::Kind,
    month::{Month, day_of},
};

// In one order for all, so that two batches with the same texts do not lock each other out.
const PG_ADD: &str = "INSERT INTO scan_texts (account, kind, hash, text, last_day) \
    SELECT a, k, h, t, $5::int FROM UNNEST($1::int[], $2::smallint[], $3::bytea[], $4::text[]) \
    AS n (a, k, h, t) ORDER BY a, k, h ON CONFLICT (account, kind, hash) DO NOTHING";
const SQLITE_ADD: &str = "INSERT INTO scan_texts (account, kind, hash, text, last_day) \
    SELECT value ->> '$[0]', value ->> '$[1]', unhex(value ->> '$[2]'), value ->> '$[3]', $2 \
    FROM json_each($1) WHERE true ON CONFLICT (account, kind, hash) DO NOTHING";
const PG_TOUCH: &str = "UPDATE scan_texts SET last_day = $2 WHERE id IN (SELECT t.id FROM scan_texts t \
    WHERE t.id = ANY($1) AND t.last_day < $2 ORDER BY t.id FOR UPDATE)";
const SQLITE_TOUCH: &str = "UPDATE scan_texts SET last_day = $2 \
    WHERE id IN (SELECT value FROM json_each($1)) AND last_day < $2";
const PG_FIND: &str = "SELECT t.account, t.kind, t.hash, t.id, t.last_day \
    FROM UNNEST($1::int[], $2::smallint[], $3::bytea[]) AS n (a, k, h) \
    JOIN scan_texts t ON t.account = n.a AND t.kind = n.k AND t.hash = n.h";
const SQLITE_FIND: &str = "SELECT t.account, t.kind, t.hash, t.id, t.last_day FROM json_each($1) n \
    CROSS JOIN scan_texts t ON t.account = n.value ->> '$[0]' AND t.kind = n.value ->> '$[1]' \
    AND t.hash = unhex(n.value ->> '$[2]')";
const COUNT: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM scan_texts t WHERE t.account = $1 AND t.kind = $2 LIMIT $3) \
    AS found";
const PG_FACETS: &str = "INSERT INTO scan_facets (account, facet, id) \
    SELECT a, f, i FROM UNNEST($1::int[], $2::text[], $3::int[]) AS n (a, f, i) ORDER BY a, f, i \
    ON CONFLICT (account, facet, id) DO NOTHING";
const SQLITE_FACETS: &str = "INSERT INTO scan_facets (account, facet, id) \
    SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]' FROM json_each($1) WHERE true \
    ON CONFLICT (account, facet, id) DO NOTHING";
const PG_LOAD: &str = "SELECT id, text FROM scan_texts WHERE id = ANY($1)";
const SQLITE_LOAD: &str = "SELECT id, text FROM scan_texts WHERE id IN (SELECT value FROM json_each($1))";

/// A text of an account.
pub(super) type Text<'a> = (i32, Kind, &'a str);

/// Texts by their hashes.
type Keyed<'a> = HashMap<Hashed, (Kind, &'a str)>;

/// A text as it is found: its account, kind and hash, its number, and its last day.
type Found = (i32, i16, Vec<u8>, i32, i32);

impl SqlScans {
    /// The numbers of texts in a month; new texts are stored. One that its account has no room for is that of what is left
    /// of it, or has none.
    pub(super) async fn number_texts<'a>(
        &self,
        month: Month,
        now: UnixMillis,
        texts: HashSet<Text<'a>>,
    ) -> Result<HashMap<Text<'a>, Option<i32>>, StoreError> {
        let keys: HashMap<Text<'a>, Hashed> = texts.into_iter().map(|text| (text, hash(text))).collect();
        let keyed = keys.iter().map(|((_, kind, text), key)| (*key, (*kind, *text))).collect();
        let (numbers, above) = self.ensure(month, now, keyed, true).await?;
        let left: HashMap<Hashed, (Kind, String)> = above
            .into_iter()
            .filter_map(|(key, (kind, text))| Some((key, (kind, kind.reduced(text)?))))
            .collect();
        let reduced = |key: &Hashed| left.get(key).map(|(kind, text)| hash((key.0, *kind, text)));
        let mut numbers_left = HashMap::new();
        if !left.is_empty() {
            let keyed = left.iter().map(|(key, (kind, text))| (hash((key.0, *kind, text)), (*kind, &**text)));
            (numbers_left, _) = self.ensure(month, now, keyed.collect(), false).await?;
        }
        let number =
            |key: &Hashed| numbers.get(key).copied().or_else(|| numbers_left.get(&reduced(key)?).copied());
        Ok(keys.into_iter().map(|(text, key)| (text, number(&key))).collect())
    }

    /// The numbers of texts, and the texts for which there is no room.
    async fn ensure<'a>(
        &self,
        month: Month,
        now: UnixMillis,
        mut texts: Keyed<'a>,
        is_limited: bool,
    ) -> Result<(HashMap<Hashed, i32>, Keyed<'a>), StoreError> {
        let (day, is_current) = (day_of(now), Month::of(now) == month);
        let mut numbers = HashMap::with_capacity(texts.len());
        if is_current {
            let mut known = lock(&self.texts);
            texts.retain(|key, _| known.find(day, key).is_none_or(|id| numbers.insert(*key, id).is_some()));
        }
        if texts.is_empty() {
            return Ok((numbers, Keyed::new()));
        }
        let stored = find(&mut self.db.read().await?, month, &texts).await?;
        let mut used = Vec::new();
        for (key, (id, last_day)) in &stored {
            if *last_day >= day {
                texts.remove(key);
                used.push((*key, *id));
            }
        }
        let mut above = Keyed::new();
        if is_limited {
            let mut missing: Vec<Hashed> =
                texts.keys().filter(|key| !stored.contains_key(*key)).copied().collect();
            missing.sort_unstable();
            for key in self.without_room(month, now, &texts, missing).await? {
                above.extend(texts.remove_entry(&key));
            }
        }
        if !texts.is_empty() {
            let stale: Vec<i32> = texts.keys().filter_map(|key| Some(stored.get(key)?.0)).collect();
            let mut tx = self.db.begin(&Ctx::default()).await?;
            let fresh = texts.iter().filter(|(key, _)| !stored.contains_key(*key));
            let fresh: Vec<(Hashed, Kind, &str)> =
                fresh.map(|(key, (kind, text))| (*key, *kind, *text)).collect();
            add(&mut tx, month, day, &fresh).await?;
            touch(&mut tx, month, day, &stale).await?;
            let found = find(&mut tx, month, &texts).await?;
            let number = |(key, kind, text)| Some((key, kind, text, found.get(&key)?.0));
            let fresh: Vec<(Hashed, Kind, &str, i32)> = fresh.into_iter().filter_map(number).collect();
            add_facets(&mut tx, month, &fresh).await?;
            tx.commit().await?;
            used.extend(found.into_iter().map(|(key, (id, _))| (key, id)));
        }
        if is_current {
            lock(&self.texts).add(day, used.iter().copied());
        }
        numbers.extend(used);
        Ok((numbers, above))
    }

    /// Which new texts their accounts have no room for; the others are counted.
    async fn without_room(
        &self,
        month: Month,
        now: UnixMillis,
        texts: &Keyed<'_>,
        missing: Vec<Hashed>,
    ) -> Result<Vec<Hashed>, StoreError> {
        let (day, is_current) = (day_of(now), Month::of(now) == month);
        let mut new: HashMap<(i32, Kind), Vec<Hashed>> = HashMap::new();
        for key in missing {
            match texts.get(&key) {
                Some((kind, _)) if is_of_client(*kind) => new.entry((key.0, *kind)).or_default().push(key),
                Some(_) | None => {}
            }
        }
        let mut above = Vec::new();
        for (of, mut keys) in new {
            let known = lock(&self.texts).count(day, of).filter(|_| is_current);
            let count = match known {
                Some(count) => count,
                None => count(&mut self.db.read().await?, month, of).await?,
            };
            let taken = keys.len().min(MOST_OF_KIND.saturating_sub(count));
            above.extend(keys.drain(taken..));
            if is_current {
                lock(&self.texts).set_count(day, of, count + taken);
            }
        }
        Ok(above)
    }
}

/// A text by its hash: an index holds no long ones.
fn hash((account, kind, text): Text<'_>) -> Hashed {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    (account, kind.number(), short)
}

fn hex(hash: [u8; 16]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn add(
    conn: &mut Conn,
    month: Month,
    day: i32,
    texts: &[(Hashed, Kind, &str)],
) -> Result<(), StoreError> {
    if texts.is_empty() {
        return Ok(());
    }
    match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query(AssertSqlSafe(of_month(PG_ADD, month)))
                .bind(texts.iter().map(|(key, ..)| key.0).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, ..)| key.1).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, ..)| key.2.as_slice()).collect::<Vec<_>>())
                .bind(texts.iter().map(|(_, _, text)| *text).collect::<Vec<_>>())
                .bind(day)
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            let row = |(key, _, text): &(Hashed, Kind, &str)| json!([key.0, key.1, hex(key.2), text]);
            let rows: Vec<Value> = texts.iter().map(row).collect();
            sqlx::query(AssertSqlSafe(of_month(SQLITE_ADD, month)))
                .bind(Json(rows))
                .bind(day)
                .execute(c)
                .await?;
        }
    }
    Ok(())
}

/// Notes that texts are used on a day.
async fn touch(conn: &mut Conn, month: Month, day: i32, ids: &[i32]) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_TOUCH, SQLITE_TOUCH), month));
    match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query(sql).bind(ids).bind(day).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(sql).bind(Json(ids)).bind(day).execute(c).await?;
        }
    }
    Ok(())
}

/// The facets of new texts; another batch may have stored the same text.
async fn add_facets(
    conn: &mut Conn,
    month: Month,
    texts: &[(Hashed, Kind, &str, i32)],
) -> Result<(), StoreError> {
    let of = |(key, kind, text, id): &(Hashed, Kind, &str, i32)| {
        let (account, id) = (key.0, *id);
        kind.facets(text).into_iter().map(move |facet| (account, facet, id))
    };
    let rows: Vec<(i32, String, i32)> = texts.iter().flat_map(of).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_FACETS, SQLITE_FACETS), month));
    match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query(sql)
                .bind(rows.iter().map(|row| row.0).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.1.as_str()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.2).collect::<Vec<_>>())
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(sql).bind(Json(rows)).execute(c).await?;
        }
    }
    Ok(())
}

/// The stored ones of some texts: their numbers and last days.
async fn find(
    conn: &mut Conn,
    month: Month,
    texts: &Keyed<'_>,
) -> Result<HashMap<Hashed, (i32, i32)>, StoreError> {
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_FIND, SQLITE_FIND), month));
    let rows: Vec<Found> = match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query_as(sql)
                .bind(texts.keys().map(|key| key.0).collect::<Vec<_>>())
                .bind(texts.keys().map(|key| key.1).collect::<Vec<_>>())
                .bind(texts.keys().map(|key| key.2.as_slice()).collect::<Vec<_>>())
                .fetch_all(c)
                .await?
        }
        Raw::Sqlite(c) => {
            let keys: Vec<Value> =
                texts.keys().map(|(account, kind, hash)| json!([account, kind, hex(*hash)])).collect();
            sqlx::query_as(sql).bind(Json(keys)).fetch_all(c).await?
        }
    };
    let read = |(account, kind, hash, id, last_day): Found| {
        let hash = hash.try_into().map_err(|_| StoreError::Row(format!("text {id}: hash")))?;
        Ok(((account, kind, hash), (id, last_day)))
    };
    rows.into_iter().map(read).collect()
}

async fn count(conn: &mut Conn, month: Month, (account, kind): (i32, Kind)) -> Result<usize, StoreError> {
    let sql = AssertSqlSafe(of_month(COUNT, month));
    let most = i64::try_from(MOST_OF_KIND).unwrap_or(i64::MAX);
    let count: i64 = on_db!(conn, |c| sqlx::query_scalar(sql)
        .bind(account)
        .bind(kind.number())
        .bind(most)
        .fetch_one(c)
        .await)?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Texts by their numbers.
pub(super) async fn load(
    conn: &mut Conn,
    month: Month,
    ids: &[i32],
) -> Result<HashMap<i32, String>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_LOAD, SQLITE_LOAD), month));
    let rows: Vec<(i32, String)> = match conn.raw() {
        Raw::Pg(c) => sqlx::query_as(sql).bind(ids).fetch_all(c).await?,
        Raw::Sqlite(c) => sqlx::query_as(sql).bind(Json(ids)).fetch_all(c).await?,
    };
    Ok(rows.into_iter().collect())
}
