//! The table of operators.

use serde_json::{Value, json};
use shared::{
    id::{AccountId, OperatorId, ProjectId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, audit, dialect, execute, fetch_all, fetch_one, fetch_optional, parse};
use crate::domain::operator::{Invitation, Operator, OperatorDetails, conditions};

/// What the audit trail calls them.
const KIND: &str = "operator";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, account_id, kind, email, first_name, last_name, roles, projects, invitation, invited_until, \
             doc, created_at, updated_at FROM operators WHERE ",
            $rest
        )
    };
}

const FIND: &str = select!("account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str = select!("account_id = $1 AND id = $2 FOR UPDATE");
// Bounded: the service adds no more.
const LIST: &str = select!("account_id = $1 ORDER BY created_at, seq LIMIT 1000");
const FIND_INVITED: &str = select!("invitation = $1");
const PG_FIND_INVITED_LOCKED: &str = select!("invitation = $1 FOR UPDATE");
const INSERT: &str = "INSERT INTO operators (id, account_id, kind, email, first_name, last_name, roles, projects, \
    invitation, invited_until, doc, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
    $12)";
const UPDATE: &str = "UPDATE operators SET first_name = $3, last_name = $4, roles = $5, projects = $6, \
    invitation = $7, invited_until = $8, doc = $9, updated_at = $10 WHERE account_id = $1 AND id = $2";
const DELETE: &str = "DELETE FROM operators WHERE account_id = $1 AND id = $2";
const HAVE_ROLE: &str =
    "SELECT COUNT(*) FROM operators WHERE account_id = $1 AND ',' || roles || ',' LIKE $2";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    account_id: String,
    kind: String,
    email: String,
    first_name: String,
    last_name: String,
    roles: String,
    projects: Option<String>,
    invitation: Option<Vec<u8>>,
    invited_until: Option<i64>,
    doc: Json<OperatorDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Operator {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let projects = |ids: String| -> Result<Vec<ProjectId>, StoreError> {
            ids.split(',').map(|id| parse("projects", id)).collect()
        };
        let invitation = match row.invitation.zip(row.invited_until) {
            Some((code, until)) => {
                let code =
                    code.try_into().map_err(|_| StoreError::Row("invitation: another length".to_owned()))?;
                Some(Invitation { code, until: UnixMillis(until) })
            }
            None => None,
        };
        Ok(Self {
            id: parse("id", &row.id)?,
            account: parse("account_id", &row.account_id)?,
            kind: parse("kind", &row.kind)?,
            email: row.email,
            first_name: row.first_name,
            last_name: row.last_name,
            roles: row.roles.split(',').map(str::to_owned).collect(),
            projects: row.projects.map(projects).transpose()?,
            invitation,
            details: row.doc.0,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
        })
    }
}

/// What the audit trail shows: of somebody's own members the names alone are no help, so all are there but the code.
fn state(operator: &Operator) -> Value {
    let mut state = audit::state_of(&operator.details);
    if let Value::Object(members) = &mut state {
        members.extend([
            ("kind".to_owned(), json!(operator.kind.as_str())),
            ("email".to_owned(), json!(operator.email)),
            ("firstName".to_owned(), json!(operator.first_name)),
            ("lastName".to_owned(), json!(operator.last_name)),
            ("policies".to_owned(), json!(operator.roles)),
            ("conditions".to_owned(), json!(conditions(operator.projects.as_deref()))),
            ("invitedUntil".to_owned(), json!(operator.invitation.map(|invitation| invitation.until.0))),
        ]);
    }
    state
}

fn projects(operator: &Operator) -> Option<String> {
    let ids = operator.projects.as_ref()?.iter().map(ProjectId::as_str);
    Some(ids.collect::<Vec<_>>().join(","))
}

/// An operator of an account.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    fetch(conn, FIND, account, id).await
}

/// An operator of an account, locked until the transaction ends.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_LOCKED, FIND);
    let found = fetch(tx, sql, account, id).await?;
    if let Some(found) = &found {
        tx.remember(KIND, id.as_str(), || state(found));
    }
    Ok(found)
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, sql, account.as_str(), id.as_str())?;
    row.map(Operator::try_from).transpose()
}

/// Who was invited with the code that has this SHA-256; of whatever account.
pub async fn find_invited(conn: &mut Conn, code: &[u8; 32]) -> Result<Option<Operator>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND_INVITED, &code[..])?;
    row.map(Operator::try_from).transpose()
}

/// [`find_invited`], with a lock until the transaction ends.
pub async fn find_invited_locked(tx: &mut Tx, code: &[u8; 32]) -> Result<Option<Operator>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_INVITED_LOCKED, FIND_INVITED);
    let row: Option<Row> = fetch_optional!(&mut **tx, sql, &code[..])?;
    let found = row.map(Operator::try_from).transpose()?;
    if let Some(found) = &found {
        tx.remember(KIND, found.id.as_str(), || state(found));
    }
    Ok(found)
}

/// The operators of an account, oldest first; at most 1,000.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<Operator>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST, account.as_str())?;
    rows.into_iter().map(Operator::try_from).collect()
}

/// How many operators have a role.
pub async fn count_with_role(conn: &mut Conn, account: AccountId, role: &str) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, HAVE_ROLE, account.as_str(), format!("%,{role},%"))?;
    Ok(count)
}

/// Adds an operator.
pub async fn insert(tx: &mut Tx, new: &Operator) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        new.id.as_str(),
        new.account.as_str(),
        new.kind.as_str(),
        &new.email,
        &new.first_name,
        &new.last_name,
        new.roles.join(","),
        projects(new),
        new.invitation.map(|invitation| invitation.code.to_vec()),
        new.invitation.map(|invitation| invitation.until.0),
        Json(&new.details),
        new.created_at.0
    )?;
    tx.note(new.account, (KIND, new.id.as_str()), || (None, Some(state(new))));
    Ok(())
}

/// Writes an operator that was found with a lock, changed.
pub async fn update(tx: &mut Tx, operator: &Operator) -> Result<(), StoreError> {
    let of = (KIND, operator.id.as_str());
    let before = tx.remembered(KIND, operator.id.as_str());
    tx.note(operator.account, of, || (before, Some(state(operator))));
    execute!(
        &mut **tx,
        UPDATE,
        operator.account.as_str(),
        operator.id.as_str(),
        &operator.first_name,
        &operator.last_name,
        operator.roles.join(","),
        projects(operator),
        operator.invitation.map(|invitation| invitation.code.to_vec()),
        operator.invitation.map(|invitation| invitation.until.0),
        Json(&operator.details),
        operator.updated_at.0
    )?;
    Ok(())
}

/// Removes an operator that was found with a lock; its keys must have been revoked.
pub async fn delete(tx: &mut Tx, operator: &Operator) -> Result<(), StoreError> {
    let before = tx.remembered(KIND, operator.id.as_str());
    tx.note(operator.account, (KIND, operator.id.as_str()), || (before, None));
    execute!(&mut **tx, DELETE, operator.account.as_str(), operator.id.as_str())?;
    Ok(())
}
