//! `control keys`: operator keys, directly in the database, because no API creates them.

use std::{
    io::{self, Read as _},
    process::ExitCode,
};

use clap::Subcommand;
use shared::time::UnixMillis;

use super::{connect, failed, say};
use crate::{
    config::{ConfigError, Place},
    domain::access,
    failure::Failure,
    service::seed,
    store::Db,
    system::{SystemClock, SystemRandom},
};

/// Arguments of `control keys`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key for the first operator and print it; it is shown this once.
    Create {
        #[command(flatten)]
        place: Place,
    },
    /// List the keys of the first operator: when each was made, and whether it is valid; never the keys themselves.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Revoke one key, or all of the first operator's.
    Revoke {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: Place,
    },
}

/// Which keys shall be revoked.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The key; - reads it from stdin, so that it is not in the list of processes.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    key: Option<String>,
    /// Revoke every key of the operator.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Create { place } => {
            let db = connect(place).await?;
            create(&db).await?;
            db.close().await;
            Ok(ExitCode::SUCCESS)
        }
        Command::List { place } => {
            let db = connect(place).await?;
            list(&db).await?;
            db.close().await;
            Ok(ExitCode::SUCCESS)
        }
        Command::Revoke { which, place } => {
            let db = connect(place).await?;
            let code = revoke(&db, which, "control keys create").await?;
            db.close().await;
            Ok(code)
        }
    }
}

/// Makes a key for the first operator and prints it.
pub async fn create(db: &Db) -> Result<(), Failure> {
    say(&seed::create_key(db, &SystemClock, &SystemRandom).await.map_err(failed)?);
    Ok(())
}

/// Prints a line for each key of the first operator: the start of its SHA-256, when it was made, its state.
pub async fn list(db: &Db) -> Result<(), Failure> {
    for key in seed::list_keys(db).await.map_err(failed)? {
        let start: String = key.hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let state = match key.revoked_at {
            None => "valid".to_owned(),
            Some(at) => format!("revoked {}", date(at)),
        };
        say(&format!("{start}\tmade {}\t{state}", date(key.created_at)));
    }
    Ok(())
}

fn date(at: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| format!("{at:.0}"))
}

/// Revokes keys and says so; `advice` is the command that makes a new one.
///
/// # Errors
/// The key has not the form of one.
pub async fn revoke(db: &Db, which: Which, advice: &str) -> Result<ExitCode, Failure> {
    if which.all {
        let count = seed::revoke_all_keys(db, &SystemClock).await.map_err(failed)?;
        say(&format!("{count} keys were revoked; `{advice}` makes a new one."));
        return Ok(ExitCode::SUCCESS);
    }
    let key = read_key(which.key.unwrap_or_default())?;
    if seed::revoke_key(db, &SystemClock, &key).await.map_err(failed)? {
        say("The key was revoked.");
        return Ok(ExitCode::SUCCESS);
    }
    say("There is no such key that is valid.");
    Ok(ExitCode::from(1))
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
