//! `control edge-keys`: the keys of edges, directly in the database; running replicas see it within a second.

use std::process::ExitCode;

use clap::Subcommand;
use kernel::{error::ServiceError, store::StoreError};
use platform::settings::{ConfigError, name};
use push::edge_keys;

use super::{connect, failed, say};
use crate::{
    config::{Place, parse},
    failure::Failure,
    system::{SystemClock, SystemRandom},
};

/// Arguments of `control edge-keys`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key of an edge and print it; it is shown this once. The edge's other keys stay valid.
    Create {
        /// Name of the edge: letters, digits and . _ -
        edge: String,
        /// A key of 80 characters A-Z a-z 0-9 that the edge shall have, for automation [default: a random one]
        #[arg(long, env = "WAYMARK_EDGE_KEY", value_name = "KEY", hide_env_values = true)]
        key: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// List the keys: number, edge, when made and when revoked, in milliseconds since 1970.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a key by its number, or every key of an edge; its open stream ends within a second.
    Revoke {
        /// Number of the key, as `list` shows it
        #[arg(required_unless_present = "edge", conflicts_with = "edge")]
        number: Option<i64>,
        /// Revoke every key of this edge
        #[arg(long, value_name = "NAME")]
        edge: Option<String>,
        #[command(flatten)]
        place: Place,
    },
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let clock = SystemClock;
    let mut code = ExitCode::SUCCESS;
    let db = match args.command {
        Command::Create { edge, key, place } => {
            let edge = name("EDGE", &edge)?;
            let given = parse::operator_key(key.filter(|key| !key.is_empty()))
                .map_err(|error| ConfigError::new("WAYMARK_EDGE_KEY", error.reason))?;
            let db = connect(place).await?;
            let made = match given {
                None => edge_keys::create(&db, &clock, &SystemRandom, &edge).await.map(|(_, key)| key),
                Some(key) => edge_keys::add(&db, &clock, &edge, &key).await.map(|_| key),
            };
            say(&made.map_err(|error| match error {
                ServiceError::Store(StoreError::Unique(_)) => {
                    Failure::Failed("this key is there already, or was revoked".to_owned())
                }
                error => failed(error),
            })?);
            db
        }
        Command::List { place } => {
            let db = connect(place).await?;
            let mut conn = db.read().await.map_err(failed)?;
            for key in push::store::edge_keys::list(&mut conn).await.map_err(failed)? {
                let revoked = key.revoked_at.map_or("valid".to_owned(), |at| format!("revoked {at}"));
                say(&format!("{}\t{}\tmade {}\t{revoked}", key.seq, key.edge_id, key.created_at));
            }
            drop(conn);
            db
        }
        Command::Revoke { number, edge, place } => {
            let db = connect(place).await?;
            let revoked = match (number, &edge) {
                (Some(number), _) => u64::from(edge_keys::revoke(&db, &clock, number).await.map_err(failed)?),
                (None, Some(edge)) => edge_keys::revoke_all(&db, &clock, edge).await.map_err(failed)?,
                (None, None) => 0,
            };
            say(&format!("{revoked} keys were revoked."));
            if revoked == 0 {
                code = ExitCode::from(1);
            }
            db
        }
    };
    db.close().await;
    Ok(code)
}
