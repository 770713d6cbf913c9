//! Follows.

use std::process::ExitCode;

use crate::failure::Failure;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// It failed.
pub async fn run(_args: Args) -> Result<ExitCode, Failure> {
    Err(Failure::Failed("comes soon".to_owned()))
}
