//! Contexts of assessment results: data that results of one account share, stored once, and rejoined on read.

use std::collections::{BTreeMap, BTreeSet};

use scan_store::ScanStore;
use serde_json::{Map, Value};
use shared::id::{AccountId, ActionId};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect::fetch_in_list, execute};
use crate::domain::{
    action::Action,
    action_names::RESULTS,
    assessment::packed::{self, JudgedBy},
};

const INSERT: &str = "INSERT INTO assessment_contexts (account_id, id, doc) VALUES ($1, $2, $3) \
    ON CONFLICT (account_id, id) DO NOTHING";
const PG_LIST: &str = "SELECT id, doc FROM assessment_contexts WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_LIST: &str = "SELECT id, doc FROM assessment_contexts WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";
// One index look-up per id, whatever the statistics of the table say.
const PG_SCANS: &str = "SELECT t.id, t.doc FROM UNNEST($2::text[]) AS k (id) \
    CROSS JOIN LATERAL (SELECT id, account_id, doc FROM actions WHERE id = k.id LIMIT 1) t WHERE t.account_id = $1";
const SQLITE_SCANS: &str = "SELECT id, doc FROM actions WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";

/// Stores the context of results; rows never change, so an existing one is kept.
pub async fn keep(tx: &mut Tx, account: AccountId, judged_by: &JudgedBy) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, account.as_str(), &judged_by.id, Json(&judged_by.members))?;
    Ok(())
}

/// Completes those of some actions that are packed results; at most two statements and a look into the scans for all of them.
///
/// # Errors
/// The database failed, or has not what a result refers to.
pub async fn complete(
    store: &dyn ScanStore,
    conn: &mut Conn,
    account: AccountId,
    actions: &mut [Action],
) -> Result<(), StoreError> {
    let is_result = |action: &&Action| action.kind == RESULTS;
    let (mut contexts, mut scans) = (BTreeSet::new(), BTreeSet::new());
    for references in
        actions.iter().filter(is_result).filter_map(|action| packed::references(&action.members))
    {
        contexts.insert(references.judged_by);
        scans.extend(references.scan);
    }
    if contexts.is_empty() {
        return Ok(());
    }
    let contexts = list(conn, account, [PG_LIST, SQLITE_LIST], contexts).await?;
    let scans = list_scans(store, conn, account, scans).await?;
    for action in actions.iter_mut().filter(|action| action.kind == RESULTS) {
        let Some(references) = packed::references(&action.members) else { continue };
        let Some(judged_by) = contexts.get(&references.judged_by) else {
            let context = &references.judged_by;
            return Err(StoreError::Row(format!("context {context} of the result {} is missing", action.id)));
        };
        let scan = references.scan.and_then(|id| scans.get(id.as_str()));
        packed::unpack(&mut action.members, judged_by, scan);
    }
    Ok(())
}

/// The documents of the scans that were assessed, wherever they are stored.
async fn list_scans(
    store: &dyn ScanStore,
    conn: &mut Conn,
    account: AccountId,
    ids: BTreeSet<ActionId>,
) -> Result<BTreeMap<String, Map<String, Value>>, StoreError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let texts = ids.iter().map(ToString::to_string).collect();
    let mut found = list(conn, account, [PG_SCANS, SQLITE_SCANS], texts).await?;
    let missing: Vec<ActionId> = ids.into_iter().filter(|id| !found.contains_key(id.as_str())).collect();
    let scans = store.find_many(account, &missing).await?;
    found.extend(scans.into_iter().map(|scan| (scan.id.to_string(), scan.members)));
    Ok(found)
}

type Row = (String, Json<Map<String, Value>>);

async fn list(
    conn: &mut Conn,
    account: AccountId,
    [pg, sqlite]: [&'static str; 2],
    ids: BTreeSet<String>,
) -> Result<BTreeMap<String, Map<String, Value>>, StoreError> {
    let ids: Vec<String> = ids.into_iter().collect();
    let rows = fetch_in_list!(conn, Row, pg, sqlite, [account.as_str()], ids)?;
    Ok(rows.into_iter().map(|(id, Json(doc))| (id, doc)).collect())
}
