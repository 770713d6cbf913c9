//! `control operators`, and what `waymark operators` has of it: the people and programs of an account, directly in the database, which needs no key.

use std::process::ExitCode;

use clap::Subcommand;
use kernel::store::Db;
use shared::{
    id::AccountId,
    time::{Clock as _, UnixMillis},
};
use signin::service::commands::{self, Listed};
use tenants::domain::{email::Email, operator::OperatorKind};

use super::{
    connect,
    keys::{date, refused},
    say,
};
use crate::{
    config::{ConfigError, Place},
    failure::Failure,
    system::{SystemClock, SystemRandom},
};

/// Arguments of the commands; `P` says where the database is.
#[derive(Debug, clap::Args)]
pub struct Args<P: clap::Args> {
    #[command(subcommand)]
    command: Command<P>,
}

#[derive(Debug, Subcommand)]
enum Command<P: clap::Args> {
    /// List the operators of an account.
    ///
    /// A line has id, address or name, roles, when it was made, and whether it is invited, has a password and a second
    /// factor.
    List {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        place: P,
    },
    /// Invite somebody and print the code of the invitation; it is shown this once and works for seven days.
    Invite {
        #[command(flatten)]
        who: Invited,
        #[command(flatten)]
        place: P,
    },
    /// Remove an operator with its keys and sessions.
    Remove {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        place: P,
    },
    /// Print a code by which an operator sets a password, the first one or another; it works once, within an hour.
    ResetPassword {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        place: P,
    },
    /// Turn off the second factor of an operator who lost it, and end its sessions.
    ResetSecondFactor {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        place: P,
    },
}

/// Whose operators.
#[derive(Debug, clap::Args)]
struct Of {
    /// Id of the account [default: the first one]
    #[arg(long, value_name = "ID")]
    account: Option<String>,
}

/// Which operator.
#[derive(Debug, clap::Args)]
struct Who {
    /// Its e-mail address
    #[arg(value_name = "EMAIL")]
    email: String,
    #[command(flatten)]
    of: Of,
}

/// Who is invited.
#[derive(Debug, clap::Args)]
struct Invited {
    #[command(flatten)]
    who: Who,
    /// What it may do: a role that every account has, such as owner, editor or viewer
    #[arg(long, value_name = "ROLE")]
    role: String,
}

impl<P: clap::Args> Args<P> {
    /// Where the database is.
    pub const fn place(&self) -> &P {
        match &self.command {
            Command::List { place, .. }
            | Command::Invite { place, .. }
            | Command::Remove { place, .. }
            | Command::ResetPassword { place, .. }
            | Command::ResetSecondFactor { place, .. } => place,
        }
    }

    /// Runs the command, and closes the database.
    ///
    /// # Errors
    /// An argument is wrong, or the command is refused.
    pub async fn run(self, db: Db) -> Result<ExitCode, Failure> {
        let code = match self.command {
            Command::List { of, .. } => list(&db, of).await?,
            Command::Invite { who, .. } => invite(&db, who).await?,
            Command::Remove { who, .. } => remove(&db, who).await?,
            Command::ResetPassword { who, .. } => reset_password(&db, who).await?,
            Command::ResetSecondFactor { who, .. } => reset_second_factor(&db, who).await?,
        };
        db.close().await;
        Ok(code)
    }
}

pub(super) async fn run(args: Args<Place>) -> Result<ExitCode, Failure> {
    let db = connect(args.place().clone()).await?;
    args.run(db).await
}

/// Prints a line for each operator.
async fn list(db: &Db, of: Of) -> Result<ExitCode, Failure> {
    let now = SystemClock.now();
    for listed in commands::list(db, of.read()?).await.map_err(refused)? {
        say(&line(&listed, now));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(Listed { operator, has_password, has_second_factor }: &Listed, now: UnixMillis) -> String {
    let name = match operator.kind {
        OperatorKind::Person => &operator.email,
        OperatorKind::Machine => operator.details.name.as_ref().unwrap_or(&operator.email),
    };
    let state = match (operator.kind, operator.invitation) {
        (OperatorKind::Machine, _) => "a program".to_owned(),
        (OperatorKind::Person, Some(invitation)) if invitation.until <= now => "invitation ended".to_owned(),
        (OperatorKind::Person, Some(invitation)) => format!("invited until {}", date(invitation.until)),
        (OperatorKind::Person, None) => {
            let has = |is: bool| if is { "with" } else { "without" };
            format!("{} password\t{} second factor", has(*has_password), has(*has_second_factor))
        }
    };
    let (name, roles) = (name.replace(char::is_control, " "), operator.roles.join(","));
    format!("{}\t{name}\t{roles}\tmade {}\t{state}", operator.id, date(operator.created_at))
}

/// Invites somebody and prints the code.
async fn invite(db: &Db, Invited { who, role }: Invited) -> Result<ExitCode, Failure> {
    let (email, account) = who.read()?;
    let invited = commands::invite(db, (&SystemClock, &SystemRandom), account, &email, &role).await;
    say(&invited.map_err(refused)?);
    Ok(ExitCode::SUCCESS)
}

/// Removes an operator and says so.
async fn remove(db: &Db, who: Who) -> Result<ExitCode, Failure> {
    let (email, account) = who.read()?;
    commands::remove(db, &SystemClock, account, &email).await.map_err(refused)?;
    say("The operator was removed, with its keys and sessions.");
    Ok(ExitCode::SUCCESS)
}

/// Prints a code by which an operator sets a password.
async fn reset_password(db: &Db, who: Who) -> Result<ExitCode, Failure> {
    let (email, account) = who.read()?;
    let code = commands::reset_password(db, (&SystemClock, &SystemRandom), account, &email).await;
    say(&code.map_err(refused)?);
    Ok(ExitCode::SUCCESS)
}

/// Turns a second factor off and says so.
async fn reset_second_factor(db: &Db, who: Who) -> Result<ExitCode, Failure> {
    let (email, account) = who.read()?;
    if commands::reset_second_factor(db, &SystemClock, account, &email).await.map_err(refused)? {
        say("The second factor is off, and the sessions of the operator have ended.");
        return Ok(ExitCode::SUCCESS);
    }
    say("No second factor was on.");
    Ok(ExitCode::from(1))
}

impl Of {
    fn read(self) -> Result<Option<AccountId>, ConfigError> {
        let account = self.account.map(|id| id.parse::<AccountId>()).transpose();
        account.map_err(|error| ConfigError::new("--account", error.to_string()))
    }
}

impl Who {
    fn read(self) -> Result<(Email, Option<AccountId>), ConfigError> {
        let email = Email::parse(&self.email).map_err(|fault| ConfigError::new("EMAIL", fault))?;
        Ok((email, self.of.read()?))
    }
}
