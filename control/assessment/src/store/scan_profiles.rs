//! Scan profiles of Thngs: read and written as a whole, under a row lock.

use std::collections::BTreeMap;

use shared::id::{AccountId, ThngId};
use sqlx::types::Json;

use super::{
    Conn, Raw, StoreError, Tx,
    dialect::{self, fetch_in_list},
    execute, fetch_all, fetch_optional, on_db, parse,
};
use crate::domain::assessment::{
    peak::POINTS_SINCE,
    profile::{Observation, Profile, SESSIONS_SINCE},
};

const FIND: &str = "SELECT profile, unverified, clients, rules_version FROM scan_profiles WHERE account_id = $1 AND thng_id = $2";
// Rows are inserted before they are locked, so that two that start a profile at once wait for each other.
const PG_BEGIN: &str = "INSERT INTO scan_profiles (thng_id, account_id, profile, unverified, rules_version) \
    SELECT t.id, t.account_id, ''::bytea, ''::bytea, $2 FROM thngs t WHERE t.id = ANY($1) ORDER BY t.id \
    ON CONFLICT (thng_id) DO NOTHING";
const SQLITE_BEGIN: &str = "INSERT INTO scan_profiles (thng_id, account_id, profile, unverified, rules_version) \
    SELECT t.id, t.account_id, x'', x'', $2 FROM thngs t WHERE t.id IN (SELECT value FROM json_each($1)) \
    ON CONFLICT (thng_id) DO NOTHING";
const PG_LOCK: &str = "SELECT thng_id, profile, unverified, clients, rules_version, read_to FROM scan_profiles WHERE thng_id = ANY($1) ORDER BY thng_id FOR UPDATE";
const SQLITE_LOCK: &str = "SELECT thng_id, profile, unverified, clients, rules_version, read_to FROM scan_profiles WHERE thng_id IN (SELECT value FROM json_each($1))";
const PG_LOCK_ONE: &str =
    "SELECT profile, unverified, clients, rules_version FROM scan_profiles WHERE thng_id = $1 FOR UPDATE";
// A transaction that writes is the only one.
const SQLITE_LOCK_ONE: &str =
    "SELECT profile, unverified, clients, rules_version FROM scan_profiles WHERE thng_id = $1";
const PG_WRITE: &str = "UPDATE scan_profiles SET profile = t.profile, unverified = t.unverified, clients = t.clients, \
    rules_version = $5 FROM UNNEST($1::text[], $2::bytea[], $3::bytea[], $4::bytea[]) \
    AS t (thng_id, profile, unverified, clients) WHERE scan_profiles.thng_id = t.thng_id";
const SQLITE_WRITE: &str = "UPDATE scan_profiles SET profile = $2, unverified = $3, clients = $4, rules_version = $5 \
    WHERE thng_id = $1";
// By the index of versions: there are millions of current ones.
const PG_LIST: &str = "SELECT thng_id, account_id FROM scan_profiles \
    WHERE (rules_version IS NULL OR rules_version < $2) AND thng_id > $1 ORDER BY thng_id LIMIT $3";
// Without statistics SQLite would walk all of them in order of ids; the sign takes that index from it.
const SQLITE_LIST: &str = "SELECT thng_id, account_id FROM scan_profiles \
    WHERE (rules_version IS NULL OR rules_version < $2) AND +thng_id > $1 ORDER BY thng_id LIMIT $3";
const LIST_MARKED: &str = "SELECT thng_id FROM scan_profiles WHERE account_id = $1 AND rules_version IS NULL \
    AND thng_id > $2 ORDER BY thng_id LIMIT $3";
const READ_TO: &str = "UPDATE scan_profiles SET read_to = $2 WHERE thng_id = $1 AND read_to < $2";
// In one order, so that two of these, and additions of scans, do not lock each other out.
const PG_OUTDATE: &str = "UPDATE scan_profiles SET rules_version = NULL WHERE account_id = $1 AND thng_id IN \
    (SELECT p.thng_id FROM scan_profiles p WHERE p.thng_id = ANY($2) ORDER BY p.thng_id FOR UPDATE) RETURNING thng_id";
const SQLITE_OUTDATE: &str = "UPDATE scan_profiles SET rules_version = NULL WHERE account_id = $1 \
    AND thng_id IN (SELECT value FROM json_each($2)) RETURNING thng_id";
