//! `waymark keys`: operator keys, directly in the database, since no API makes them.
//!
//! It may run beside `waymark up`: SQLite in write-ahead mode takes both, and the next request sees it.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use clap::Subcommand;
use control::domain::access;

use crate::{
    config::{Config, ConfigError, Database, Settings},
    failure::Failure,
    seed,
    system::{SystemClock, SystemRandom},
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
        place: Place,
    },
    /// Revoke one key, or all of the operator's.
    Revoke {
        /// The key; - reads it from stdin, so that it is not in the list of processes.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        key: Option<String>,
        /// Revoke every key of the operator.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the database is, as for `waymark up`.
#[derive(Debug, clap::Args)]
struct Place {
    /// TOML file of `waymark up` [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    config: Option<String>,
    /// Data folder of `waymark up` [default: ./data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    data_dir: Option<String>,
    /// Path of a SQLite file, or postgres://… [default: DATA_DIR/waymark.db]
    #[arg(long, env = "DATABASE_URL", value_name = "PATH|URL", hide_env_values = true)]
    database_url: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no database, or it failed.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let (Command::Create { place } | Command::Revoke { place, .. }) = &args.command;
    let config = Config::read(Settings {
        config: place.config.clone(),
        data_dir: place.data_dir.clone(),
        database_url: place.database_url.clone(),
        ..Settings::default()
    })?;
    if let Database::Sqlite(path) = &config.database
        && !path.is_file()
    {
        let reason = format!("{} is not there: start `waymark up` first, or name its folder", path.display());
        return Err(ConfigError::new("WAYMARK_DATA_DIR", reason).into());
    }
    let (db, _) = connect(&config.database).await?;
    let failed = |error| Failure::failed("the database", error);
    let (clock, random) = (SystemClock, SystemRandom);
    let mut code = ExitCode::SUCCESS;
    let line = match args.command {
        Command::Create { .. } => seed::create_key(&db, &clock, &random).await.map_err(failed)?,
        Command::Revoke { all: true, .. } => {
            let count = seed::revoke_all_keys(&db, &clock).await.map_err(failed)?;
            format!("{count} keys were revoked; `waymark keys create` makes a new one.")
        }
        Command::Revoke { key, .. } => {
            let key = read_key(key.unwrap_or_default())?;
            if seed::revoke_key(&db, &clock, &key).await.map_err(failed)? {
                "The key was revoked.".to_owned()
            } else {
                code = ExitCode::from(1);
                "There is no such key that is valid.".to_owned()
            }
        }
    };
    db.close().await;
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "{line}");
    Ok(code)
}

fn read_key(argument: String) -> Result<String, Failure> {
    let key = if argument == "-" {
        let mut text = String::new();
        io::stdin().take(1_024).read_to_string(&mut text).map_err(|error| Failure::failed("stdin", error))?;
        text.trim().to_owned()
    } else {
        argument
    };
    if access::is_key(&key) {
        Ok(key)
    } else {
        Err(ConfigError::new("KEY", format!("a key has {} characters A-Z a-z 0-9", access::KEY_LEN)).into())
    }
}
