//! `waymark operators`: the people and programs of an account, directly in the database, which needs no key.
//!
//! It may run beside `waymark up`.

use std::process::ExitCode;

use clap::Subcommand;
use control::{
    cli::{
        self,
        operators::{Invited, Of, Who},
    },
    failure::Failure,
};

use super::keys::{Place, open};

/// Arguments of `waymark operators`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the operators of an account.
    ///
    /// A line has id, address or name, roles, when it was made, and whether it is invited, has a password and a second
    /// factor.
    List {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        place: Place,
    },
    /// Invite somebody and print the code of the invitation; it is shown this once and works for seven days.
    Invite {
        #[command(flatten)]
        who: Invited,
        #[command(flatten)]
        place: Place,
    },
    /// Remove an operator with its keys and sessions.
    Remove {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        place: Place,
    },
    /// Turn off the second factor of an operator who lost it, and end its sessions.
    ResetSecondFactor {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command.
///
/// # Errors
/// There is no database, it failed, or an argument is wrong.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let (Command::List { place, .. }
    | Command::Invite { place, .. }
    | Command::Remove { place, .. }
    | Command::ResetSecondFactor { place, .. }) = &args.command;
    let db = open(&place.config()?).await?;
    let code = match args.command {
        Command::List { of, .. } => cli::operators::list(&db, of).await?,
        Command::Invite { who, .. } => cli::operators::invite(&db, who).await?,
        Command::Remove { who, .. } => cli::operators::remove(&db, who).await?,
        Command::ResetSecondFactor { who, .. } => cli::operators::reset_second_factor(&db, who).await?,
    };
    db.close().await;
    Ok(code)
}
