//! `waymark operators`: the people and programs of an account, directly in the database, which needs no key.
//!
//! It may run beside `waymark up`.

use std::process::ExitCode;

use control::{cli::operators, failure::Failure};

use super::keys::{Place, open};

/// Arguments of `waymark operators`.
pub type Args = operators::Args<Place>;

/// Runs the command.
///
/// # Errors
/// There is no database, it failed, or an argument is wrong.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let db = open(&args.place().config()?).await?;
    args.run(db).await
}
