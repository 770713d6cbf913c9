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
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another test may be dropping it.
            let _ = run(&mut *admin, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
    Ok(())
}

async fn run(conn: &mut PgConnection, sql: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await?;
    Ok(())
}

/// The same server, another database.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (server, _) = url.rsplit_once('/').context("a URL with a database")?;
    Ok(format!("{server}/{name}"))
}
