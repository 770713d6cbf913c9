//! Texts that scans share: each is stored once in a month for each account.

use std::collections::{HashMap, HashSet};

use kernel::store::{Conn, Ctx, Raw, StoreError, dialect};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    months::of_month,
    sql_scans::{SqlScans, lock},
};
use crate::domain::{columns::Kind, month::Month};

// In one order for all, so that two batches with the same texts do not lock each other out.
const PG_ADD: &str = "INSERT INTO scan_texts (id, account, kind, hash, text, facets) \
    SELECT nextval('scan_text_ids'), a, k, h, t, f FROM UNNEST($1::int[], $2::smallint[], $3::text[], $4::text[], \
    $5::jsonb[]) AS n (a, k, h, t, f) ORDER BY a, k, h ON CONFLICT (account, kind, hash) DO NOTHING";
const SQLITE_ADD: &str = "INSERT INTO scan_texts (account, kind, hash, text, facets) \
    SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', value -> '$[4]' \
    FROM json_each($1) WHERE true ON CONFLICT (account, kind, hash) DO NOTHING";
const PG_FIND: &str = "SELECT t.account, t.kind, t.hash, t.id FROM UNNEST($1::int[], $2::smallint[], $3::text[]) \
    AS n (a, k, h) JOIN scan_texts t ON t.account = n.a AND t.kind = n.k AND t.hash = n.h";
const SQLITE_FIND: &str = "SELECT t.account, t.kind, t.hash, t.id FROM json_each($1) n CROSS JOIN scan_texts t \
    ON t.account = n.value ->> '$[0]' AND t.kind = n.value ->> '$[1]' AND t.hash = n.value ->> '$[2]'";
const PG_LOAD: &str = "SELECT id, text FROM scan_texts WHERE id = ANY($1)";
const SQLITE_LOAD: &str = "SELECT id, text FROM scan_texts WHERE id IN (SELECT value FROM json_each($1))";

/// Most texts whose numbers are remembered, some 100 bytes each; beyond it all are forgotten.
const MAX_KNOWN: usize = 200_000;

/// A text of an account.
pub(super) type Text<'a> = (i32, Kind, &'a str);

/// A text as it is looked up.
type Hashed = (i32, i16, String);

/// Numbers of texts by month.
#[derive(Debug, Default)]
pub(super) struct TextIds(HashMap<Month, HashMap<Hashed, i32>>);

impl TextIds {
    fn find(&self, month: Month, text: &Hashed) -> Option<i32> {
        self.0.get(&month)?.get(text).copied()
    }

    fn add(&mut self, month: Month, texts: impl IntoIterator<Item = (Hashed, i32)>) {
        if self.0.values().map(HashMap::len).sum::<usize>() > MAX_KNOWN {
            self.0.clear();
        }
        self.0.entry(month).or_default().extend(texts);
    }

    pub(super) fn forget(&mut self, month: Month) {
        self.0.remove(&month);
    }
}

impl SqlScans {
    /// The numbers of texts in a month; new texts are stored. `is_current` says that the month cannot be dropped, so that
    /// what this process remembers of it holds.
    pub(super) async fn number_texts<'a>(
        &self,
        month: Month,
        texts: HashSet<Text<'a>>,
        is_current: bool,
    ) -> Result<HashMap<Text<'a>, i32>, StoreError> {
        let hashed: HashMap<Hashed, Text<'a>> = texts.into_iter().map(|text| (hash(text), text)).collect();
        let mut numbers = HashMap::with_capacity(hashed.len());
        let mut missing = Vec::new();
        {
            let known = lock(&self.texts);
            for (key, text) in &hashed {
                match known.find(month, key).filter(|_| is_current) {
                    Some(id) => drop(numbers.insert(*text, id)),
                    None => missing.push((key, *text)),
                }
            }
        }
        if missing.is_empty() {
            return Ok(numbers);
        }
        missing.sort_unstable();
        let mut tx = self.db.begin(&Ctx::default()).await?;
        add(&mut tx, month, &missing).await?;
        let found = find(&mut tx, month, &missing).await?;
        tx.commit().await?;
        for (key, id) in &found {
            if let Some(text) = hashed.get(key) {
                numbers.insert(*text, *id);
            }
        }
        lock(&self.texts).add(month, found);
        Ok(numbers)
    }
}

/// A text by its hash: an index holds no long ones.
fn hash((account, kind, text): Text<'_>) -> Hashed {
    (account, kind.number(), blake3::hash(text.as_bytes()).to_hex()[..32].to_owned())
}

async fn add(conn: &mut Conn, month: Month, texts: &[(&Hashed, Text<'_>)]) -> Result<(), StoreError> {
    let facets = |(_, kind, text): &Text<'_>| kind.facets(text);
    match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query(AssertSqlSafe(of_month(PG_ADD, month)))
                .bind(texts.iter().map(|(key, _)| key.0).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, _)| key.1).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, _)| key.2.as_str()).collect::<Vec<_>>())
                .bind(texts.iter().map(|(_, text)| text.2).collect::<Vec<_>>())
                .bind(texts.iter().map(|(_, text)| Json(facets(text))).collect::<Vec<_>>())
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            let row = |(key, text): &(&Hashed, Text<'_>)| json!([key.0, key.1, key.2, text.2, facets(text)]);
            let rows: Vec<Value> = texts.iter().map(row).collect();
            sqlx::query(AssertSqlSafe(of_month(SQLITE_ADD, month))).bind(Json(rows)).execute(c).await?;
        }
    }
    Ok(())
}

async fn find(
    conn: &mut Conn,
    month: Month,
    texts: &[(&Hashed, Text<'_>)],
) -> Result<Vec<(Hashed, i32)>, StoreError> {
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_FIND, SQLITE_FIND), month));
    let rows: Vec<(i32, i16, String, i32)> = match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query_as(sql)
                .bind(texts.iter().map(|(key, _)| key.0).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, _)| key.1).collect::<Vec<_>>())
                .bind(texts.iter().map(|(key, _)| key.2.as_str()).collect::<Vec<_>>())
                .fetch_all(c)
                .await?
        }
        Raw::Sqlite(c) => {
            let keys: Vec<&Hashed> = texts.iter().map(|(key, _)| *key).collect();
            sqlx::query_as(sql).bind(Json(keys)).fetch_all(c).await?
        }
    };
    Ok(rows.into_iter().map(|(account, kind, hash, id)| ((account, kind, hash), id)).collect())
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
