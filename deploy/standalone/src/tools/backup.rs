//! `waymark backup` and `waymark restore`: a SQLite database to a file and back.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use control::{failure::Failure, secret_key_file};
use kernel::store::{
    Db, StoreError,
    backup::{self, BackupError, Held},
};
use scan_store::store::{check as check_scans, file_of};
use secrets::keys::KeyId;

use super::{keys::Place, shown::say};
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
    if file_of(&args.file).exists() {
        let reason = format!("{} is there already: give a new name", file_of(&args.file).display());
        return Err(ConfigError::new("FILE", reason).into());
    }
    let partial = with_suffix(&args.file, ".partial");
    // Of an attempt that was broken off.
    remove_if_there(&partial)
        .and_then(|()| remove_if_there(&file_of(&partial)))
        .map_err(|error| Failure::failed("the backup", error))?;
    let held =
        copy_checked(database, &partial).await.map_err(|error| Failure::failed("the backup", error))?;
    // The scans second: one that is moved out of the database meanwhile is in both, and never in neither.
    let scans = file_of(&partial);
    let stored = copy_scans(&file_of(database), &scans).await;
    if stored.is_err() {
        // A copy without its scans is none.
        let _ = fs::remove_file(&partial);
    }
    let stored = stored.map_err(|error| Failure::failed("the backup", error))?;
    // Never over a file that came meanwhile. The database comes last: where it is, its scans are.
    let mut moved = Ok(());
    if stored.is_some() {
        moved = place(&scans, &file_of(&args.file));
    }
    moved = moved.and_then(|()| {
        place(&partial, &args.file).inspect_err(|_| {
            // Scans without their database would be in the way of the next attempt.
            if stored.is_some() {
                let _ = fs::remove_file(file_of(&args.file));
            }
        })
    });
    moved.and_then(|()| sync_folder_of(&args.file)).map_err(|error| Failure::failed("the backup", error))?;
    say(&format!("{}: {}, checked.", args.file.display(), described(&held)));
    if let Some(bytes) = stored {
        say(&format!(
            "{}: its scans in {bytes} bytes, checked; it belongs to it.",
            file_of(&args.file).display()
        ));
    }
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
    let scans = file_of(&args.file);
    if scans.exists() {
        check_scans(&scans).await.map_err(|error| unfit(&scans, &error))?;
    }
    // Nobody else uses the database as long as this is held.
    let mut data_dir = DataDir::open(&config.data_dir)?;
    data_dir.hold_database(database)?;
    // Scans may be there alone: their database was moved away by hand.
    let there = [file_of(database), database.to_owned()];
    let there = there.into_iter().find(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0));
    if let Some(file) = there.as_ref().filter(|_| !args.replace) {
        let reason = format!("{} holds a database: say --replace to rename it", file.display());
        return Err(ConfigError::new("WAYMARK_DATA_DIR", reason).into());
    }
    let fresh = with_suffix(database, ".restored");
    // Of an attempt that was broken off.
    remove_if_there(&fresh).map_err(|error| failed(&error))?;
    let held = copy_checked(&args.file, &fresh).await.map_err(|error| failed(&error))?;
    remove_if_there(&file_of(&fresh)).map_err(|error| failed(&error))?;
    let stored = copy_scans(&scans, &file_of(&fresh)).await.map_err(|error| failed(&error))?;
    if there.is_some() {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let kept = with_suffix(database, &format!(".replaced-{seconds}"));
        // The database last: where it is, its scans are.
        for (from, to) in [(file_of(database), file_of(&kept)), (database.to_owned(), kept.clone())] {
            for suffix in ["-wal", "-shm", ""] {
                let from = with_suffix(&from, suffix);
                if from.exists() {
                    fs::rename(&from, with_suffix(&to, suffix)).map_err(|error| failed(&error))?;
                }
            }
        }
        say(&format!("What was there is in {}.", kept.display()));
    }
    // The history is another from here on: edges drop what they hold and read everything again.
    for suffix in ["-wal", "-shm", ".history"] {
        remove_if_there(&with_suffix(database, suffix)).map_err(|error| failed(&error))?;
    }
    for suffix in ["-wal", "-shm"] {
        remove_if_there(&with_suffix(&file_of(database), suffix)).map_err(|error| failed(&error))?;
    }
    if stored.is_some() {
        fs::rename(file_of(&fresh), file_of(database)).map_err(|error| failed(&error))?;
    }
    fs::rename(&fresh, database).and_then(|()| sync_folder_of(database)).map_err(|error| failed(&error))?;
    say(&format!("{}: {}, restored. Start `waymark up`.", database.display(), described(&held)));
    if stored.is_none() {
        say(&format!("There is no {}: scans that stood in it are not restored.", scans.display()));
    }
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

/// Copies the scans of a database and looks the copy through; gives its size, or nothing where there are none.
async fn copy_scans(source: &Path, target: &Path) -> Result<Option<u64>, BackupError> {
    if !source.exists() {
        return Ok(None);
    }
    backup::copy(source, target).await?;
    let checked = check_scans(target).await;
    if checked.is_err() {
        let _ = fs::remove_file(target);
    }
    checked.map(Some)
}

/// Gives a file its name, where there is none yet.
fn place(partial: &Path, file: &Path) -> io::Result<()> {
    fs::hard_link(partial, file).and_then(|()| fs::remove_file(partial))
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
