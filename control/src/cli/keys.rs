//! `control keys`: operator keys, directly in the database, which needs no key.

use std::{
    io::{self, Read as _},
    process::ExitCode,
    time::Duration,
};

use clap::Subcommand;
use kernel::{domain::access, error::ServiceError, service::access::MAX_OVERLAP_MS, store::Db};
use shared::{
    id::ProjectId,
    networks::Networks,
    time::{Clock as _, UnixMillis},
};
use tenants::{
    domain::operator_key::{KeyStatus, OperatorKey},
    service::first_keys::{self, Named, NewFirstKey},
};

use super::{connect, failed, say};
use crate::{
    config::{ConfigError, Place},
    failure::Failure,
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
    /// Make a key for the first owner and print it; it is shown this once.
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        place: Place,
    },
    /// List the keys of the first owner, never the keys themselves.
    ///
    /// A line has id, label, when the key was made, in which hour it was last used, when it expires, and its state.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Replace a key by a new one, and print that; it is shown this once.
    Rotate {
        #[command(flatten)]
        old: Old,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke one key, or all of the first owner's.
    Revoke {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: Place,
    },
}

/// What a new key is like.
#[derive(Debug, clap::Args)]
pub struct New {
    /// What the key is called
    #[arg(long, value_name = "TEXT", default_value = "made by a command")]
    label: String,
    /// How long it works, as 90d, 12h or 30m [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    expires_in: Option<String>,
    /// The only addresses and networks from which it works, separated by commas, as 192.0.2.0/24 [default: all]
    #[arg(long, value_name = "CIDR,…")]
    networks: Option<String>,
    /// Id of the only project in which it works [default: the whole account]
    #[arg(long, value_name = "ID")]
    project: Option<String>,
}

/// Which key shall be replaced.
#[derive(Debug, clap::Args)]
pub struct Old {
    /// Id of the key, as `list` shows it, or the key itself; - reads it from stdin
    #[arg(value_name = "ID|KEY")]
    key: String,
    /// How long the old key works on, as 7d, 12h or 30m, at most 30d [default: not at all]
    #[arg(long, value_name = "TIME")]
    overlap: Option<String>,
}

/// Which keys shall be revoked.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Id of the key, as `list` shows it, or the key itself; - reads it from stdin, so that it is not in the list
    /// of processes.
    #[arg(value_name = "ID|KEY", required_unless_present = "all", conflicts_with = "all")]
    key: Option<String>,
    /// Revoke every key of the operator.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let (Command::Create { place, .. }
    | Command::List { place }
    | Command::Rotate { place, .. }
    | Command::Revoke { place, .. }) = &args.command;
    let db = connect(place.clone()).await?;
    let code = match args.command {
        Command::Create { new, .. } => create(&db, new).await?,
        Command::List { .. } => list(&db).await?,
        Command::Rotate { old, .. } => rotate(&db, old).await?,
        Command::Revoke { which, .. } => revoke(&db, which, "control keys create").await?,
    };
    db.close().await;
    Ok(code)
}

/// Makes a key for the first owner and prints it.
///
/// # Errors
/// An argument is wrong, or the project is not there.
pub async fn create(db: &Db, new: New) -> Result<ExitCode, Failure> {
    let label = super::text("--label", new.label)?;
    let life = new.expires_in.map(|text| duration("--expires-in", &text)).transpose()?;
    if life.is_some_and(|life| life.is_zero()) {
        return Err(ConfigError::new("--expires-in", "a key must work for some time").into());
    }
    let networks: Networks =
        new.networks.unwrap_or_default().parse().map_err(|error: shared::networks::NotANetwork| {
            ConfigError::new("--networks", error.to_string())
        })?;
    let project = new.project.map(|id| id.parse::<ProjectId>()).transpose();
    let project = project.map_err(|error| ConfigError::new("--project", error.to_string()))?;
    let now = SystemClock.now();
    let new = NewFirstKey {
        label,
        expires_at: life.map(|life| after(now, life)),
        networks,
        project,
        created_by: None,
    };
    let key = first_keys::create(db, &SystemClock, &SystemRandom, new).await.map_err(refused)?;
    say(&key);
    Ok(ExitCode::SUCCESS)
}

