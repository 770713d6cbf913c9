//! The database at a start: waits for it, brings its schema up to date, and reads the shared secrets.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kernel::store::{Db, SchemaError, StoreError};
use secrets::SecretsError;
use tokio_util::sync::CancellationToken;

use crate::{
    config::ConfigError,
    failure::Failure,
    secret_key_file,
    service::{self, Prepared},
    system::{SystemClock, SystemRandom},
};

/// Time between two tries to reach a Postgres that does not answer at the start.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Time between two lines in the log that say so.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Opens Postgres without migrating.
///
/// # Errors
/// Nothing answers; the URL is not repeated, because it may hold a password.
pub async fn connect(url: &str) -> Result<Db, Failure> {
    Db::connect_postgres(url)
        .await
        .map_err(|error| Failure::failed("DATABASE_URL: Postgres does not answer", error))
}

/// Opens Postgres without migrating, once it answers: it may be started at the same time as this process, or after
/// it.
///
/// # Errors
/// It refuses for a permanent reason, or `shutdown` came first.
pub async fn connect_patiently(url: &str, shutdown: &CancellationToken) -> Result<Db, Failure> {
    let mut said = None::<Instant>;
    loop {
        let probe = shutdown.run_until_cancelled(Db::probe_postgres(url));
        match probe.await {
            None => return Err(Failure::Failed("stopped before Postgres answered".to_owned())),
            Some(Ok(())) => return connect(url).await,
            Some(Err(error @ (StoreError::Busy | StoreError::Unavailable(_)))) => {
                if said.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
                    tracing::warn!(%error, "DATABASE_URL: Postgres does not answer; the start waits for it");
                    said = Some(Instant::now());
                }
            }
            Some(Err(error)) => return Err(Failure::failed("DATABASE_URL: Postgres does not answer", error)),
        }
        shutdown.run_until_cancelled(tokio::time::sleep(PROBE_INTERVAL)).await;
    }
}

/// Brings a schema up to date.
///
/// # Errors
/// A migration failed, or the database is newer than what this build can use.
pub async fn migrate(db: &Db) -> Result<(), Failure> {
    db.migrate().await.map_err(unusable)
}

/// A schema that cannot be used: one of a newer release is a matter of which binary is started.
fn unusable(error: SchemaError) -> Failure {
    match error {
        SchemaError::Newer { .. } => ConfigError::new("DATABASE_URL", error.to_string()).into(),
        SchemaError::Migrate(_) | SchemaError::Store(_) => {
            Failure::failed("the database cannot be brought up to date", error)
        }
    }
}

/// Checks whether this build can use the schema, without changing anything.
///
/// # Errors
/// A newer release made it and this one cannot use it (a fault of the settings).
pub async fn check_schema(db: &Db) -> Result<(), Failure> {
    db.check_schema().await.map_err(unusable)
}

/// Sets up the log and the shared keys of a database; `history_file_id` is that of a SQLite file.
///
/// # Errors
/// The schema does not exist, or the secrets do not decrypt with the keys of the file (a fault of the settings).
pub async fn prepare(db: &Db, history_file_id: &str, key_file: &Path) -> Result<Prepared, Failure> {
    check_schema(db).await?;
    let mut keys = secret_key_file::read(key_file)?;
    loop {
        let prepared = service::prepare(db, &SystemClock, &SystemRandom, history_file_id, &keys).await;
        match prepared {
            Ok(prepared) => return Ok(prepared),
            // The file may have been replaced, and the secrets rotated, since it was read.
            Err(error @ SecretsError::MissingKeys { .. }) => {
                let again = secret_key_file::read(key_file)?;
                if again.ids().eq(keys.ids()) {
                    return Err(refused_secrets(key_file, error));
                }
                keys = again;
            }
            Err(error) => return Err(refused_secrets(key_file, error)),
        }
    }
}

/// Secrets that do not decrypt: a matter of which keys are in the file.
pub(crate) fn refused_secrets(key_file: &Path, error: SecretsError) -> Failure {
    let advice = match &error {
        SecretsError::MissingKeys { .. } => {
            "put the line of the missing key back, as it was when the database was used"
        }
        SecretsError::Invalid(_) => "restore a backup of the database",
        SecretsError::Store(_) | SecretsError::Random(_) => {
            return Failure::failed("the database cannot be set up", error);
        }
    };
    ConfigError::new(secret_key_file::SETTING, format!("{}: {error}; {advice}", key_file.display())).into()
}
