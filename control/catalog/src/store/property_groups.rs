//! Small property writes in one group: locks their owners, and writes history, latest values and events together.
//!
//! On Postgres that is one statement, so a group costs one round trip and one commit.

use crate::store::Ctx;
use std::{borrow::Cow, collections::HashMap};

use shared::{
    id::{AccountId, ProjectId},
    time::UnixMillis,
};
use sqlx::types::Json;
use tokio::time::timeout;

use super::{
    Conn, Db, STATEMENT_TIMEOUT, StoreError, Tx,
    audit::Entry,
    dialect, events,
    properties::{self, Values},
    quotas,
    session::Session,
};
use crate::domain::{
    event::Event,
    grant::Limit,
    property::{Owner, Point},
    quota::Quota,
    scopes::Scopes,
};

/// A write of one Thng or product.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The account.
    pub account: AccountId,
    /// What its caller sees of the account.
    pub limit: &'a Limit,
    /// What has the properties.
    pub owner: Owner,
    /// Id of the Thng or product.
    pub resource: &'a str,
    /// The values, of which no two have one key and time.
    pub points: &'a [Point],
    /// The connection that it came by, if that also subscribes.
    pub origin: Option<&'a str>,
    /// Its entry in the audit trail.
    pub audit: Option<&'a Entry>,
}

// The condition of `Limit::admits`. Rows are locked in the order of ids, as all writers do, and found by id: with a
// plain condition on the account, a table that was not analysed yet is read completely for each write.
macro_rules! held {
    ($owner:literal, $table:literal) => {
        concat!(
            "SELECT a.n FROM asked a JOIN ",
            $table,
            " t ON t.id = a.id AND (t.account_id = a.account_id) IS TRUE WHERE a.owner = '",
            $owner,
            "' AND CASE a.reach WHEN 'account' THEN true \
                WHEN 'projects' THEN \
                    COALESCE(t.doc -> 'scopes' -> 'projects' ?| string_to_array(a.whose, ','), false) \
                WHEN 'user' THEN t.id = a.whose OR COALESCE(t.doc -> 'scopes' -> 'users' ? a.whose, false) \
                ELSE t.id = a.whose END \
             ORDER BY t.id FOR KEY SHARE OF t"
        )
    };
}

// The log row comes after the owners are locked: a transaction that holds a log number must have begun to write.
const PG_WRITE: &str = concat!(
    "WITH asked AS MATERIALIZED (SELECT * FROM UNNEST($2::bigint[], $3::text[], $4::text[], $5::text[], \
        $6::text[], $7::text[], $8::text[], $9::text[], $14::text[]) \
        AS t (n, account_id, owner, id, reach, whose, origin, body, entry)), \
     thng AS MATERIALIZED (",
    held!("thng", "thngs"),
    "), product AS MATERIALIZED (",
    held!("product", "products"),
    "), counted AS MATERIALIZED (SELECT account_id FROM quota_uses WHERE kind = 'eventsPerDay' \
        AND account_id IN (SELECT account_id FROM asked)), \
     held AS MATERIALIZED (SELECT a.* FROM asked a \
        WHERE a.n IN (SELECT n FROM thng UNION ALL SELECT n FROM product) \
        AND a.account_id NOT IN (SELECT account_id FROM counted)), \
     given AS MATERIALIZED (SELECT h.account_id, h.id, p.key, p.value, p.ts \
        FROM UNNEST($10::bigint[], $11::text[], $12::text[], $13::bigint[]) AS p (n, key, value, ts) \
        JOIN held h ON h.n = p.n), \
     latest AS (INSERT INTO properties AS s (account_id, resource_id, key, value, timestamp, written_at, created_at) \
        SELECT DISTINCT ON (id COLLATE \"C\", key COLLATE \"C\") account_id, id, key, value, ts, $1, $1 FROM given \
        ORDER BY id COLLATE \"C\", key COLLATE \"C\", ts DESC \
        ON CONFLICT (resource_id, key) DO UPDATE SET \
        value = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.value ELSE s.value END, \
        written_at = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.written_at ELSE s.written_at END, \
        timestamp = GREATEST(EXCLUDED.timestamp, s.timestamp) RETURNING resource_id, key, seq), \
     history AS (INSERT INTO property_points (property, timestamp, created_at, value) \
        SELECT l.seq, g.ts, $1, g.value FROM given g JOIN latest l ON l.resource_id = g.id AND l.key = g.key \
        ORDER BY l.seq, g.ts \
        ON CONFLICT (property, timestamp) DO UPDATE SET created_at = EXCLUDED.created_at, value = EXCLUDED.value), \
     recorded AS (INSERT INTO events (at, account_id, kind, origin, quiet, body) \
        SELECT $1, account_id, 'properties', origin, 0, body FROM held WHERE body IS NOT NULL ORDER BY n), \
     audited AS (INSERT INTO audit_queue (entry) SELECT entry FROM held WHERE entry IS NOT NULL ORDER BY n) \
     SELECT n, true FROM held UNION ALL \
     SELECT n, false FROM asked WHERE account_id IN (SELECT account_id FROM counted)"
);

