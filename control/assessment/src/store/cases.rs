//! The table of cases. A writer must hold the lock of the Thng: see `item_standings::lock`.

use shared::{
    id::{AccountId, CaseId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, execute, fetch_optional,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{
    case::{Case, CaseDetails, CaseState},
    page::Page,
};

macro_rules! columns {
    () => {
        "SELECT t.seq, t.id, t.project_id, t.thng_id, t.product_id, t.kind, t.status, t.version, t.doc, \
         t.created_at, t.updated_at, \
         (SELECT COUNT(*) FROM finder_reports f WHERE f.case_id = t.id) AS reports FROM cases t"
    };
}

const FIND: &str = concat!(columns!(), " WHERE account_id = $1 AND id = $2");
const INSERT: &str = "INSERT INTO cases (id, account_id, project_id, thng_id, product_id, kind, status, version, doc, \
    created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) \
    ON CONFLICT (thng_id, kind) DO NOTHING";
const UPDATE: &str = "UPDATE cases SET status = $4, version = $5, doc = $6, updated_at = $7 \
    WHERE account_id = $1 AND id = $2 AND version = $3";
const DELETE: &str = "DELETE FROM cases WHERE account_id = $1 AND thng_id = $2";
const LIST: Table = Table {
    select: columns!(),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("kind", Column::Text("t.kind")),
        ("thng", Column::Text("t.thng_id")),
        ("product", Column::Text("t.product_id")),
        ("scopes.projects", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    id: String,
    project_id: Option<String>,
    thng_id: String,
    product_id: Option<String>,
    kind: String,
    status: String,
    version: i64,
    doc: Json<CaseDetails>,
    created_at: i64,
    updated_at: i64,
    reports: i64,
}

impl TryFrom<Row> for Case {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let state = CaseState {
            id: parse("id", &row.id)?,
            status: parse("status", &row.status)?,
            version: row.version,
            details: row.doc.0,
        };
        Ok(Self {
            state,
            seq: row.seq,
            project: row.project_id.as_deref().map(|id| parse("project_id", id)).transpose()?,
            thng: parse("thng_id", &row.thng_id)?,
            product: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
            kind: parse("kind", &row.kind)?,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
            reports: row.reports,
        })
    }
}

/// A case of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: CaseId) -> Result<Option<Case>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(Case::try_from).transpose()
}

/// A page of cases.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Case>, StoreError> {
    listing::page::<Row, Case>(conn, &LIST, selection, Case::position).await
}

/// Adds a case; returns whether the Thng had none of its kind.
pub async fn insert(tx: &mut Tx, account: AccountId, case: &Case) -> Result<bool, StoreError> {
    let state = &case.state;
    let added = execute!(
        &mut **tx,
        INSERT,
        state.id.as_str(),
        account.as_str(),
        case.project.map(|id| id.to_string()),
        case.thng.as_str(),
        case.product.map(|id| id.to_string()),
        case.kind.as_str(),
        state.status.as_str(),
        state.version,
        Json(&state.details),
        case.created_at.0
    )?;
    Ok(added == 1)
}

/// Writes the state of a case that is of this version; returns whether it still was.
pub async fn update(
    tx: &mut Tx,
    account: AccountId,
    state: &CaseState,
    before: i64,
    at: UnixMillis,
) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        UPDATE,
        account.as_str(),
        state.id.as_str(),
        before,
        state.status.as_str(),
        state.version,
        Json(&state.details),
        at.0
    )?;
    Ok(changed == 1)
}

/// Removes the cases of a Thng that is removed.
pub async fn delete_of_thng(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), thng.as_str())?;
    Ok(())
}
