//! The table of actions: inserts and single reads.

use std::{borrow::Borrow, collections::BTreeMap};

use serde_json::{Value, json};
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};
use sqlx::{Postgres, postgres::PgArguments, query::Query, types::Json};

use super::{
    Conn, StoreError, Tx, dialect, events, execute,
    facets::{ACTIONS, RESULTS},
    quotas,
};
use crate::domain::{
    event::{ActionEvent, Event, Quiet},
    facets,
    quota::Quota,
};

/// What the audit trail calls them.
pub const KIND: &str = "action";

/// Most distinct documents for which actions are stored by what they share; with more they differ too much.
const MAX_SHARED: usize = 8;

const DELETE: &str = "DELETE FROM actions WHERE account_id = $1 AND id = $2";

/// An action to be added.
#[derive(Debug, Clone)]
pub struct NewAction {
    /// Its id, derived by the caller, so that a repeat uses the same one.
    pub id: ActionId,
    /// The account.
    pub account: AccountId,
    /// Its type, such as `implicitScans`.
    pub kind: String,
    /// The Thng it is about.
    pub thng: Option<ThngId>,
    /// The product it is about.
    pub product: Option<ProductId>,
    /// When it happened.
    pub timestamp: UnixMillis,
    /// The members that are not queried: `customFields`, `tags`, `context`, `location`, `locationSource`, …
    pub doc: Value,
}

// Scans of edges that are stored here are counted in the same transaction (`statistics::service::roll_ups`); without the
// mark the backfill would count them again.
macro_rules! pg_insert {
    () => {
        "INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, doc, facets, counted) \
         SELECT id, account_id, type, thng_id, product_id, ts, $1, doc, \
         ARRAY(SELECT jsonb_array_elements_text(facets)), CASE WHEN type = 'implicitScans' THEN 1 END FROM UNNEST($2::text[], $3::text[], $4::text[], \
         $5::text[], $6::text[], $7::bigint[], $8::jsonb[], $9::jsonb[]) \
         AS t (id, account_id, type, thng_id, product_id, ts, doc, facets)"
    };
}
const PG_INSERT: &str = pg_insert!();
// The way to the database and back once for both. The count is taken before an event gets its number, and there is
// none before all actions are written: the order that `events::record` asks for.
const PG_INSERT_RECORDED: &str = concat!(
    "WITH made AS (",
    pg_insert!(),
    " RETURNING 1) INSERT INTO events (at, account_id, kind, origin, cause, body) \
     SELECT $1, account_id, kind, $10, $11, body FROM UNNEST($3::text[], $12::text[], $13::text[]) \
     WITH ORDINALITY AS e (account_id, kind, body, n) WHERE (SELECT COUNT(*) FROM made) > 0 ORDER BY n"
);
const SQLITE_INSERT: &str = "INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, \
    doc, facets, counted) SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', \
    value ->> '$[4]', value ->> '$[5]', $1, value -> '$[6]', value -> '$[7]', \
    CASE WHEN value ->> '$[2]' = 'implicitScans' THEN 1 END FROM json_each($2)";

// Documents travel once, however many actions have the same one, and their facets are read once: without
// MATERIALIZED for every action. The join would give the rows in any order.
const PG_ALIKE: &str = "WITH d AS MATERIALIZED (SELECT doc, ARRAY(SELECT jsonb_array_elements_text(facets)) AS facets, \
    place FROM UNNEST($9::jsonb[], $10::jsonb[]) WITH ORDINALITY AS u (doc, facets, place)) \
    INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, doc, facets) \
    SELECT t.id, $1, $2, t.thng_id, t.product_id, $3, $4, d.doc, d.facets FROM \
    UNNEST($5::text[], $6::text[], $7::text[], $8::bigint[]) AS t (id, thng_id, product_id, place) \
    JOIN d ON d.place = t.place + 1 ORDER BY t.id";
// One document: a list of them would be read again for each row.
const SQLITE_ALIKE: &str = "INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, \
    doc, facets) SELECT value ->> '$[0]', $1, $2, value ->> '$[1]', value ->> '$[2]', $3, $4, $6, $7 \
    FROM json_each($5)";

