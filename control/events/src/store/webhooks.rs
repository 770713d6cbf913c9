//! The table of webhooks, and the leases by which workers hold them, on the database's clock, with a fence.

use std::time::Duration;

use shared::id::{AccountId, WebhookId};

use super::{
    Conn, Db, StoreError, Tx,
    dialect::fetch_in_list,
    documents::{Base, Cell, Document, Statements, statements},
    execute, fetch_all, fetch_optional,
    followers::{Follower, Follows, follows},
    lease::{self, Timed, hold_lease, milliseconds, pg_now, sqlite_now, timed},
    listing::{Column, Table},
    parse,
};
use crate::domain::{
    common::Stamp,
    event_filter::Types,
    subscription_filter::SubscriptionFilter,
    webhook::{Status, Webhook, WebhookDetails},
    webhook_tries::{Health, Verdict},
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.name, t.doc, t.status, t.reason, t.dropped, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "webhooks",
    columns!(),
    ", project_id, status, reason",
    ", $6, $7, $8",
    ", project_id = $6, status = $7, reason = $8",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM webhooks t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("name", Column::Text("t.name")),
        ("status", Column::Text("t.status")),
        ("scopes.projects", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

const FOLLOWS: Follows = follows!("webhooks", "webhook_messages", "webhook");
const RESUME: &str = "UPDATE webhooks SET failures = 0, failing_since = NULL, next_at = 0 WHERE seq = $1";
const RESUME_ALL: &str = "UPDATE webhooks SET failures = 0, failing_since = NULL, next_at = 0 WHERE account_id = $1 \
    RETURNING seq";

// Messages of a suspended account wait.
macro_rules! is_served {
    () => {
        " AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = w.account_id AND a.suspended_at IS NOT NULL)"
    };
}
macro_rules! claim {
    ($now:expr, $full:expr, $lock:expr) => {
        concat!(
            "UPDATE webhooks SET fence = fence + 1, lease_until = $2 + ",
            $now,
            " WHERE seq IN (SELECT w.seq FROM webhooks w WHERE w.status = 'active' AND w.failures <= $3 \
             AND w.lease_until <= ",
            $now,
            " AND w.next_at <= ",
            $now,
            " AND EXISTS (SELECT 1 FROM webhook_messages m WHERE m.webhook = w.seq AND m.status = 'pending' \
             AND m.next_at <= ",
            $now,
            ") AND ",
            $full,
            is_served!(),
            " ORDER BY w.next_at, w.seq LIMIT $1",
            $lock,
            ") RETURNING seq, account_id, id, fence, failures, failing_since, ",
            $now
        )
    };
}
macro_rules! settle {
    ($now:expr) => {
        hold_lease!(
            $now,
            "webhooks",
            concat!(
                ", failures = $4, failing_since = $5, next_at = $6 + ",
                $now,
                ", status = CASE WHEN $7 = '' OR status <> 'active' THEN status ELSE 'paused' END, \
                 reason = CASE WHEN $7 = '' OR status <> 'active' THEN reason ELSE $7 END"
            ),
            concat!(" RETURNING status, ", $now)
        )
    };
}
macro_rules! due {
    ($now:expr, $full:expr) => {
        concat!(
            "SELECT COUNT(*) FROM (SELECT w.seq FROM webhooks w WHERE w.status = 'active' AND w.failures <= $1 \
             AND w.lease_until <= ",
            $now,
            " AND w.next_at <= ",
            $now,
            " AND EXISTS (SELECT 1 FROM webhook_messages m WHERE m.webhook = w.seq AND m.status = 'pending' \
             AND m.next_at <= ",
            $now,
            ") AND ",
            $full,
            is_served!(),
            " LIMIT 1) t"
        )
    };
}
const PG_IS_DUE: &str = due!(pg_now!(), "w.account_id <> ALL($2)");
const SQLITE_IS_DUE: &str = due!(sqlite_now!(), "w.account_id NOT IN (SELECT value FROM json_each($2))");
const PG_CLAIM: &str = claim!(pg_now!(), "w.account_id <> ALL($4)", " FOR UPDATE SKIP LOCKED");
const SQLITE_CLAIM: &str = claim!(sqlite_now!(), "w.account_id NOT IN (SELECT value FROM json_each($4))", "");
const SETTLE: Timed = timed!(settle);
const FREE: &str = "UPDATE webhooks SET lease_until = 0 WHERE lease_until > 0";
const RELEASE: &str = "UPDATE webhooks SET lease_until = 0 WHERE seq = $1 AND fence = $2";

/// The columns that only webhooks have.
#[derive(sqlx::FromRow)]
pub struct Own {
    project_id: Option<String>,
    status: String,
    reason: Option<String>,
    dropped: i64,
}

impl Document for Webhook {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: WebhookId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        let project = own.project_id.as_deref().map(|id| parse("project_id", id)).transpose()?;
        let status = own.status.parse::<Status>().map_err(|()| StoreError::Row(own.status.clone()))?;
        let (reason, dropped) = (own.reason, own.dropped);
        Ok(Self { id, stamp, name: row.name, project, status, reason, dropped, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.project.map(|id| id.to_string())),
            Cell::Text(Some(self.status.as_str().to_owned())),
            Cell::Text(self.reason.clone()),
        ]
    }
}

impl Follower for Webhook {
    const FOLLOWS: &'static Follows = &FOLLOWS;

    fn subscription(details: &WebhookDetails) -> &SubscriptionFilter {
        &details.subscription
    }

    fn types(names: Vec<String>) -> Result<Types, String> {
        Types::of_webhook(names)
    }

    fn is_disabled(&self) -> bool {
        self.status == Status::Disabled
    }
}

/// Resets the health of a receiver, because it was reported to be back.
pub async fn resume(tx: &mut Tx, seq: i64) -> Result<(), StoreError> {
    execute!(&mut **tx, RESUME, seq)?;
    Ok(())
}

/// [`resume`] for every webhook of an account; returns their numbers.
pub async fn resume_all(tx: &mut Tx, account: AccountId) -> Result<Vec<i64>, StoreError> {
    let rows: Vec<(i64,)> = fetch_all!(&mut **tx, RESUME_ALL, account.as_str())?;
    Ok(rows.into_iter().map(|(seq,)| seq).collect())
}

/// Releases what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, FREE).await
}

