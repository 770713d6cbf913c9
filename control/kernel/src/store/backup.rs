//! Online backups of a SQLite database, verified before they are reported as complete.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use super::STATEMENT_TIMEOUT;

const LINKS: &str = "SELECT COUNT(*) FROM redirections WHERE deleted_rev IS NULL";
const THNGS: &str = "SELECT COUNT(*) FROM thngs";

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The copy, or its source, is invalid.
    #[error("{0}")]
    Damaged(String),
    /// The database failed.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Counts of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Redirections.
    pub links: u64,
    /// Thngs.
    pub thngs: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Copies the state of one moment into a new file, readable by its owner only; it is synced when this returns.
///
/// Other processes may use the database meanwhile. The content of its write-ahead log is included.
///
/// # Errors
/// The database cannot be read, or `target` exists or cannot be written.
pub async fn copy(source: &Path, target: &Path) -> Result<(), BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    let copied = copy_into(source, target).await;
    if copied.is_err() {
        // What there is of it is of no use to anybody.
        let _ = std::fs::remove_file(target);
        return copied;
    }
    made.sync_all()?;
    Ok(())
}

async fn copy_into(source: &Path, target: &Path) -> Result<(), BackupError> {
    let text = target.to_str().ok_or_else(|| BackupError::Damaged("the path is not UTF-8".to_owned()))?;
    let mut conn = SqliteConnectOptions::new()
        .filename(source)
        .create_if_missing(false)
        .busy_timeout(STATEMENT_TIMEOUT)
        .synchronous(SqliteSynchronous::Full)
        .connect()
        .await?;
    // Row numbers, and so the order of insertion, stay as they are.
    let copied = sqlx::query("VACUUM INTO $1").bind(text).execute(&mut conn).await;
    conn.close().await?;
    copied?;
    Ok(())
}

/// Verifies every page and index of a file, and counts what it holds.
///
/// # Errors
/// [`BackupError::Damaged`] when it is not a database of this product, or not complete.
pub async fn check(file: &Path) -> Result<Held, BackupError> {
    let (bytes, [links, thngs]) = check_file(file, [LINKS, THNGS]).await?;
    Ok(Held { links, thngs, bytes })
}

/// Verifies every page and index of a file, and counts what it holds; gives its size, too.
///
/// # Errors
/// [`BackupError::Damaged`] when it is not complete, or has not the tables that are counted.
pub async fn check_file<const N: usize>(
    file: &Path,
    counts: [&'static str; N],
) -> Result<(u64, [u64; N]), BackupError> {
    let bytes = File::open(file)?.metadata()?.len();
    let mut conn = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .read_only(true)
        .busy_timeout(STATEMENT_TIMEOUT)
        .connect()
        .await
        .map_err(|error| damaged(&error))?;
    let held = look_through(&mut conn, counts).await;
    // The result is known, whether or not closing succeeds.
    let _ = conn.close().await;
    Ok((bytes, held?))
}

async fn look_through<const N: usize>(
    conn: &mut SqliteConnection,
    statements: [&'static str; N],
) -> Result<[u64; N], BackupError> {
    let found: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_all(&mut *conn)
        .await
        .map_err(|error| damaged(&error))?;
    if found != ["ok"] {
        return Err(BackupError::Damaged(format!("it is damaged: {}", found.join("; "))));
    }
    let orphans = sqlx::query("PRAGMA foreign_key_check").fetch_optional(&mut *conn).await?;
    if orphans.is_some() {
        return Err(BackupError::Damaged("it is damaged: rows refer to rows that are not there".to_owned()));
    }
    let mut counts = [0; N];
    for (count, sql) in counts.iter_mut().zip(statements) {
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut *conn)
            .await
            .map_err(|_| BackupError::Damaged("it is no database of Waymark".to_owned()))?;
        *count = u64::try_from(found).unwrap_or_default();
    }
    Ok(counts)
}

fn damaged(error: &sqlx::Error) -> BackupError {
    BackupError::Damaged(format!("it cannot be read as a database: {error}"))
}
