//! The migration that gives keys labels: keys of before stay valid, and get one.

use anyhow::{Result, ensure};
use kernel::store::keys;
use shared::time::UnixMillis;
use tenants::store::operator_keys;
use tests::db::{Engine, TestApp};

use super::schema::run;
use crate::on_both_engines;

/// The table as the release before made it.
const BEFORE: [&str; 2] = [
    "CREATE TABLE api_keys (hash BLOB PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), \
     kind TEXT NOT NULL, actor_id TEXT NOT NULL, created_at BIGINT NOT NULL, revoked_at BIGINT, project_id TEXT, \
     app_id TEXT)",
    "CREATE INDEX api_keys_actor ON api_keys (account_id, actor_id)",
];

async fn keys_of_before_get_a_label(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    let hex = |byte: u8| match engine {
        Engine::Sqlite => format!("x'{}'", format!("{byte:02x}").repeat(32)),
        Engine::Postgres | Engine::ClickHouse => format!("'\\x{}'", format!("{byte:02x}").repeat(32)),
    };
    let (account, operator) = (made.account.to_string(), made.operator.to_string());
    let insert = |byte: u8, kind: &str, actor: &str, at: i64, revoked: &str| {
        format!(
            "INSERT INTO api_keys (hash, account_id, kind, actor_id, created_at, revoked_at) \
             VALUES ({}, '{account}', '{kind}', '{actor}', {at}, {revoked})",
            hex(byte)
        )
    };
    let mut statements = vec![
        "DROP TABLE api_keys".to_owned(),
        "ALTER TABLE applications DROP COLUMN app_generation".to_owned(),
        "ALTER TABLE applications DROP COLUMN trusted_generation".to_owned(),
        "DELETE FROM _sqlx_migrations WHERE version = 42".to_owned(),
    ];
    let bytes = if engine == Engine::Sqlite { "BLOB" } else { "BYTEA" };
    statements.extend(BEFORE.map(|sql| sql.replace("BLOB", bytes)));
    statements.push("CREATE INDEX api_keys_app ON api_keys (app_id) WHERE app_id IS NOT NULL".to_owned());
    statements.extend([
        insert(3, "operator", &operator, 30, "NULL"),
        insert(1, "operator", &operator, 10, "NULL"),
        insert(2, "operator", &operator, 20, "25"),
        insert(4, "thng", "UKXAGyEf8SQ5eTDmVgGpHqAa", 5, "NULL"),
    ]);
    run(&made.db.location, &statements).await?;
    made.db.db.migrate().await?;
    let mut conn = made.db.db.read().await?;
    let listed = operator_keys::list_of(&mut conn, made.account, &operator).await?;
    let seen: Vec<_> = listed
        .iter()
        .map(|key| (key.hash[0], key.label.as_str(), key.revoked_at.map(|at| at.0), key.created_by.clone()))
        .collect();
    assert_eq!(
        seen,
        [(1, "first key", None, None), (2, "later key", Some(25), None), (3, "later key", None, None)]
    );
    ensure!(listed.iter().all(|key| key.updated_at == key.created_at && key.expires_at.is_none()));
    ensure!(listed.windows(2).all(|pair| pair[0].seq != pair[1].seq));
    for (byte, is_valid) in [(1, true), (2, false), (3, true), (4, true)] {
        assert_eq!(keys::find(&mut conn, &[byte; 32]).await?.is_some(), is_valid, "{byte}");
    }
    drop(conn);
    // What an older release adds meanwhile has an id and a place too.
    let before = insert(9, "operator", &operator, 40, "NULL");
    run(&made.db.location, &[before]).await?;
    let mut conn = made.db.db.read().await?;
    let valid = operator_keys::list_valid(&mut conn, made.account, UnixMillis(50)).await?;
    assert_eq!(valid.iter().map(|key| key.hash[0]).collect::<Vec<_>>(), [1, 3, 9]);
    assert_eq!(valid[2].label, "without a label");
    let found = operator_keys::find(&mut conn, made.account, valid[2].id()).await?;
    assert_eq!(found.as_ref(), valid.get(2));
    Ok(())
}

on_both_engines!(keys_of_before_get_a_label);