const DELETE: &str = "DELETE FROM scan_profiles WHERE thng_id = $1";

/// A profile as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The profile.
    pub profile: Profile,
    /// Whether an older release made it: then it must be rebuilt from the actions.
    pub is_outdated: bool,
}

/// Sessions, those of public keys, networks and languages, and the version of the rules that made them.
type Row = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, Option<i32>);

/// A [`Row`] after the id of its Thng, and how far a rebuild has read.
type Named = (String, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, Option<i32>, i64);

/// A new scan of a Thng.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The Thng.
    pub thng: ThngId,
    /// The scan.
    pub observation: Observation,
    /// Its position in the store of scans by edges, where a rebuild may have found it before.
    pub position: Option<i64>,
}

fn read((bytes, unverified, clients, _): &Row, thng: &str) -> Result<Profile, StoreError> {
    let optional = |bytes: &Option<Vec<u8>>| bytes.clone().unwrap_or_default();
    Profile::from_bytes(bytes, &optional(unverified), &optional(clients))
        .map_err(|error| StoreError::Row(format!("profile of {thng}: {error}")))
}

/// The profile of a Thng; empty when it was never scanned.
pub async fn load(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<Stored, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), thng.as_str())?;
    row.map_or_else(|| Ok(Stored::default()), |row| stored(&row, thng.as_str()))
}

fn stored(row: &Row, thng: &str) -> Result<Stored, StoreError> {
    Ok(Stored { profile: read(row, thng)?, is_outdated: is_outdated(row.3) })
}

/// The version of the rules since which sessions and points are as now, as stored.
const VERSION: i32 = if SESSIONS_SINCE > POINTS_SINCE { SESSIONS_SINCE as i32 } else { POINTS_SINCE as i32 };

/// Every release that has the column writes its own version with each profile that it writes: so one that an older
/// release changed during an upgrade is outdated again.
fn is_outdated(rules_version: Option<i32>) -> bool {
    rules_version.is_none_or(|version| version < VERSION)
}

/// A Thng whose profile was built by an older release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// Its account.
    pub account: AccountId,
    /// The Thng.
    pub thng: ThngId,
}

/// The next `limit` outdated profiles after a Thng, in order of ids.
pub async fn list_outdated(conn: &mut Conn, after: &str, limit: u32) -> Result<Vec<Outdated>, StoreError> {
    let statement = match conn {
        Conn::Pg(_) | Conn::PgTx(_) => PG_LIST,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => SQLITE_LIST,
    };
    let rows: Vec<(String, String)> = fetch_all!(conn, statement, after, VERSION, i64::from(limit))?;
    rows.into_iter()
        .map(|(thng, account)| {
            Ok(Outdated { account: parse("account_id", &account)?, thng: parse("thng_id", &thng)? })
        })
        .collect()
}

/// The next `limit` Thngs of an account, in order of ids, whose profiles [`outdate`] has marked.
pub async fn list_marked(
    conn: &mut Conn,
    account: AccountId,
    after: &str,
    limit: u32,
) -> Result<Vec<ThngId>, StoreError> {
    let rows: Vec<String> = on_db!(conn, |c| sqlx::query_scalar(LIST_MARKED)
        .bind(account.as_str())
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c)
        .await)?;
    rows.iter().map(|thng| parse("thng_id", thng)).collect()
}

/// The profile of a Thng, locked until the transaction ends; `None` when it was never scanned.
pub async fn lock(tx: &mut Tx, thng: ThngId) -> Result<Option<Stored>, StoreError> {
    let statement = dialect::pick(tx, PG_LOCK_ONE, SQLITE_LOCK_ONE);
    let row: Option<Row> = fetch_optional!(&mut **tx, statement, thng.as_str())?;
    row.map(|row| stored(&row, thng.as_str())).transpose()
}