/// Which webhooks a worker may claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// All.
    Any,
    /// Those whose receivers accepted the last messages.
    Healthy,
}

impl Fit {
    const fn most_failures(self) -> i64 {
        match self {
            Self::Any => i64::MAX,
            Self::Healthy => 0,
        }
    }
}

/// Whether some webhook may be claimed, but of the accounts `full`; cheap, and takes nothing.
pub async fn is_due(conn: &mut Conn, fit: Fit, full: &[String]) -> Result<bool, StoreError> {
    let most = fit.most_failures();
    let (count,): (i64,) = fetch_in_list!(conn, (i64,), PG_IS_DUE, SQLITE_IS_DUE, [most], full)?
        .pop()
        .ok_or_else(|| StoreError::Row("no count".to_owned()))?;
    Ok(count > 0)
}

/// A webhook in the hands of a worker.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// Its number.
    pub seq: i64,
    /// The account.
    pub account: AccountId,
    /// Its id.
    pub id: WebhookId,
    /// Grows with each holder.
    pub fence: i64,
    /// How its receiver does.
    pub health: Health,
    /// The database's time.
    pub now_ms: i64,
}

type ClaimRow = (i64, String, String, i64, i64, Option<i64>, i64);

/// Claims up to `limit` webhooks with due messages for `lease`, except those of the accounts `full`.
pub async fn claim(
    tx: &mut Tx,
    limit: u32,
    lease: Duration,
    fit: Fit,
    full: &[String],
) -> Result<Vec<Claimed>, StoreError> {
    let (limit, lease, most) = (i64::from(limit), milliseconds(lease), fit.most_failures());
    let rows: Vec<ClaimRow> =
        fetch_in_list!(tx, ClaimRow, PG_CLAIM, SQLITE_CLAIM, [limit, lease, most], full)?;
    rows.into_iter()
        .map(|(seq, account, id, fence, failures, failing_since, now_ms)| {
            let health = Health { failures, failing_since };
            Ok(Claimed {
                seq,
                account: parse("account_id", &account)?,
                id: parse("id", &id)?,
                fence,
                health,
                now_ms,
            })
        })
        .collect()
}

/// Records the result of a delivery round and extends the lease; returns whether the webhook is still active and the
/// database's time. `None` when another worker holds it, or it was deleted.
pub async fn settle(
    tx: &mut Tx,
    claimed: &Claimed,
    lease: Duration,
    verdict: &Verdict,
    reason: Option<&str>,
) -> Result<Option<(bool, i64)>, StoreError> {
    let sql = SETTLE.of(tx);
    let row: Option<(String, i64)> = fetch_optional!(
        &mut **tx,
        sql,
        claimed.seq,
        claimed.fence,
        milliseconds(lease),
        verdict.health.failures,
        verdict.health.failing_since,
        milliseconds(verdict.pause),
        reason.unwrap_or_default()
    )?;
    Ok(row.map(|(status, now)| (status == Status::Active.as_str(), now)))
}

/// Releases a webhook.
pub async fn release(tx: &mut Tx, claimed: &Claimed) -> Result<(), StoreError> {
    execute!(&mut **tx, RELEASE, claimed.seq, claimed.fence)?;
    Ok(())
}
