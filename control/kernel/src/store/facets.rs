//! The column `facets`: its content for each table, and the backfill of rows that are older than the column.

use crate::store::Ctx;
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;

use super::{Db, StoreError, Tx, dialect, fetch_all, texts::Texts};
use crate::domain::facets;

/// Facets of products and Thngs, whose identifiers have a table of their own.
pub const RESOURCES: &[&str] = &["tags", "customFields", "scopes"];
/// Facets of resources whose identifiers stand in their document alone.
#[allow(dead_code, reason = "for tables that do not use the table of identifiers")]
pub const PLAIN: &[&str] = &["tags", "customFields", "identifiers", "scopes"];
/// Facets of actions.
pub const ACTIONS: &[&str] = &[
    "tags",
    "customFields",
    "identifiers",
    "scopes",
    "user",
    "collection",
    "context.city",
    "context.countryCode",
];

/// Facets of results of assessments; the rest of them is found by the tags, or by the scan that was assessed.
pub const RESULTS: &[&str] = &[
    "tags",
    "identifiers",
    "scopes",
    "user",
    "customFields.authenticationStatus",
    "customFields.counterfeitStatus",
    "customFields.grayMarketStatus",
    "customFields.childActions.unauthorizedChecks.match",
    "customFields.childActions.diversionChecks.match",
    "customFields.childActions.duplicateChecks.match",
    "customFields.requestSource",
    "customFields.requestUser",
    "customFields.rulesVersion",
    "customFields.scanValue",
    "customFields.triggerAction",
];

/// The facets of a document that is stored in `doc`.
pub fn of(doc: &impl Serialize, paths: &[&str]) -> Result<Texts, StoreError> {
    let doc = serde_json::to_value(doc).map_err(|error| StoreError::Row(format!("doc: {error}")))?;
    Ok(Texts(facets::of(&doc, paths)))
}

/// The statements that fill the column of one table.
struct Fill {
    paths: &'static [&'static str],
    select: &'static str,
    pg: &'static str,
    sqlite: &'static str,
}

macro_rules! fill {
    ($table:literal, $paths:expr) => {
        Fill {
            paths: $paths,
            select: concat!("SELECT seq, doc FROM ", $table, " WHERE facets IS NULL ORDER BY seq LIMIT 1000"),
            pg: concat!(
                "UPDATE ",
                $table,
                " SET facets = ARRAY(SELECT jsonb_array_elements_text(n.facets)) FROM \
                 UNNEST($1::bigint[], $2::jsonb[]) AS n (id, facets) WHERE seq = n.id AND ",
                $table,
                ".facets IS NULL"
            ),
            sqlite: concat!(
                "UPDATE ",
                $table,
                " SET facets = n.facets FROM (SELECT value ->> '$[0]' AS id, value -> '$[1]' AS facets \
                 FROM json_each($1) LIMIT -1) AS n WHERE seq = n.id AND ",
                $table,
                ".facets IS NULL"
            ),
        }
    };
}

const PRODUCTS_FILL: Fill = fill!("products", RESOURCES);
const THNGS_FILL: Fill = fill!("thngs", RESOURCES);
const ACTIONS_FILL: Fill = fill!("actions", ACTIONS);

/// Fills the column for rows that have none; a thousand at a time, so that nothing waits for long.
pub async fn fill_missing(db: &Db) -> Result<(), StoreError> {
    for fill in [&PRODUCTS_FILL, &THNGS_FILL, &ACTIONS_FILL] {
        loop {
            let mut tx = db.begin(&Ctx::default()).await?;
            if fill_some(&mut tx, fill).await? == 0 {
                break;
            }
            tx.commit().await?;
        }
    }
    Ok(())
}

async fn fill_some(tx: &mut Tx, fill: &Fill) -> Result<usize, StoreError> {
    let rows: Vec<(i64, Json<Value>)> = fetch_all!(&mut **tx, fill.select)?;
    let filled: Vec<(i64, Vec<String>)> =
        rows.into_iter().map(|(seq, doc)| (seq, facets::of(&doc.0, fill.paths))).collect();
    if !filled.is_empty() {
        dialect::fill_facets(tx, fill.pg, fill.sqlite, &filled).await?;
    }
    Ok(filled.len())
}
