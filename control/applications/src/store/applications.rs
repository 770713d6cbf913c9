//! The table of applications of projects.

use shared::id::{AccountId, ApplicationId, ProjectId};

use super::{
    Conn, StoreError, Tx, dialect,
    documents::{self, Base, Cell, Document, Statements, statements},
    fetch_all, fetch_optional,
    listing::{Column, Table},
    parse,
};
use crate::domain::{
    application::{Application, Generations},
    common::Stamp,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.app_generation, t.trusted_generation, t.name, t.doc, t.created_at, \
         t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "applications",
    columns!(),
    ", project_id, app_generation, trusted_generation, user_role",
    ", $6, $7, $8, $9",
    ", project_id = $6, app_generation = $7, trusted_generation = $8, user_role = $9",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM applications t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("name", Column::Text("t.name")),
        ("scopes.projects", Column::Text("t.project_id")),
        ("project", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
const IDS: &str = "SELECT id FROM applications WHERE account_id = $1 AND project_id = $2 ORDER BY seq";

// Creates in an application wait for a transaction that deletes it, but not for each other.
const PG_HOLD: &str = "SELECT id FROM applications WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM applications WHERE account_id = $1 AND id = $2";

/// The columns that only applications have.
#[derive(sqlx::FromRow)]
pub struct Home {
    project_id: String,
    app_generation: i64,
    trusted_generation: i64,
}

impl Document for Application {
    type Own = Home;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: ApplicationId, stamp: Stamp, row: Base<Self>, own: Home) -> Result<Self, StoreError> {
        let project = parse("project_id", &own.project_id)?;
        let number =
            |number: i64| u32::try_from(number).map_err(|_| StoreError::Row("generation".to_owned()));
        let generations =
            Generations { public: number(own.app_generation)?, secret: number(own.trusted_generation)? };
        Ok(Self { id, project, stamp, name: row.name, generations, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        let number = |number| Cell::Whole(Some(i64::from(number)));
        let Generations { public, secret } = self.generations;
        // Read by the look-up of keys.
        let role = Cell::Text(self.details.user_role.clone().filter(|id| !id.is_empty()));
        vec![Cell::Text(Some(self.project.to_string())), number(public), number(secret), role]
    }
}

/// An application of a project.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
) -> Result<Option<Application>, StoreError> {
    let found: Option<Application> = documents::find(conn, account, id).await?;
    Ok(found.filter(|found| found.project == project))
}

/// [`find`], with a lock until the transaction ends.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
) -> Result<Option<Application>, StoreError> {
    let found: Option<Application> = documents::find_locked(tx, account, id).await?;
    Ok(found.filter(|found| found.project == project))
}

/// Whether an application exists; it cannot be deleted until the transaction ends.
pub async fn hold(tx: &mut Tx, account: AccountId, id: ApplicationId) -> Result<bool, StoreError> {
    let sql = dialect::pick(tx, PG_HOLD, HOLD);
    let row: Option<(String,)> = fetch_optional!(&mut **tx, sql, account.as_str(), id.as_str())?;
    Ok(row.is_some())
}

/// The ids of all applications of a project.
pub async fn list_ids(
    conn: &mut Conn,
    account: AccountId,
    project: ProjectId,
) -> Result<Vec<ApplicationId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, IDS, account.as_str(), project.as_str())?;
    rows.iter().map(|(id,)| parse("id", id)).collect()
}
