//! `waymark audit`: checks the audit trail.

use std::process::ExitCode;

use clap::Subcommand;
use control::{
    cli::{self, audit::Which},
    failure::Failure,
    secret_key_file,
};

use super::keys::{Place, open};

/// Arguments of `waymark audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that no entry of the audit trail was changed, moved or removed; exit code 1 if one was.
    ///
    /// Entries are part of the check from seconds after they were made. The service may run meanwhile.
    Verify {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command.
///
/// # Errors
/// The key file cannot be used, or there is no database.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let Command::Verify { which, place } = args.command;
    let config = place.config()?;
    let path = config.secret_key_path();
    secret_key_file::read(&path)?;
    let db = open(&config).await?;
    let code = cli::audit::verify(&db, &path, which).await?;
    db.close().await;
    Ok(code)
}
