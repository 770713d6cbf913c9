//! A schema of a newer release, which this release may or may not use.

use anyhow::{Result, ensure};
use kernel::store::SchemaError;
use tests::db::{Engine, Location, TestDb};

use crate::on_both_engines;

/// Runs statements behind the store.
pub(crate) async fn run(location: &Location, statements: &[String]) -> Result<()> {
    match location {
        Location::Sqlite(path) => {
            let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await?;
            for sql in statements {
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&pool).await?;
            }
            pool.close().await;
        }
        Location::Postgres(url) => {
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(url).await?;
            for sql in statements {
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&mut conn).await?;
            }
        }
    }
    Ok(())
}

/// What a newer release does to a schema: a migration that only adds, and what it says of it.
pub(crate) fn newer(version: i64, compatible_from: Option<i64>, engine: Engine) -> Vec<String> {
    let sum = if engine == Engine::Sqlite { "x'00'" } else { "'\\x00'" };
    let mut statements = vec![
        format!("ALTER TABLE products ADD COLUMN of_{version} TEXT"),
        format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES ({version}, 'newer', TRUE, {sum}, 1)"
        ),
    ];
    if let Some(from) = compatible_from {
        statements.push(format!("INSERT INTO schema_versions VALUES ({version}, {from})"));
    }
    statements
}

async fn an_older_release_uses_a_compatible_newer_schema(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    // This release has it.
    made.db.check_schema().await?;
    run(&made.location, &newer(9_001, Some(41), engine)).await?;
    made.db.check_schema().await?;
    made.db.migrate().await?;
    // The newest says what counts, be it that nobody older fits.
    for (version, says) in [(9_002, Some(9_002)), (9_003, None)] {
        run(&made.location, &newer(version, says, engine)).await?;
        for found in [made.db.check_schema().await, made.db.migrate().await] {
            let Err(SchemaError::Newer { found, compatible_from, .. }) = found else {
                anyhow::bail!("{version}: {found:?}")
            };
            ensure!((found, compatible_from) == (version, says), "{found} {compatible_from:?}");
        }
    }
    Ok(())
}

/// The last migration of this release; it makes a table, so it fails when it comes again.
const NEWEST: i64 = 78;

/// The row comes before the schema it is about: an older release that starts in between finds it.
async fn compatibility_is_recorded_before_the_migrations(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let newest = format!("DELETE FROM _sqlx_migrations WHERE version = {NEWEST}");
    run(&made.location, &[newest, "DELETE FROM schema_versions".to_owned()]).await?;
    let migrated = made.db.migrate().await;
    ensure!(matches!(migrated, Err(SchemaError::Migrate(_))), "{migrated:?}");
    let mark = |version: i64| newer(version, None, engine).swap_remove(1);
    run(&made.location, &[mark(NEWEST)]).await?;
    // A release that does not know the newest one would read this row.
    run(
        &made.location,
        &[
            format!(
                "INSERT INTO schema_versions SELECT 9001, compatible_from FROM schema_versions \
                WHERE version = {NEWEST}"
            ),
            mark(9_001),
        ],
    )
    .await?;
    made.db.check_schema().await?;
    Ok(())
}

on_both_engines!(
    an_older_release_uses_a_compatible_newer_schema,
    compatibility_is_recorded_before_the_migrations,
);

/// A database that does not answer in time says nothing of its schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_read_is_not_reported_as_a_newer_schema() -> Result<()> {
    let made = TestDb::new(Engine::Postgres).await?;
    run(&made.location, &newer(9_001, Some(41), Engine::Postgres)).await?;
    let Location::Postgres(url) = &made.location else { anyhow::bail!("not Postgres") };
    let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(url).await?;
    let lock = "BEGIN; LOCK TABLE schema_versions IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut conn).await?;
    let found = made.db.check_schema().await;
    ensure!(matches!(found, Err(SchemaError::Store(_))), "{found:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut conn).await?;
    made.db.check_schema().await?;
    Ok(())
}
