//! Suspends accounts and puts them into service again.

use events::service::webhooks;
use serde_json::json;
use shared::{id::AccountId, withheld::Withheld};
use tracing::instrument;

use super::{By, note, publish, redirections::Written};
use crate::{
    domain::{
        hosted_account::{HostedAccount, Suspension},
        page::{Page, PageRequest, Position},
    },
    error::ServiceError,
    store::{Conn, Db, hosted_accounts as store, log, withholdings},
};

/// What the audit trail calls it.
const KIND: &str = "suspension";

/// Lists the accounts of the platform.
#[instrument(skip_all)]
pub async fn list(db: &Db, page: PageRequest) -> Result<Page<HostedAccount>, ServiceError> {
    let rows = store::list(&mut db.read().await?, page).await?;
    Ok(Page::cut(rows, page, |row| Position { at: row.created_at, seq: row.seq }))
}

/// Reads an account.
///
/// # Errors
/// 404 when there is none.
#[instrument(skip_all)]
pub async fn read(db: &Db, id: &str) -> Result<HostedAccount, ServiceError> {
    find(&mut db.read().await?, id).await
}

/// Takes an account out of service, or changes why it is: its keys are refused, its links show a page, its webhooks,
/// reactions, jobs and tasks wait, its files are closed.
///
/// # Errors
/// 404 when there is no such account.
#[instrument(skip_all)]
pub async fn suspend(
    db: &Db,
    by: &By,
    id: &str,
    reason: &str,
) -> Result<Written<HostedAccount>, ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    log::lock(&mut tx).await?;
    let before = find(&mut tx, id).await?;
    let account = before.id;
    let what = Withheld::Account(account);
    let row =
        withholdings::NewRow { what: &what, account: Some(account), reason, author: &by.author, until: None };
    withholdings::put(&mut tx, &row, by.now).await?;
    let rev = match before.suspension {
        Some(_) => log::load_head(&mut tx).await?.head,
        None => {
            store::set_suspended(&mut tx, account, Some(by.now)).await?;
            publish(&mut tx, &what, true, by.now).await?
        }
    };
    let state = before.suspension.as_ref().map(|suspension| json!({"reason": suspension.reason}));
    note(&mut tx, Some(account), (KIND, account.as_str()), (state, Some(json!({"reason": reason}))));
    let since = before.suspension.as_ref().map_or(by.now, |suspension| suspension.since);
    let suspension = Suspension { reason: reason.to_owned(), author: by.author.clone(), since };
    tx.commit().await?;
    Ok(Written { value: HostedAccount { suspension: Some(suspension), ..before }, rev })
}

/// Puts a suspended account into service again; one that is in service stays so. No time of the suspension counts for the
/// messages of its webhooks.
///
/// # Errors
/// 404 when there is no such account.
#[instrument(skip_all)]
pub async fn resume(db: &Db, by: &By, id: &str) -> Result<Written<HostedAccount>, ServiceError> {
    let found = read(db, id).await?;
    if found.suspension.is_some() {
        // Before it is in service, so that nothing is tried by its old age.
        webhooks::begin_anew(db, found.id).await?;
    }
    let mut tx = db.begin(&by.ctx).await?;
    log::lock(&mut tx).await?;
    let before = find(&mut tx, id).await?;
    let Some(suspension) = &before.suspension else {
        let rev = log::load_head(&mut tx).await?.head;
        return Ok(Written { value: before, rev });
    };
    let account: AccountId = before.id;
    let what = Withheld::Account(account);
    withholdings::delete(&mut tx, &what).await?;
    store::set_suspended(&mut tx, account, None).await?;
    let rev = publish(&mut tx, &what, false, by.now).await?;
    let state = Some(json!({"reason": suspension.reason}));
    note(&mut tx, Some(account), (KIND, account.as_str()), (state, None));
    tx.commit().await?;
    Ok(Written { value: HostedAccount { suspension: None, ..before }, rev })
}

async fn find(conn: &mut Conn, id: &str) -> Result<HostedAccount, ServiceError> {
    let absent = || ServiceError::not_found("account", id);
    let account = id.parse().map_err(|_| absent())?;
    store::find(conn, account).await?.ok_or_else(absent)
}