macro_rules! find {
    ($table:literal) => {
        concat!(
            "SELECT t.account_id, t.id, t.doc -> 'scopes' FROM json_each($1) r CROSS JOIN ",
            $table,
            " t WHERE t.account_id = r.value ->> '$[0]' AND t.id = r.value ->> '$[1]'"
        )
    };
}

const SQLITE_FIND_THNGS: &str = find!("thngs");
const SQLITE_FIND_PRODUCTS: &str = find!("products");

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was written.
    Written,
    /// Its owner does not exist or is invisible to the caller.
    Absent,
    /// Its account has a quota of events: it must be counted, in a transaction of its own.
    Counted,
}

/// Writes values of Thngs and products, each at most once, and records them: all or nothing, except those that
/// [`Outcome`] tells of.
///
/// # Errors
/// The database failed; nothing was written.
pub async fn write(
    session: &mut Session,
    writes: &[Write<'_>],
    now: UnixMillis,
) -> Result<Vec<Outcome>, StoreError> {
    if matches!(session.db(), Db::Sqlite { .. }) {
        let mut tx = session.db().begin(&Ctx::default()).await?;
        let written = write_in_steps(&mut tx, writes, now).await?;
        tx.commit().await?;
        return Ok(written);
    }
    let mut c = session.take().await?;
    let points =
        || writes.iter().zip(0_i64..).flat_map(|(w, n)| w.points.iter().map(move |point| (n, point)));
    let body = |w: &Write<'_>| (!w.points.is_empty()).then(|| event(w).to_body());
    let statement = sqlx::query_as(PG_WRITE)
        .bind(now.0)
        .bind((0..).take(writes.len()).collect::<Vec<i64>>())
        .bind(writes.iter().map(|w| w.account.as_str()).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| w.owner.as_str()).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| w.resource).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| reach(w.limit).0).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| reach(w.limit).1).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| w.origin).collect::<Vec<_>>())
        .bind(writes.iter().map(body).collect::<Vec<_>>())
        .bind(points().map(|(n, _)| n).collect::<Vec<_>>())
        .bind(points().map(|(_, p)| p.key.as_str()).collect::<Vec<_>>())
        .bind(points().map(|(_, p)| p.value.to_string()).collect::<Vec<_>>())
        .bind(points().map(|(_, p)| p.timestamp.0).collect::<Vec<_>>())
        .bind(writes.iter().map(|w| w.audit.map(Entry::row)).collect::<Vec<_>>())
        .fetch_all(&mut c);
    // The server ends it before; this is for one that is unreachable.
    let held: Result<Vec<(i64, bool)>, sqlx::Error> =
        timeout(2 * STATEMENT_TIMEOUT, statement).await.map_err(|_| StoreError::Timeout)?;
    session.keep(c, &held);
    let held = held?;
    let mut outcomes = vec![Outcome::Absent; writes.len()];
    for (n, is_written) in held {
        if let Some(one) = usize::try_from(n).ok().and_then(|n| outcomes.get_mut(n)) {
            *one = if is_written { Outcome::Written } else { Outcome::Counted };
        }
    }
    Ok(outcomes)
}

