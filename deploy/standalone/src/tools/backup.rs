//! `waymark backup` and `waymark restore`: a SQLite database to a file and back.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use control::{failure::Failure, secret_key_file};
use kernel::store::{
    Db, StoreError,
    backup::{self, BackupError, Held},
};
use secrets::keys::KeyId;

use super::keys::Place;
use crate::{
    config::{Config, ConfigError, Database, FileStore},
    data_dir::DataDir,
};

/// Arguments of `waymark backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The file to write; it must not be there
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: Place,
}

/// Arguments of `waymark restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A file that `waymark backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rename a database that is there; the new name says when
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    place: Place,
}

/// Writes a backup while the service runs, and looks it through.
///
/// # Errors
/// There is no SQLite database, the file is there or cannot be written, or the copy is not whole.
pub async fn run_backup(args: BackupArgs) -> Result<ExitCode, Failure> {
    let config = args.place.config()?;
    let database = sqlite(&config, "back it up by pg_dump")?;
    if !database.is_file() {
        let reason = format!("{} is not there: name the folder of `waymark up`", database.display());
        return Err(ConfigError::new("WAYMARK_DATA_DIR", reason).into());
    }
    if args.file.exists() {
        let reason = format!("{} is there already: give a new name", args.file.display());
        return Err(ConfigError::new("FILE", reason).into());
    }
    let partial = with_suffix(&args.file, ".partial");
    let held =
        copy_checked(database, &partial).await.map_err(|error| Failure::failed("the backup", error))?;
    // Never over a file that came meanwhile.
    let moved = fs::hard_link(&partial, &args.file).and_then(|()| fs::remove_file(&partial));
    moved.and_then(|()| sync_folder_of(&args.file)).map_err(|error| Failure::failed("the backup", error))?;
    say(&format!("{}: {}, checked.", args.file.display(), described(&held)));
    if let FileStore::Folder(folder) = &config.files {
        say(&format!("The content of files is not in it: copy {} too.", folder.display()));
    }
    let keys = config.secret_key_path();
    say(&format!(
        "The key file is not in it: keep a copy of {} apart from the backup, which cannot be used without it.",
        keys.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Puts a backup in the place of the database; the service must not run.
///
/// # Errors
/// The backup is not whole, the service runs, or there is a database and nothing is said of it.
pub async fn run_restore(args: RestoreArgs) -> Result<ExitCode, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed("the restore", error);
    let config = args.place.config()?;
    let database = sqlite(&config, "restore it by pg_restore")?;
    backup::check(&args.file).await.map_err(|error| unfit(&args.file, &error))?;
    // Nobody else uses the database as long as this is held.
    let mut data_dir = DataDir::open(&config.data_dir)?;
    data_dir.hold_database(database)?;
    let is_there = fs::metadata(database).is_ok_and(|found| found.len() > 0);
    if is_there && !args.replace {
        let reason = format!("{} holds a database: say --replace to rename it", database.display());
        return Err(ConfigError::new("WAYMARK_DATA_DIR", reason).into());
    }
    let fresh = with_suffix(database, ".restored");
    // Of an attempt that was broken off.
    remove_if_there(&fresh).map_err(|error| failed(&error))?;
    let held = copy_checked(&args.file, &fresh).await.map_err(|error| failed(&error))?;
    if is_there {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let kept = with_suffix(database, &format!(".replaced-{seconds}"));
        for suffix in ["", "-wal", "-shm"] {
            let from = with_suffix(database, suffix);
            if from.exists() {
                fs::rename(&from, with_suffix(&kept, suffix)).map_err(|error| failed(&error))?;
            }
        }
        say(&format!("What was there is in {}.", kept.display()));
    }
    // The history is another from here on: edges drop what they hold and read everything again.
    for suffix in ["-wal", "-shm", ".history"] {
        remove_if_there(&with_suffix(database, suffix)).map_err(|error| failed(&error))?;
    }
    fs::rename(&fresh, database).and_then(|()| sync_folder_of(database)).map_err(|error| failed(&error))?;
    say(&format!("{}: {}, restored. Start `waymark up`.", database.display(), described(&held)));
    if let FileStore::Folder(folder) = &config.files {
        say(&format!("The content of files is not in it: {} must be of the same time.", folder.display()));
    }
    if let Some(text) = lacking_keys(&config, database).await.map_err(|error| failed(&error))? {
        say(&text);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is missing in the key file before a restored database can be used.
async fn lacking_keys(config: &Config, database: &Path) -> Result<Option<String>, StoreError> {
    let db = Db::open_sqlite(database).await?;
    let needed = ::secrets::find_keys(&mut db.read().await?).await;
    db.close().await;
    let path = config.secret_key_path();
    let held: Vec<KeyId> = secret_key_file::read(&path).map(|keys| keys.ids().collect()).unwrap_or_default();
    let missing: Vec<String> =
        needed?.iter().filter(|id| !held.contains(id)).map(ToString::to_string).collect();
    Ok((!missing.is_empty()).then(|| {
        format!(
            "It cannot be used yet: it is encrypted with the key {}, which {} does not hold. Put the line of that key \
             there first.",
            missing.join(", "),
            path.display()
        )
    }))
}

/// Copies and looks the copy through; one that is not whole is removed.
async fn copy_checked(source: &Path, target: &Path) -> Result<Held, BackupError> {
    backup::copy(source, target).await?;
    let checked = backup::check(target).await;
    if checked.is_err() {
        let _ = fs::remove_file(target);
    }
    checked
}

fn sqlite<'c>(config: &'c Config, instead: &str) -> Result<&'c Path, ConfigError> {
    match &config.database {
        Database::Sqlite(path) => Ok(path),
        Database::Postgres(_) => Err(ConfigError::new(
            "DATABASE_URL",
            format!("it is Postgres, which has tools for this: {instead}"),
        )),
    }
}

fn unfit(file: &Path, error: &BackupError) -> Failure {
    ConfigError::new("FILE", format!("{} cannot be restored: {error}", file.display())).into()
}

fn described(held: &Held) -> String {
    format!("{} links and {} Thngs in {} bytes", held.links, held.thngs, held.bytes)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync_folder_of(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn say(line: &str) {
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
