//! `control secrets`: the keys that encrypt the secrets in the database.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use kernel::store::Db;
use shared::time::Clock as _;

use super::{connect, say};
use crate::{
    config::{Place, SecretKeyFile},
    failure::Failure,
    secret_key_file, serve,
    system::{SystemClock, SystemRandom},
};

/// Arguments of `control secrets`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a new key in front of those of the key file, or make the file; the key itself is not shown.
    ///
    /// Copy the file to every machine of control before you rotate.
    NewKey {
        /// TOML file of `control serve` [default: none]
        #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
        config: Option<String>,
        #[command(flatten)]
        file: SecretKeyFile,
    },
    /// Encrypt every secret in the database with the first key of the key file; servers may run meanwhile.
    Rotate {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        file: SecretKeyFile,
    },
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::NewKey { config, file } => {
            let place = Place { config, ..Place::default() };
            new_key(&place.secret_key_file(file)?, "control secrets rotate")?;
        }
        Command::Rotate { place, file } => {
            let path = place.secret_key_file(file)?;
            secret_key_file::read(&path)?;
            let db = connect(place).await?;
            rotate(&db, &path).await?;
            db.close().await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a key to a file and says so; `next` is the command that uses it.
///
/// # Errors
/// The file cannot be used or written.
pub fn new_key(path: &Path, next: &str) -> Result<(), Failure> {
    let id = secret_key_file::add_key(path)?;
    say(&format!(
        "The key {id} is the first one of {}. Keep a copy of the file apart from backups.",
        path.display()
    ));
    say(&format!("`{next}` encrypts with it what is in the database."));
    Ok(())
}

/// Encrypts every secret with the first key of a file and says what was done.
///
/// # Errors
/// The file cannot be used, or a secret does not decrypt.
pub async fn rotate(db: &Db, path: &Path) -> Result<(), Failure> {
    let keys = secret_key_file::read(path)?;
    let done = ::secrets::rotate(db, &keys, &SystemRandom, SystemClock.now().0)
        .await
        .map_err(|error| serve::refused_secrets(path, error))?;
    let current = keys.current();
    say(&format!(
        "{} secrets were encrypted with the key {current}; {} were already.",
        done.changed, done.unchanged
    ));
    let older: Vec<String> = keys.ids().skip(1).map(|id| id.to_string()).collect();
    if !older.is_empty() {
        say(&format!("Only backups of before need the other keys of the file: {}.", older.join(", ")));
    }
    Ok(())
}