fn event(write: &Write<'_>) -> Event {
    Event::Properties {
        owner: write.owner,
        resource: write.resource.to_owned(),
        points: write.points.to_vec(),
    }
}

/// A limit as the statement has it.
fn reach(limit: &Limit) -> (&'static str, Option<Cow<'_, str>>) {
    match limit {
        Limit::Account => ("account", None),
        Limit::Projects(projects) => {
            let ids: Vec<&str> = projects.iter().map(ProjectId::as_str).collect();
            ("projects", Some(ids.join(",").into()))
        }
        Limit::User(user) => ("user", Some(user.into())),
        Limit::Itself(id) => ("itself", Some(id.into())),
    }
}

async fn write_in_steps(
    tx: &mut Tx,
    writes: &[Write<'_>],
    now: UnixMillis,
) -> Result<Vec<Outcome>, StoreError> {
    let accounts: Vec<AccountId> = writes.iter().map(|write| write.account).collect();
    let counted = quotas::list_limited(tx, Quota::EventsPerDay, &accounts).await?;
    let mut scopes = HashMap::new();
    for (owner, sql) in [(Owner::Thng, SQLITE_FIND_THNGS), (Owner::Product, SQLITE_FIND_PRODUCTS)] {
        let of_owner = writes.iter().filter(|write| write.owner == owner);
        let wanted: Vec<_> = of_owner.map(|write| (write.account, write.resource)).collect();
        if wanted.is_empty() {
            continue;
        }
        let Conn::SqliteTx(c) = &mut **tx else { return Err(dialect::outside_transaction()) };
        let rows: Vec<(String, String, Option<Json<Scopes>>)> =
            sqlx::query_as(sql).bind(Json(wanted)).fetch_all(&mut **c).await?;
        scopes.extend(rows.into_iter().map(|(account, id, scopes)| ((owner, account, id), scopes)));
    }
    let is_held = |write: &Write<'_>| {
        let place = (write.owner, write.account.to_string(), write.resource.to_owned());
        let found = scopes.get(&place);
        found.is_some_and(|found| write.limit.admits(write.resource, found.as_ref().map(|found| &found.0)))
    };
    let outcome = |write: &Write<'_>| match is_held(write) {
        _ if counted.contains(&write.account) => Outcome::Counted,
        true => Outcome::Written,
        false => Outcome::Absent,
    };
    let outcomes: Vec<Outcome> = writes.iter().map(outcome).collect();
    let held = writes.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Outcome::Written);
    let held: Vec<&Write<'_>> = held.map(|(write, _)| write).collect();
    let values: Vec<Values<'_>> = held
        .iter()
        .map(|write| Values { account: write.account, resource: write.resource, points: write.points })
        .collect();
    properties::write(tx, &values, now).await?;
    tx.add_entries(held.iter().filter_map(|write| write.audit.cloned()));
    let mut recorded: HashMap<Option<&str>, Vec<(AccountId, Event)>> = HashMap::new();
    for write in held.into_iter().filter(|write| !write.points.is_empty()) {
        recorded.entry(write.origin).or_default().push((write.account, event(write)));
    }
    for (origin, happened) in recorded {
        let of_request = origin.map_or_else(Ctx::default, |origin| Ctx::default().with_origin(origin));
        let shared = tx.set_ctx(of_request);
        events::record(tx, now, &happened).await?;
        tx.set_ctx(shared);
    }
    Ok(outcomes)
}