/// Adds scans to the profiles of their Thngs; those of deleted Thngs are skipped.
///
/// Returns the Thngs whose profiles are outdated: they are locked, and nothing was added to them.
pub async fn add(tx: &mut Tx, scans: &[Seen]) -> Result<Vec<ThngId>, StoreError> {
    let mut of_thngs: BTreeMap<String, Vec<&Seen>> = BTreeMap::new();
    for seen in scans {
        of_thngs.entry(seen.thng.to_string()).or_default().push(seen);
    }
    if of_thngs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = of_thngs.keys().cloned().collect();
    let begin = dialect::pick(tx, PG_BEGIN, SQLITE_BEGIN);
    let lock = dialect::pick(tx, PG_LOCK, SQLITE_LOCK);
    let rows: Vec<Named> = match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(begin).bind(&ids).bind(VERSION).execute(&mut *c).await?;
            sqlx::query_as(lock).bind(&ids).fetch_all(c).await?
        }
        Raw::Sqlite(c) => {
            sqlx::query(begin).bind(Json(&ids)).bind(VERSION).execute(&mut *c).await?;
            sqlx::query_as(lock).bind(Json(&ids)).fetch_all(c).await?
        }
    };
    let (mut changed, mut outdated) = (Vec::new(), Vec::new());
    for (thng, bytes, unverified, clients, version, read_to) in rows {
        if is_outdated(version) {
            outdated.push(parse("thng_id", &thng)?);
            continue;
        }
        let before = (bytes, unverified, clients, version);
        let mut profile = read(&before, &thng)?;
        let new = of_thngs.get(&thng).into_iter().flatten();
        for seen in new.filter(|seen| seen.position.is_none_or(|position| position > read_to)) {
            profile.add(&seen.observation);
        }
        let after = bytes_of(&profile);
        if (&after.0, Some(&after.1), Some(&after.2)) != (&before.0, before.1.as_ref(), before.2.as_ref()) {
            changed.push((thng, after));
        }
    }
    write(tx, changed).await?;
    Ok(outdated)
}

/// Replaces the profile of a Thng with one that was rebuilt from its scans, those of edges up to a position. Effects of
/// some of these may still be to come: they are stored first.
///
/// On Postgres a scan with a lower position may be committed later, by another batch at the same moment; it is missing in
/// the profile until that is rebuilt again.
pub async fn put(tx: &mut Tx, thng: ThngId, profile: &Profile, read_to: i64) -> Result<(), StoreError> {
    write(tx, vec![(thng.to_string(), bytes_of(profile))]).await?;
    let thng = thng.as_str();
    execute!(&mut **tx, READ_TO, thng, read_to)?;
    Ok(())
}

/// Sessions, those of public keys, networks and languages.
type Bytes = (Vec<u8>, Vec<u8>, Vec<u8>);

fn bytes_of(profile: &Profile) -> Bytes {
    (profile.to_bytes(), profile.unverified_to_bytes(), profile.clients_to_bytes())
}

async fn write(tx: &mut Tx, changed: Vec<(String, Bytes)>) -> Result<(), StoreError> {
    match tx.raw() {
        Raw::Pg(c) => {
            let (mut ids, mut profiles) = (Vec::new(), Vec::new());
            let (mut unverified, mut clients) = (Vec::new(), Vec::new());
            for (thng, bytes) in changed {
                ids.push(thng);
                profiles.push(bytes.0);
                unverified.push(bytes.1);
                clients.push(bytes.2);
            }
            // Planned each time, because a plan for a small table reads all of a large one.
            sqlx::query(PG_WRITE)
                .persistent(false)
                .bind(ids)
                .bind(profiles)
                .bind(unverified)
                .bind(clients)
                .bind(VERSION)
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            for (thng, (profile, unverified, clients)) in changed {
                let query = sqlx::query(SQLITE_WRITE).bind(thng).bind(profile).bind(unverified);
                query.bind(clients).bind(VERSION).execute(&mut *c).await?;
            }
        }
    }
    Ok(())
}

/// Marks profiles as outdated, because their scans were changed: each is rebuilt before it is used. Returns how many there
/// are.
pub async fn outdate(tx: &mut Tx, account: AccountId, thngs: &[ThngId]) -> Result<u64, StoreError> {
    if thngs.is_empty() {
        return Ok(0);
    }
    let ids: Vec<String> = thngs.iter().map(ToString::to_string).collect();
    let marked = fetch_in_list!(&mut **tx, (String,), PG_OUTDATE, SQLITE_OUTDATE, [account.as_str()], &ids)?;
    Ok(u64::try_from(marked.len()).unwrap_or(u64::MAX))
}

/// Removes the profile of a Thng that is removed.
pub async fn delete(tx: &mut Tx, thng: ThngId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, thng.as_str())?;
    Ok(())
}
