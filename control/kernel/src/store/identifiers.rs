//! Identifiers of products and Thngs: finds the resources with a given `<key>:<value>`.

use std::collections::BTreeMap;

use shared::{gtin, id::AccountId, identifier::Identifier};
use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional};

const INSERT: &str =
    "INSERT INTO identifiers (account_id, kind, key, value, resource_id) VALUES ($1, $2, $3, $4, $5)";
const DELETE: &str = "DELETE FROM identifiers WHERE resource_id = $1";
const FIND: &str = "SELECT resource_id FROM identifiers WHERE account_id = $1 AND kind = $2 AND key = $3 \
    AND value = $4 ORDER BY resource_id LIMIT $5";
const FIND_OTHER: &str = "SELECT resource_id FROM identifiers WHERE account_id = $1 AND kind = $2 AND key = $3 \
    AND value = $4 AND resource_id <> $5 ORDER BY resource_id LIMIT 1";
const COUNT: &str =
    "SELECT COUNT(*) FROM identifiers WHERE account_id = $1 AND kind = $2 AND key = $3 AND value = $4";

const PG_FIND_MANY: &str = "SELECT i.key, i.value, i.resource_id FROM UNNEST($3::text[], $4::text[]) AS t (key, value) \
    JOIN identifiers i ON i.account_id = $1 AND i.kind = $2 AND i.key = t.key AND i.value = t.value";
// `CROSS` keeps the list outside: by itself SQLite might walk all identifiers of the account.
const SQLITE_FIND_MANY: &str = "SELECT i.key, i.value, i.resource_id FROM json_each($3) t CROSS JOIN identifiers i \
    WHERE i.account_id = $1 AND i.kind = $2 AND i.key = t.value ->> '$[0]' AND i.value = t.value ->> '$[1]'";

/// What an identifier leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Nothing has it.
    None,
    /// One resource has it.
    One(String),
    /// Several have it.
    Many(i64),
}

/// Replaces the identifiers of a resource.
pub async fn replace(
    tx: &mut Tx,
    account: AccountId,
    kind: &str,
    resource: &str,
    identifiers: &BTreeMap<String, String>,
) -> Result<(), StoreError> {
    delete(tx, resource).await?;
    for (key, value) in identifiers {
        execute!(&mut **tx, INSERT, account.as_str(), kind, key, value, resource)?;
    }
    Ok(())
}

/// Removes the identifiers of a resource.
pub async fn delete(tx: &mut Tx, resource: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, resource)?;
    Ok(())
}

/// Finds what has any of some identifiers, each named once: the pairs with the ids, in no order.
pub async fn find_many(
    conn: &mut Conn,
    account: AccountId,
    kind: &str,
    identifiers: &[&Identifier],
) -> Result<Vec<(Identifier, String)>, StoreError> {
    let pairs = identifiers.iter().map(|one| (one.key.as_str(), one.value.as_str()));
    let rows: Vec<(String, String, String)> = match conn.raw() {
        Raw::Pg(c) => {
            let (keys, values): (Vec<&str>, Vec<&str>) = pairs.unzip();
            sqlx::query_as(PG_FIND_MANY)
                .bind(account.as_str())
                .bind(kind)
                .bind(keys)
                .bind(values)
                .fetch_all(c)
                .await?
        }
        Raw::Sqlite(c) => {
            let pairs: Vec<(&str, &str)> = pairs.collect();
            sqlx::query_as(SQLITE_FIND_MANY)
                .bind(account.as_str())
                .bind(kind)
                .bind(Json(pairs))
                .fetch_all(c)
                .await?
        }
    };
    Ok(rows.into_iter().map(|(key, value, id)| (Identifier { key, value }, id)).collect())
}

/// Finds the resources with an identifier; `kind` is `thng` or `product`.
///
/// A GTIN of a product is searched in normalised form, and as given, which older releases stored.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    kind: &str,
    identifier: &Identifier,
) -> Result<Match, StoreError> {
    if kind == "product" && identifier.key == "gs1:01" {
        let kept = Identifier { value: gtin::canonical(&identifier.value), ..identifier.clone() };
        if kept != *identifier {
            match find_as_is(conn, account, kind, &kept).await? {
                Match::None => {}
                found => return Ok(found),
            }
        }
    }
    find_as_is(conn, account, kind, identifier).await
}

/// A resource of a kind that has an identifier and is not the one named.
pub async fn find_other(
    conn: &mut Conn,
    account: AccountId,
    kind: &str,
    identifier: &Identifier,
    except: &str,
) -> Result<Option<String>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(
        conn,
        FIND_OTHER,
        account.as_str(),
        kind,
        &identifier.key,
        &identifier.value,
        except
    )?;
    Ok(row.map(|(id,)| id))
}

async fn find_as_is(
    conn: &mut Conn,
    account: AccountId,
    kind: &str,
    identifier: &Identifier,
) -> Result<Match, StoreError> {
    let mut rows: Vec<(String,)> =
        fetch_all!(conn, FIND, account.as_str(), kind, &identifier.key, &identifier.value, 2_i64)?;
    match (rows.pop(), rows.is_empty()) {
        (None, _) => Ok(Match::None),
        (Some((id,)), true) => Ok(Match::One(id)),
        (Some(_), false) => {
            let (count,): (i64,) =
                fetch_one!(conn, COUNT, account.as_str(), kind, &identifier.key, &identifier.value)?;
            Ok(Match::Many(count))
        }
    }
}
