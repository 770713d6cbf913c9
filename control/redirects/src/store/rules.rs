//! Redirect rules: one list for the account, and one for each application that has some.

use std::{collections::BTreeMap, sync::Arc};

use shared::{
    id::{AccountId, ApplicationId},
    rules::{AccountRules, Owner, Rule, RuleList},
    time::UnixMillis,
    wire::stream::Rev,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::{signed, unsigned},
    execute, fetch_all, fetch_optional, parse,
};
use crate::domain::rules::StoredRules;

const FIND: &str = "SELECT rules, created_at, updated_at FROM redirect_rules \
    WHERE account_id = $1 AND application_id = $2";
const OF_ACCOUNT: &str = "SELECT application_id, project_id, rules FROM redirect_rules WHERE account_id = $1 \
    ORDER BY application_id";
const WITH_HEAD: &str = "SELECT h.head, r.account_id, r.application_id, r.project_id, r.rules FROM log_head h \
    LEFT JOIN redirect_rules r ON h.id = 1 WHERE h.id = 1 ORDER BY r.account_id, r.application_id";
const PUT: &str = "INSERT INTO redirect_rules (account_id, application_id, project_id, rules, created_at, \
    updated_at, rev) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account_id, application_id) DO UPDATE \
    SET rules = excluded.rules, updated_at = excluded.updated_at, rev = excluded.rev";
const DELETE: &str = "DELETE FROM redirect_rules WHERE account_id = $1 AND application_id = $2";

/// Value of the column for the account's own list.
const OWN: &str = "";

type ListRow = (String, String, Json<Vec<Rule>>);
type HeadRow = (i64, Option<String>, Option<String>, Option<String>, Option<Json<Vec<Rule>>>);

fn application_column(owner: Option<&Owner>) -> &str {
    owner.map_or(OWN, |owner| owner.application.as_str())
}

fn list((application, project, Json(rules)): ListRow) -> Result<RuleList, StoreError> {
    let owner = match application.as_str() {
        OWN => None,
        id => {
            Some(Owner { application: parse("application_id", id)?, project: parse("project_id", &project)? })
        }
    };
    Ok(RuleList { owner, rules })
}

/// The list of the account, or of one application.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    application: Option<&ApplicationId>,
) -> Result<Option<StoredRules>, StoreError> {
    let application = application.map_or(OWN, |id| id.as_str());
    let row: Option<(Json<Vec<Rule>>, i64, i64)> =
        fetch_optional!(conn, FIND, account.as_str(), application)?;
    Ok(row.map(|(Json(rules), created_at, updated_at)| StoredRules {
        rules,
        created_at: UnixMillis(created_at),
        updated_at: UnixMillis(updated_at),
    }))
}

/// Every list of an account, in the order in which they are tried.
pub async fn load(conn: &mut Conn, account: AccountId) -> Result<AccountRules, StoreError> {
    let rows: Vec<ListRow> = fetch_all!(conn, OF_ACCOUNT, account.as_str())?;
    Ok(AccountRules::new(account, rows.into_iter().map(list).collect::<Result<_, _>>()?))
}

/// The head of the log, and the rules of every account exactly as of it: one statement, one moment.
///
/// # Errors
/// The log was never set up.
pub async fn list_with_head(conn: &mut Conn) -> Result<(Rev, Vec<Arc<AccountRules>>), StoreError> {
    let rows: Vec<HeadRow> = fetch_all!(conn, WITH_HEAD)?;
    let (head, ..) = rows.first().ok_or_else(|| StoreError::Row("log_head is empty".to_owned()))?;
    let (head, mut accounts) = (unsigned(*head), BTreeMap::<AccountId, Vec<RuleList>>::new());
    for (_, account, application, project, rules) in rows {
        if let (Some(account), Some(application), Some(project), Some(rules)) =
            (account, application, project, rules)
        {
            let lists = accounts.entry(parse("account_id", &account)?).or_default();
            lists.push(list((application, project, rules))?);
        }
    }
    let sets = accounts.into_iter().map(|(account, lists)| AccountRules::new(account, lists));
    Ok((head, sets.filter(|set| !set.lists.is_empty()).map(Arc::new).collect()))
}

/// Replaces the list of the account, or of one application.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    owner: Option<&Owner>,
    stored: &StoredRules,
    rev: Rev,
) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        PUT,
        account.as_str(),
        application_column(owner),
        owner.map_or(OWN, |owner| owner.project.as_str()),
        Json(&stored.rules),
        stored.created_at.0,
        stored.updated_at.0,
        signed(rev)
    )?;
    Ok(())
}

/// Removes the list of the account, or of one application; returns whether there was one.
pub async fn delete(
    tx: &mut Tx,
    account: AccountId,
    application: Option<&ApplicationId>,
) -> Result<bool, StoreError> {
    let application = application.map_or(OWN, |id| id.as_str());
    let gone = execute!(&mut **tx, DELETE, account.as_str(), application)?;
    Ok(gone > 0)
}
