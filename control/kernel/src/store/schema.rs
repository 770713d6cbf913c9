//! The version of the database schema, and which releases may use it.
//!
//! A release only knows its own migrations. A newer one records the oldest schema version that a release must know to
//! use its schema, so that old and new releases run side by side while a fleet is upgraded.

use crate::store::Ctx;
use sqlx::migrate::Migrator;

use super::{Conn, Db, Raw, StoreError, execute, facets, on_db};

const PG_HAS_TABLE: &str = "SELECT to_regclass($1) IS NOT NULL";
const SQLITE_HAS_TABLE: &str = "SELECT COUNT(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = $1";

/// Written by the library of migrations.
const MIGRATIONS: &str = "_sqlx_migrations";
/// The table in which each release describes its schema.
const VERSIONS: &str = "schema_versions";

const NEWEST: &str = "SELECT MAX(version) FROM _sqlx_migrations";
const COMPATIBLE_FROM: &str = "SELECT compatible_from FROM schema_versions WHERE version = $1";
const SAY_COMPATIBLE_FROM: &str = "INSERT INTO schema_versions (version, compatible_from) VALUES ($1, $2) \
     ON CONFLICT (version) DO UPDATE SET compatible_from = excluded.compatible_from";

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It was created by a newer release, and this one cannot use it.
    #[error(
        "the database has schema {found} of a newer release, which can be used from schema {} on; this release has \
         {known}: start the newer release, or restore a backup of this one", .compatible_from.map_or(*.found, |from| from)
    )]
    Newer {
        /// The schema of the database.
        found: i64,
        /// The newest schema of this release.
        known: i64,
        /// The oldest schema whose releases can use it, if recorded.
        compatible_from: Option<i64>,
    },
    /// A migration failed.
    #[error(transparent)]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Db {
    fn migrator(&self) -> sqlx::migrate::Migrator {
        match self {
            Self::Pg(_) => sqlx::migrate!("migrations/postgres"),
            Self::Sqlite { .. } => sqlx::migrate!("migrations/sqlite"),
        }
    }

    /// Checks whether this release can use the schema, without changing anything.
    ///
    /// # Errors
    /// [`SchemaError::Newer`] when a newer release made it and this one cannot use it.
    pub async fn check_schema(&self) -> Result<(), SchemaError> {
        check(self, &self.migrator()).await.map(|_| ())
    }

    /// Brings the schema up to date; safe to run twice and from several processes. One of a newer release stays as it
    /// is, if this one can use it.
    ///
    /// # Errors
    /// A migration failed, or the database is newer than what this build can use.
    pub async fn migrate(&self) -> Result<(), SchemaError> {
        let mut migrator = self.migrator();
        let standing = check(self, &migrator).await?;
        if standing == Standing::Own {
            // Before the migrations, so that an older release that starts meanwhile finds a record for every schema.
            say_compatible_from(self, &migrator).await?;
        }
        if standing == Standing::Newer {
            tracing::warn!("the schema is of a newer release, which this one can use");
            migrator.set_ignore_missing(true);
        }
        match self {
            Self::Pg(pool) => {
                // An index over millions of rows takes longer than any request may, and so does waiting for another
                // process that builds it.
                let mut conn = pool.acquire().await.map_err(StoreError::from)?.detach();
                sqlx::query("SET statement_timeout = 0")
                    .execute(&mut conn)
                    .await
                    .map_err(StoreError::from)?;
                let migrated = migrator.run(&mut conn).await;
                // The migrations are done, whether or not closing succeeds.
                let _ = sqlx::Connection::close(conn).await;
                migrated?;
            }
            Self::Sqlite { write, .. } => migrator.run(write).await?,
        }
        if standing == Standing::Own {
            // The table may be one of them.
            say_compatible_from(self, &migrator).await?;
        }
        Ok(facets::fill_missing(self).await?)
    }
}

/// How the schema of a database stands to this release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is this release's own or older, or there is no schema yet.
    Own,
    /// It is of a newer release, and this one can use it.
    Newer,
}

/// The newest migration that this release knows.
fn newest_known(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// The oldest schema whose releases can use that of this release.
fn compatible_from(newest: i64) -> i64 {
    // Comments, and one number.
    let text = include_str!("../../migrations/compatible_from");
    let number = text.lines().find_map(|line| line.trim().parse().ok());
    // A file without a number only allows this release.
    number.unwrap_or(newest)
}

/// Checks whether this release can use a database.
async fn check(db: &Db, migrator: &Migrator) -> Result<Standing, SchemaError> {
    let known = newest_known(migrator);
    let mut conn = db.read().await?;
    let Some(found) = find_newest(&mut conn).await?.filter(|found| *found > known) else {
        return Ok(Standing::Own);
    };
    // A schema from before the table existed has no record.
    let row: Option<i64> = if has_table(&mut conn, VERSIONS).await? {
        on_db!(&mut conn, |c| sqlx::query_scalar(COMPATIBLE_FROM).bind(found).fetch_optional(c).await)
            .map_err(StoreError::from)?
    } else {
        None
    };
    match row {
        Some(from) if from <= known => Ok(Standing::Newer),
        compatible_from => Err(SchemaError::Newer { found, known, compatible_from }),
    }
}

/// The newest migration of a database, if it has any.
async fn find_newest(conn: &mut Conn) -> Result<Option<i64>, StoreError> {
    if !has_table(conn, MIGRATIONS).await? {
        return Ok(None);
    }
    Ok(on_db!(conn, |c| sqlx::query_scalar(NEWEST).fetch_one(c).await)?)
}

async fn has_table(conn: &mut Conn, name: &str) -> Result<bool, StoreError> {
    Ok(match conn.raw() {
        Raw::Pg(c) => sqlx::query_scalar(PG_HAS_TABLE).bind(name).fetch_one(c).await?,
        Raw::Sqlite(c) => sqlx::query_scalar(SQLITE_HAS_TABLE).bind(name).fetch_one(c).await?,
    })
}

/// Records, for the schema of this release and each one before it, the oldest schema whose releases can use it; does
/// nothing if the table does not exist yet.
async fn say_compatible_from(db: &Db, migrator: &Migrator) -> Result<(), StoreError> {
    let from = compatible_from(newest_known(migrator));
    let mut tx = db.begin(&Ctx::default()).await?;
    if has_table(&mut tx, VERSIONS).await? {
        let found = find_newest(&mut tx).await?.unwrap_or_default();
        let newest = newest_known(migrator);
        let versions = migrator.iter().map(|migration| migration.version);
        for version in versions.filter(|version| *version > found || *version == newest) {
            execute!(&mut *tx, SAY_COMPATIBLE_FROM, version, from)?;
        }
    }
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatible_from_names_an_existing_migration() {
        for migrator in [sqlx::migrate!("migrations/sqlite"), sqlx::migrate!("migrations/postgres")] {
            let newest = newest_known(&migrator);
            let from = compatible_from(i64::MIN);
            assert!(migrator.version_exists(from) && from <= newest, "{from} of {newest}");
        }
    }
}