/// Actions of one account that differ in few members and are created at one time.
#[derive(Debug, Clone)]
pub struct AlikeActions {
    /// The account.
    pub account: AccountId,
    /// Their type.
    pub kind: String,
    /// When they happened.
    pub timestamp: UnixMillis,
    /// The documents that they have: see [`NewAction::doc`].
    pub docs: Vec<Value>,
    /// The actions, in ascending order of their ids.
    pub rows: Vec<AlikeAction>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub struct AlikeAction {
    /// Its id.
    pub id: ActionId,
    /// The Thng it is about.
    pub thng: ThngId,
    /// The product it is about.
    pub product: Option<ProductId>,
    /// Which of the documents is its own.
    pub doc: usize,
}

/// Adds actions that are alike, and were counted for the quotas of their account, and records them in one row of the log.
///
/// # Errors
/// [`StoreError::Unique`] when an id exists; then none is added.
pub async fn insert_alike(
    tx: &mut Tx,
    created_at: UnixMillis,
    actions: &AlikeActions,
    quiet: Quiet,
) -> Result<(), StoreError> {
    if actions.rows.is_empty() {
        return Ok(());
    }
    if actions.docs.len() <= MAX_SHARED {
        insert_shared(tx, created_at, actions).await?;
    } else {
        insert_apart(tx, created_at, &apart(actions)).await?;
    }
    let ids = actions.rows.iter().map(|row| row.id).collect();
    let event = Event::Actions { kind: actions.kind.clone(), ids };
    events::record_quietly(tx, created_at, quiet, &[(actions.account, event)]).await
}

/// The same actions, each with a document of its own.
fn apart(alike: &AlikeActions) -> Vec<NewAction> {
    let action = |row: &AlikeAction| NewAction {
        id: row.id,
        account: alike.account,
        kind: alike.kind.clone(),
        thng: Some(row.thng),
        product: row.product,
        timestamp: alike.timestamp,
        doc: alike.docs.get(row.doc).cloned().unwrap_or_default(),
    };
    alike.rows.iter().map(action).collect()
}

async fn insert_shared(
    tx: &mut Tx,
    created_at: UnixMillis,
    actions: &AlikeActions,
) -> Result<(), StoreError> {
    let AlikeActions { account, kind, timestamp, docs, rows } = actions;
    let facets: Vec<Vec<String>> = docs.iter().map(|doc| facets::of(doc, ACTIONS)).collect();
    match &mut **tx {
        Conn::PgTx(c) => {
            let places = rows.iter().map(|row| i64::try_from(row.doc).unwrap_or(i64::MAX));
            sqlx::query(PG_ALIKE)
                .bind(account.as_str())
                .bind(kind)
                .bind(timestamp.0)
                .bind(created_at.0)
                .bind(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.thng.as_str()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.product.map(|id| id.to_string())).collect::<Vec<_>>())
                .bind(places.collect::<Vec<_>>())
                .bind(docs.iter().map(Json).collect::<Vec<_>>())
                .bind(facets.iter().map(Json).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            for (place, (doc, facets)) in docs.iter().zip(&facets).enumerate() {
                let own = rows.iter().filter(|row| row.doc == place);
                let own: Vec<Value> = own.map(|row| json!([row.id, row.thng, row.product])).collect();
                sqlx::query(SQLITE_ALIKE)
                    .bind(account.as_str())
                    .bind(kind)
                    .bind(timestamp.0)
                    .bind(created_at.0)
                    .bind(Json(own))
                    .bind(Json(doc))
                    .bind(Json(facets))
                    .execute(&mut **c)
                    .await?;
            }
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// Adds actions, all created at one moment, and records them for subscribers.
///
/// # Errors
/// [`StoreError::Unique`] when an id exists, [`StoreError::Exceeded`] when they are more than an account may write today;
/// then none is added.
pub async fn insert(tx: &mut Tx, created_at: UnixMillis, actions: &[NewAction]) -> Result<(), StoreError> {
    insert_counted(tx, created_at, actions).await?;
    charge(tx, created_at, actions).await
}

/// Counts actions for the quotas of their accounts.
async fn charge<'a>(
    tx: &mut Tx,
    now: UnixMillis,
    actions: impl IntoIterator<Item = &'a NewAction>,
) -> Result<(), StoreError> {
    // In one order, so that two transactions never wait for each other.
    let mut counts: BTreeMap<(AccountId, Quota), u64> = BTreeMap::new();
    for action in actions {
        *counts.entry((action.account, Quota::of_action(&action.kind))).or_default() += 1;
    }
    for ((account, quota), count) in counts {
        quotas::charge(tx, account, quota, count, now).await?;
    }
    Ok(())
}

/// Like [`insert`], of actions that were counted for the quotas of their accounts.
///
/// # Errors
/// [`StoreError::Unique`] when an id exists; then none is added.
pub async fn insert_counted(
    tx: &mut Tx,
    created_at: UnixMillis,
    actions: &[NewAction],
) -> Result<(), StoreError> {
    insert_rows(tx, created_at, &rows(actions)).await?;
    for action in actions {
        tx.note(action.account, (KIND, &action.id.to_string()), || (None, Some(state_of(action))));
    }
    Ok(())
}

/// Records actions that are stored elsewhere for subscribers.
pub async fn record<A: Borrow<NewAction>>(
    tx: &mut Tx,
    created_at: UnixMillis,
    actions: &[A],
) -> Result<(), StoreError> {
    let event_of = |action: &NewAction| (action.account, event(action));
    let happened: Vec<(AccountId, Event)> = actions.iter().map(|action| event_of(action.borrow())).collect();
    events::record(tx, created_at, &happened).await
}

/// What the audit trail shows of an action: what it is about. It says nothing of the person behind it.
#[must_use]
pub fn state_of(action: &NewAction) -> Value {
    json!({"type": action.kind, "thng": action.thng, "product": action.product})
}

/// Adds results of assessments as [`insert`] does, each in the short form beside it, if it has one. They are found by
/// fewer members than other actions.
///
/// # Errors
/// As [`insert`].
pub async fn insert_results(
    tx: &mut Tx,
    created_at: UnixMillis,
    results: &[(NewAction, Option<Value>)],
) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(results.len());
    for (action, short) in results {
        let facets = facets::of(&action.doc, RESULTS);
        rows.push(Row { action, doc: short.as_ref().unwrap_or(&action.doc), facets });
    }
    insert_rows(tx, created_at, &rows).await?;
    charge(tx, created_at, results.iter().map(|(action, _)| action)).await
}

/// An action with its stored document and its facets.
struct Row<'a> {
    action: &'a NewAction,
    doc: &'a Value,
    facets: Vec<String>,
}

fn rows(actions: &[NewAction]) -> Vec<Row<'_>> {
    actions
        .iter()
        .map(|action| Row { action, doc: &action.doc, facets: facets::of(&action.doc, ACTIONS) })
        .collect()
}