/// Prints a line for each key of the first owner.
pub async fn list(db: &Db) -> Result<ExitCode, Failure> {
    let now = SystemClock.now();
    for key in first_keys::list(db).await.map_err(failed)? {
        say(&line(&key, now));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(key: &OperatorKey, now: UnixMillis) -> String {
    let shown = |at: Option<UnixMillis>| at.map_or_else(|| "never".to_owned(), date);
    let state = match (key.status(now), key.revoked_at) {
        (KeyStatus::Revoked, at) => format!("revoked {}", shown(at)),
        (KeyStatus::Expired, _) => "expired".to_owned(),
        (KeyStatus::Active, _) => "valid".to_owned(),
    };
    format!(
        "{}\t{}\tmade {}\tused {}\texpires {}\t{state}",
        key.id(),
        key.label.replace(char::is_control, " "),
        date(key.created_at),
        shown(key.last_used_at),
        shown(key.expires_at),
    )
}

pub(super) fn date(at: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| format!("{at:.0}"))
}

/// Replaces a key and prints the new one.
///
/// # Errors
/// There is no such key that works, or the overlap is no time or too long.
pub async fn rotate(db: &Db, old: Old) -> Result<ExitCode, Failure> {
    let overlap = old.overlap.map(|text| duration("--overlap", &text)).transpose()?.unwrap_or_default();
    let ms = u32::try_from(overlap.as_millis()).ok().filter(|ms| *ms <= MAX_OVERLAP_MS);
    let ms = ms.ok_or_else(|| ConfigError::new("--overlap", "at most 30d"))?;
    let key = named(old.key)?;
    say(&first_keys::rotate(db, &SystemClock, &SystemRandom, &key, ms).await.map_err(refused)?);
    Ok(ExitCode::SUCCESS)
}

/// Revokes keys and says so; `advice` is the command that makes a new one.
///
/// # Errors
/// The text is neither an id nor a key.
pub async fn revoke(db: &Db, which: Which, advice: &str) -> Result<ExitCode, Failure> {
    if which.all {
        let count = first_keys::revoke_all(db, &SystemClock).await.map_err(failed)?;
        say(&format!("{count} keys were revoked; `{advice}` makes a new one."));
        return Ok(ExitCode::SUCCESS);
    }
    let key = named(which.key.unwrap_or_default())?;
    if first_keys::revoke(db, &SystemClock, &key).await.map_err(failed)? {
        say("The key was revoked.");
        return Ok(ExitCode::SUCCESS);
    }
    say("There is no such key that is valid.");
    Ok(ExitCode::from(1))
}

fn named(argument: String) -> Result<Named, Failure> {
    let text = if argument == "-" {
        let mut text = String::new();
        io::stdin().take(1_024).read_to_string(&mut text).map_err(|error| Failure::failed("stdin", error))?;
        text.trim().to_owned()
    } else {
        argument
    };
    match text.parse() {
        Ok(id) => Ok(Named::Id(id)),
        Err(_) if access::is_key(&text) => Ok(Named::Secret(text)),
        Err(_) => {
            let form = format!("a key has {} characters A-Z a-z 0-9, its id 24 of 0-9 A-F", access::KEY_LEN);
            Err(ConfigError::new("KEY", form).into())
        }
    }
}

/// A whole number of days, hours, minutes or seconds.
pub(super) fn duration(name: &'static str, text: &str) -> Result<Duration, ConfigError> {
    let wrong = || ConfigError::new(name, format!("{text:?} is no time such as 90d, 12h, 30m or 45s"));
    let unit = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        Some('m') => 60,
        Some('s') => 1,
        Some(_) | None => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(count) * unit))
}

pub(super) fn after(now: UnixMillis, life: Duration) -> UnixMillis {
    UnixMillis(now.0.saturating_add(i64::try_from(life.as_millis()).unwrap_or(i64::MAX)))
}

pub(super) fn refused(error: ServiceError) -> Failure {
    match error {
        ServiceError::Refused { errors, .. } => Failure::Failed(errors.join(" ")),
        error => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [
            ("90d", Some(90 * 86_400)),
            ("12h", Some(43_200)),
            ("30m", Some(1_800)),
            ("0s", Some(0)),
            ("12", None),
            ("-1d", None),
            ("1.5d", None),
            ("", None),
            ("d", None),
            ("5é", None),
        ] {
            let read = duration("--overlap", text).ok().map(|time| time.as_secs());
            assert_eq!(read, expected, "{text}");
        }
    }
}
