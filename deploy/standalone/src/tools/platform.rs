//! `waymark platform`: what the platform operator does, directly in the database, beside `waymark up`.

use std::process::ExitCode;

use control::{cli::platform::Command, failure::Failure};

use super::keys::{Place, open};

/// Arguments of `waymark platform`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command<Place>,
}

/// Runs the command.
///
/// # Errors
/// There is no database, an argument is wrong, or what it names is not there.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let config = args.command.place().config()?;
    let db = open(&config).await?;
    let code = args.command.run(&db, config.scans).await?;
    db.close().await;
    Ok(code)
}
