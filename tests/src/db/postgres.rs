//! A database of Postgres for each test: a copy of one that is migrated. A copy takes a tenth of the time of the migrations,
//! and the catalogue of a database does not grow with each test.

use std::path::Path;

use anyhow::{Context, Result};
use kernel::store::Db;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{built, random16};

/// The name of a test's database begins so; the id of its process follows.
const PREFIX: &str = "test_";
/// Key of the lock under which the model of all copies is made.
const MAKING: i64 = 7_022;

/// Makes a database with the schema of this build; gives its URL. Those of tests that have ended are dropped.
pub(super) async fn copy_of_migrated(server: &str) -> Result<String> {
    let mut admin = PgConnection::connect(server).await?;
    drop_ended(&mut admin).await?;
    let model = format!("model_{}", built()?);
    if !exists(&mut admin, &model).await? {
        make(&mut admin, server, &model).await?;
    }
    let random: String = random16()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{PREFIX}{}_{random}", std::process::id());
    run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {model} STRATEGY FILE_COPY")).await?;
    admin.close().await?;
    with_database(server, &name)
}

/// Migrates a database, and gives it its name when it is done: who sees the name may copy it.
async fn make(admin: &mut PgConnection, server: &str, model: &str) -> Result<()> {
    sqlx::query("SELECT pg_advisory_lock($1)").bind(MAKING).execute(&mut *admin).await?;
    // Another test has made it meanwhile.
    if !exists(&mut *admin, model).await? {
        let unfinished = format!("{model}_unfinished");
        run(&mut *admin, format!("DROP DATABASE IF EXISTS {unfinished}")).await?;
        run(&mut *admin, format!("CREATE DATABASE {unfinished}")).await?;
        let db = Db::connect_postgres(&with_database(server, &unfinished)?).await?;
        db.migrate().await?;
        db.close().await;
        run(&mut *admin, format!("ALTER DATABASE {unfinished} RENAME TO {model}")).await?;
    }
    sqlx::query("SELECT pg_advisory_unlock($1)").bind(MAKING).execute(&mut *admin).await?;
    Ok(())
}

async fn exists(admin: &mut PgConnection, name: &str) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)";
    Ok(sqlx::query_scalar(sql).bind(name).fetch_one(admin).await?)
}

/// Drops the databases of processes that are gone.
async fn drop_ended(admin: &mut PgConnection) -> Result<()> {
    let names: Vec<String> =
        sqlx::query_scalar("SELECT datname FROM pg_database WHERE datname LIKE $1 || '%'")
            .bind(PREFIX)
            .fetch_all(&mut *admin)
            .await?;
    for name in names {
        if process_of(&name).is_some_and(|process| !is_running(process)) {
            // Another test may be dropping it.
            let _ = run(&mut *admin, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
    Ok(())
}

/// The process whose test a database is of; `None` where somebody else has given it its name.
fn process_of(name: &str) -> Option<u32> {
    let (process, random) = name.strip_prefix(PREFIX)?.split_once('_')?;
    let is_random =
        random.len() == 32 && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    process.parse().ok().filter(|_| is_random)
}

/// Whether a process runs; `true` where that cannot be known.
fn is_running(process: u32) -> bool {
    let all = Path::new("/proc");
    !all.join("self").exists() || all.join(process.to_string()).exists()
}

async fn run(conn: &mut PgConnection, sql: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await?;
    Ok(())
}

/// The same server with the same parameters, another database.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (place, parameters) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (server, _) = place.rsplit_once('/').context("a URL with a database")?;
    Ok(format!("{server}/{name}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_others_are_no_tests() {
        let random = "0123456789abcdef0123456789abcdef";
        assert_eq!(process_of(&format!("test_42_{random}")), Some(42));
        for name in [
            "test_shop".to_owned(),
            "test_2026".to_owned(),
            "test_2026_backup".to_owned(),
            format!("test_shop_{random}"),
            format!("test_42_{random}0"),
            format!("test_42_{}", random.to_uppercase()),
            format!("tests42_{random}"),
        ] {
            assert_eq!(process_of(&name), None, "{name}");
        }
    }

    #[test]
    fn parameters_of_a_url_stay() {
        for (url, same_server) in [
            ("postgres://ada@127.0.0.1:5432/postgres", "postgres://ada@127.0.0.1:5432/own"),
            ("postgres://ada@h/postgres?sslmode=disable", "postgres://ada@h/own?sslmode=disable"),
            ("postgres:///postgres?host=/run/postgresql", "postgres:///own?host=/run/postgresql"),
        ] {
            assert_eq!(with_database(url, "own").unwrap(), same_server);
        }
    }
}
