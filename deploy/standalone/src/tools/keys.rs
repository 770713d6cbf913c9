//! `waymark keys`: operator keys, directly in the database, which needs no key.
//!
//! It may run beside `waymark up`: SQLite in write-ahead mode takes both, and the next request sees it.

use std::process::ExitCode;

use clap::Subcommand;
use control::{
    cli::{
        self,
        keys::{New, Old, Which},
    },
    config::ScanTexts,
    failure::Failure,
};
use kernel::store::Db;

use crate::{
    config::{Config, ConfigError, Database, Settings},
    up::connect,
};

/// Arguments of `waymark keys`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key for the operator and print it; it is shown this once.
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        place: Place,
    },
    /// List the operator's keys, never the keys themselves.
    ///
    /// A line has id, label, when the key was made, in which hour it was last used, when it expires, and its state.
    /// The id is the first 24 hexadecimal digits of the SHA-256 of the key.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Replace a key by a new one, and print that; it is shown this once.
    Rotate {
        #[command(flatten)]
        old: Old,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke one key, or all of the operator's.
    Revoke {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the database is, as for `waymark up`.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// TOML file of `waymark up` [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    config: Option<String>,
    /// Data folder of `waymark up` [default: ./data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    data_dir: Option<String>,
    /// Path of a SQLite file, or postgres://… [default: DATA_DIR/waymark.db]
    #[arg(long, env = "DATABASE_URL", value_name = "PATH|URL", hide_env_values = true)]
    database_url: Option<String>,
    /// File of the keys that encrypt the secrets in the database [default: DATA_DIR/secret.key]
    #[arg(long, env = "WAYMARK_SECRET_KEY_FILE", value_name = "FILE")]
    secret_key_file: Option<String>,
    #[command(flatten)]
    scans: ScanTexts,
}

impl Place {
    /// The settings of `waymark up` that say where the database is.
    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        Config::read(Settings {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            database_url: self.database_url.clone(),
            secret_key_file: self.secret_key_file.clone(),
            scans: self.scans.clone(),
            ..Settings::default()
        })
    }
}

/// Opens the database of `waymark up`, which this release can use.
pub(super) async fn open(config: &Config) -> Result<Db, Failure> {
    if let Database::Sqlite(path) = &config.database
        && !path.is_file()
    {
        let reason = format!("{} is not there: start `waymark up` first, or name its folder", path.display());
        return Err(ConfigError::new("WAYMARK_DATA_DIR", reason).into());
    }
    let (db, _) = connect(&config.database).await?;
    control::serve::check_schema(&db).await?;
    Ok(db)
}

/// Runs the command.
///
/// # Errors
/// There is no database, or it failed.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let (Command::Create { place, .. }
    | Command::List { place }
    | Command::Rotate { place, .. }
    | Command::Revoke { place, .. }) = &args.command;
    let db = open(&place.config()?).await?;
    let code = match args.command {
        Command::Create { new, .. } => cli::keys::create(&db, new).await?,
        Command::List { .. } => cli::keys::list(&db).await?,
        Command::Rotate { old, .. } => cli::keys::rotate(&db, old).await?,
        Command::Revoke { which, .. } => cli::keys::revoke(&db, which, "waymark keys create").await?,
    };
    db.close().await;
    Ok(code)
}
