//! `waymark secrets`: the keys that encrypt the secrets in the database.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use ::secrets::keys::KeyId;
use clap::Subcommand;
use control::{cli, failure::Failure, secret_key_file};

use super::keys::{Place, open};

/// Arguments of `waymark secrets`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a new key in front of those of the key file, or make the file; the key itself is not shown.
    NewKey {
        #[command(flatten)]
        place: Place,
    },
    /// Encrypt every secret in the database with the first key of the key file; the service may run meanwhile.
    Rotate {
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command.
///
/// # Errors
/// The key file cannot be used, or there is no database, or a secret does not decrypt.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::NewKey { place } => {
            cli::secrets::new_key(&place.config()?.secret_key_path(), "waymark secrets rotate")?;
        }
        Command::Rotate { place } => {
            let config = place.config()?;
            let path = config.secret_key_path();
            secret_key_file::read(&path)?;
            let db = open(&config).await?;
            cli::secrets::rotate(&db, &path).await?;
            db.close().await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a database cannot be used without its key file.
pub(crate) fn lacks(path: &Path, keys: &BTreeSet<KeyId>) -> String {
    let ids: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let (path, ids) = (path.display(), ids.join(", "));
    format!("the database is encrypted with the key {ids}, and {path} is not there: put the key file back")
}
