//! Follows.

use std::process::ExitCode;

use crate::up::UpError;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// It failed.
pub async fn run(_args: Args) -> Result<ExitCode, UpError> {
    Err(UpError::Failed("comes soon".to_owned()))
}