async fn insert_rows(tx: &mut Tx, created_at: UnixMillis, rows: &[Row<'_>]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let happened: Vec<(AccountId, Event)> =
        rows.iter().map(|row| (row.action.account, event(row.action))).collect();
    let (origin, cause) = (tx.ctx().origin().map(str::to_owned), tx.ctx().stored_cause());
    let Conn::PgTx(c) = &mut **tx else {
        write_rows(tx, created_at, rows).await?;
        return events::record(tx, created_at, &happened).await;
    };
    bind(sqlx::query(PG_INSERT_RECORDED), created_at, rows)
        .bind(origin)
        .bind(cause)
        .bind(happened.iter().map(|(_, event)| event.kind()).collect::<Vec<_>>())
        .bind(happened.iter().map(|(_, event)| event.to_body()).collect::<Vec<_>>())
        .execute(&mut **c)
        .await?;
    Ok(())
}

/// Adds actions, each with a document of its own, and records nothing.
async fn insert_apart(tx: &mut Tx, created_at: UnixMillis, actions: &[NewAction]) -> Result<(), StoreError> {
    write_rows(tx, created_at, &rows(actions)).await
}

async fn write_rows(tx: &mut Tx, created_at: UnixMillis, rows: &[Row<'_>]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            bind(sqlx::query(PG_INSERT), created_at, rows).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            let row = |Row { action: a, doc, facets }: &Row<'_>| {
                json!([a.id, a.account, a.kind, a.thng, a.product, a.timestamp, doc, facets])
            };
            let rows: Vec<Value> = rows.iter().map(row).collect();
            sqlx::query(SQLITE_INSERT).bind(created_at.0).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// Binds what `pg_insert!` asks for.
fn bind<'q>(query: PgQuery<'q>, created_at: UnixMillis, rows: &'q [Row<'q>]) -> PgQuery<'q> {
    let actions = || rows.iter().map(|row| row.action);
    query
        .bind(created_at.0)
        .bind(actions().map(|a| a.id.to_string()).collect::<Vec<_>>())
        .bind(actions().map(|a| a.account.to_string()).collect::<Vec<_>>())
        .bind(actions().map(|a| a.kind.clone()).collect::<Vec<_>>())
        .bind(actions().map(|a| a.thng.map(|id| id.to_string())).collect::<Vec<_>>())
        .bind(actions().map(|a| a.product.map(|id| id.to_string())).collect::<Vec<_>>())
        .bind(actions().map(|a| a.timestamp.0).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| Json(row.doc)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| Json(&row.facets)).collect::<Vec<_>>())
}

fn event(action: &NewAction) -> Event {
    let id = |text: &str| action.doc.get(text).and_then(Value::as_str).map(str::to_owned);
    Event::Action(ActionEvent {
        id: action.id,
        kind: action.kind.clone(),
        thng: action.thng.map(|id| id.to_string()),
        product: action.product.map(|id| id.to_string()),
        collection: id("collection"),
        scopes: action.doc.get("scopes").and_then(|scopes| serde_json::from_value(scopes.clone()).ok()),
    })
}

/// Removes an action; returns whether it was there.
pub async fn delete(tx: &mut Tx, account: AccountId, id: ActionId) -> Result<bool, StoreError> {
    let gone = execute!(&mut **tx, DELETE, account.as_str(), id.as_str())?;
    Ok(gone == 1)
}
