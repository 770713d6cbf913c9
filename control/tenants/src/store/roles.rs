//! The table of roles that accounts made.

use shared::id::{AccountId, ApplicationId, RoleId};

use super::{
    Conn, StoreError,
    documents::{Base, Cell, Document, Statements, statements},
    fetch_one, fetch_optional,
    listing::{Column, Table},
    parse,
};
use crate::domain::{common::Stamp, custom_role::Role};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.kind, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "roles",
    columns!(),
    ", kind, permissions",
    ", $6, $7",
    ", kind = $6, permissions = $7",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM roles t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

const HAVE_ROLE: &str = "SELECT COUNT(*) FROM applications WHERE account_id = $1 AND user_role = $2";
const OF_APPLICATION: &str =
    "SELECT user_role FROM applications WHERE account_id = $1 AND id = $2 AND user_role IS NOT NULL";

/// The column that only roles have; the permissions are written for the look-up of keys alone.
#[derive(sqlx::FromRow)]
pub struct Own {
    kind: String,
}

impl Document for Role {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: RoleId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, kind: parse("kind", &own.kind)?, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        let permissions = self.permissions().to_string();
        vec![Cell::Text(Some(self.kind.as_str().to_owned())), Cell::Text(Some(permissions))]
    }
}

/// How many applications give their users a role.
pub async fn count_applications(conn: &mut Conn, account: AccountId, role: &str) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, HAVE_ROLE, account.as_str(), role)?;
    Ok(count)
}

/// The id of the role that an application gives its users.
pub async fn find_of_application(
    conn: &mut Conn,
    account: AccountId,
    id: ApplicationId,
) -> Result<Option<String>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, OF_APPLICATION, account.as_str(), id.as_str())?;
    Ok(row.map(|(role,)| role))
}
