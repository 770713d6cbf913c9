//! What the platform operator withholds, as edges hold it and as links are checked against.

use shared::{redirect::RedirectKey, time::UnixMillis, withheld::Withheld};

use super::{Conn, StoreError, dialect::fetch_by_keys, fetch_all, parse};
use crate::domain::withheld::{TakeDown, TakeDowns};

// A kind of a newer release is left out, so that the others are withheld all the same.
const ALL: &str = "SELECT kind, subject FROM withheld WHERE kind IN ('account', 'link', 'host') ORDER BY seq";
const PG_AMONG: &str = "SELECT kind, subject, reason, created_at, ends_at FROM withheld WHERE kind = $1 \
    AND subject = ANY($2)";
const SQLITE_AMONG: &str = "SELECT kind, subject, reason, created_at, ends_at FROM withheld WHERE kind = $1 \
    AND subject IN (SELECT value FROM json_each($2))";

/// The kind of something withheld, and its subject, as the columns hold them.
#[must_use]
pub fn columns(what: &Withheld) -> (&'static str, String) {
    match what {
        Withheld::Account(account) => ("account", account.to_string()),
        Withheld::Link(key) => ("link", format!("{}/{}", key.domain, key.folded)),
        Withheld::Host(host) => ("host", host.to_string()),
    }
}

/// What the columns say.
///
/// # Errors
/// A newer release wrote them.
pub fn of_columns(kind: &str, subject: &str) -> Result<Withheld, StoreError> {
    let unknown = || StoreError::Row(format!("withheld: {kind} {subject}"));
    match kind {
        "account" => Ok(Withheld::Account(parse("subject", subject)?)),
        // A host has no slash, unlike the short id of a Digital Link, or one of several segments.
        "link" => {
            let (domain, folded) = subject.split_once('/').ok_or_else(unknown)?;
            Ok(Withheld::Link(RedirectKey::new(domain, folded)))
        }
        "host" => Ok(Withheld::Host(subject.into())),
        _ => Err(unknown()),
    }
}

/// Everything that is withheld, of every account: edges hold it whole.
pub async fn list_all(conn: &mut Conn) -> Result<Vec<Withheld>, StoreError> {
    let rows: Vec<(String, String)> = fetch_all!(conn, ALL)?;
    rows.iter().map(|(kind, subject)| of_columns(kind, subject)).collect()
}

/// Which of some links, and of the hosts that they lead to, were taken down.
pub async fn take_downs(
    conn: &mut Conn,
    links: &[&RedirectKey],
    hosts: &[String],
) -> Result<TakeDowns, StoreError> {
    let subject = |key: &&RedirectKey| format!("{}/{}", key.domain, key.folded);
    let links: Vec<String> = links.iter().map(subject).collect();
    let mut found = Vec::new();
    for (kind, subjects) in [("link", &links[..]), ("host", hosts)] {
        if subjects.is_empty() {
            continue;
        }
        type Row = (String, String, String, i64, Option<i64>);
        let rows = fetch_by_keys!(conn, Row, PG_AMONG, SQLITE_AMONG, [kind], subjects)?;
        for (kind, subject, reason, since, until) in rows {
            let what = of_columns(&kind, &subject)?;
            found.push(TakeDown { what, reason, since: UnixMillis(since), until: until.map(UnixMillis) });
        }
    }
    Ok(TakeDowns(found))
}
