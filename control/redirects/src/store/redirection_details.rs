//! Descriptive fields of links and their search terms: written with each write of a link.
//!
//! A change of these fields also takes a revision and is sent to edges unchanged, so that every write follows one path.

use serde_json::{Value, json};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect::outside_transaction};
use crate::domain::{facets, redirection::Redirection, words};

macro_rules! pg_put {
    ($rest:literal) => {
        concat!(
            "INSERT INTO redirection_details (seq, doc, facets, words) \
             SELECT seq, doc, ARRAY(SELECT jsonb_array_elements_text(facets)), \
             array_to_tsvector(string_to_array(words, ' ')) \
             FROM UNNEST($1::bigint[], $2::jsonb[], $3::jsonb[], $4::text[]) AS t (seq, doc, facets, words) \
             ON CONFLICT (seq) DO ",
            $rest
        )
    };
}

macro_rules! sqlite_put {
    ($rest:literal) => {
        concat!(
            "INSERT INTO redirection_details (seq, doc, facets) \
             SELECT value ->> '$[0]', value -> '$[1]', value -> '$[2]' FROM json_each($1) WHERE true \
             ON CONFLICT (seq) DO ",
            $rest
        )
    };
}

const PG_PUT: &str =
    pg_put!("UPDATE SET doc = excluded.doc, facets = excluded.facets, words = excluded.words");
// Whoever changed the link meanwhile has written it.
const PG_ADD: &str = pg_put!("NOTHING");
const SQLITE_PUT: &str = sqlite_put!("UPDATE SET doc = excluded.doc, facets = excluded.facets");
const SQLITE_ADD: &str = sqlite_put!("NOTHING");
// Before the details: the table of words has no conflicts.
const SQLITE_ADD_WORDS: &str = "INSERT INTO redirection_words (rowid, words) \
    SELECT value ->> '$[0]', value ->> '$[3]' FROM json_each($1) \
    WHERE NOT EXISTS (SELECT 1 FROM redirection_details x WHERE x.seq = value ->> '$[0]')";
const SQLITE_PUT_WORDS: &str = "INSERT OR REPLACE INTO redirection_words (rowid, words) \
    SELECT value ->> '$[0]', value ->> '$[3]' FROM json_each($1)";
const PG_DELETE: &str = "DELETE FROM redirection_details WHERE seq = ANY($1)";
const SQLITE_DELETE: &str = "DELETE FROM redirection_details WHERE seq IN (SELECT value FROM json_each($1))";
const SQLITE_DELETE_WORDS: &str =
    "DELETE FROM redirection_words WHERE rowid IN (SELECT value FROM json_each($1))";

/// Links of one statement: one with the most tags and values has some 60 KiB of facets.
const CHUNK: usize = 50;

/// What becomes of a link that has such a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    New,
    Replace,
}

/// Adds those of links that have none; the others keep theirs.
pub async fn insert(tx: &mut Tx, links: impl Iterator<Item = &Redirection>) -> Result<(), StoreError> {
    put(tx, links, Put::New).await
}

/// Replaces those of links.
pub async fn replace(tx: &mut Tx, links: impl Iterator<Item = &Redirection>) -> Result<(), StoreError> {
    put(tx, links, Put::Replace).await
}

async fn put(tx: &mut Tx, links: impl Iterator<Item = &Redirection>, how: Put) -> Result<(), StoreError> {
    let links: Vec<&Redirection> = links.collect();
    for chunk in links.chunks(CHUNK) {
        put_chunk(tx, chunk, how).await?;
    }
    Ok(())
}

async fn put_chunk(tx: &mut Tx, links: &[&Redirection], how: Put) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(links.len());
    for link in links {
        let described = serde_json::to_value(&link.details.described)
            .map_err(|error| StoreError::Row(format!("doc: {error}")))?;
        let facets = facets::of(&described, words::FACETS);
        let words = words::of(link, &facets);
        rows.push((link.seq, &link.details, facets, words));
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(if how == Put::New { PG_ADD } else { PG_PUT })
                .bind(rows.iter().map(|row| row.0).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| Json(row.1)).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| Json(&row.2)).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.3.as_str()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(seq, details, facets, words)| json!([seq, details, facets, words]))
                .collect();
            let statements = match how {
                Put::New => [SQLITE_ADD_WORDS, SQLITE_ADD],
                Put::Replace => [SQLITE_PUT_WORDS, SQLITE_PUT],
            };
            for sql in statements {
                sqlx::query(sql).bind(Json(&rows)).execute(&mut **c).await?;
            }
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

/// Removes those of links, by their positions.
pub async fn delete(tx: &mut Tx, seqs: &[i64]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_DELETE).bind(seqs).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            for sql in [SQLITE_DELETE, SQLITE_DELETE_WORDS] {
                sqlx::query(sql).bind(Json(seqs)).execute(&mut **c).await?;
            }
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}
