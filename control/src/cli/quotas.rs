//! `control platform quotas`: how much accounts may have, and how much they have.

use std::fmt::Debug;

use clap::Subcommand;
use hosting::{
    domain::{
        quota::{Quota, Setting, Usage},
        quota_change::parse_setting,
    },
    service::{By, quotas, quotas_of_accounts},
};
use kernel::store::Db;
use serde_json::Value;
use shared::time::UnixMillis;

use super::{keys::refused, say};
use crate::{
    config::{ConfigError, ScanServer},
    failure::Failure,
};

/// What may be done with quotas.
#[derive(Debug, Subcommand)]
pub enum Quotas<P: clap::Args + Debug> {
    /// Show the quotas of an account with their use, or without --account what holds for all accounts.
    Show {
        /// Id of the account
        #[arg(long, value_name = "ACCOUNT")]
        account: Option<String>,
        #[command(flatten)]
        place: P,
    },
    /// Set quotas of an account, or with --all of every account for which nothing else was set.
    ///
    /// The quotas are things, links, storageBytes, users, shortDomains, scansPerDay, eventsPerDay, streams and uploads. A
    /// limit below the use forbids what is new and removes nothing.
    Set {
        /// Id of the account
        #[arg(long, value_name = "ACCOUNT", required_unless_present = "all", conflicts_with = "all")]
        account: Option<String>,
        /// Every account for which nothing else was set
        #[arg(long)]
        all: bool,
        /// Name and limit, as things=100000; the limit may be unlimited, or for an account default
        #[arg(value_name = "NAME=LIMIT", required = true)]
        quotas: Vec<String>,
        #[command(flatten)]
        place: P,
    },
    /// Count again what an account holds, and correct what was counted wrong.
    Recount {
        /// Id of the account
        account: String,
        #[command(flatten)]
        place: P,
    },
}

impl<P: clap::Args + Debug> Quotas<P> {
    /// Where the database is.
    pub(super) fn place(&self) -> &P {
        match self {
            Self::Show { place, .. } | Self::Set { place, .. } | Self::Recount { place, .. } => place,
        }
    }

    pub(super) async fn run(
        self,
        db: &Db,
        scans: Option<ScanServer>,
        now: UnixMillis,
    ) -> Result<(), Failure> {
        match self {
            Self::Show { account: None, .. } => show_defaults(db).await,
            Self::Show { account: Some(account), .. } => show(db, scans, &account, now).await,
            Self::Set { account, quotas: changes, .. } => {
                let changes =
                    changes.iter().map(|text| parse(text)).collect::<Result<Vec<_>, ConfigError>>()?;
                let by = By::command("platform quotas set", now);
                match account {
                    Some(account) => {
                        quotas::set(db, &by, &account, &changes).await.map_err(refused)?;
                        show(db, scans, &account, now).await
                    }
                    None => {
                        quotas::set_defaults(db, &by, &changes).await.map_err(refused)?;
                        show_defaults(db).await
                    }
                }
            }
            Self::Recount { account, .. } => {
                for (quota, found) in quotas::recount(db, &account, now).await.map_err(refused)? {
                    let was = match found.drift {
                        0 => "right".to_owned(),
                        drift => format!("was {}, corrected", i128::from(found.counted) - i128::from(drift)),
                    };
                    say(&format!("{quota}\t{}\t{was}", found.counted));
                }
                Ok(())
            }
        }
    }
}

async fn show_defaults(db: &Db) -> Result<(), Failure> {
    let limits = quotas::list_defaults(db).await.map_err(refused)?;
    for quota in Quota::ALL {
        let limit = limits.get(&quota).map_or_else(|| "unlimited".to_owned(), u64::to_string);
        say(&format!("{quota}\t{limit}"));
    }
    Ok(())
}

async fn show(db: &Db, server: Option<ScanServer>, account: &str, now: UnixMillis) -> Result<(), Failure> {
    let account = quotas::find_account(db, account).await.map_err(refused)?;
    let scans = scan_store::store::open_existing_in(db, server).await;
    let scans = scans.map_err(|error| refused(error.into()))?;
    let count_scans = |since, most| scans.reserved.count_since(account, since, most);
    let usages =
        quotas_of_accounts::list_of_database(db, account, now, count_scans).await.map_err(refused)?;
    scans.reserved.close().await;
    usages.iter().for_each(|usage| say(&usage_line(usage)));
    Ok(())
}

fn usage_line(usage: &Usage) -> String {
    let limit = usage.limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let used = match usage.used {
        Some(used) if usage.is_at_least => format!("more than {used}"),
        Some(used) => used.to_string(),
        None => "not counted".to_owned(),
    };
    let whose = if usage.is_own { "of this account" } else { "of all accounts" };
    let over = if usage.over > 0 { format!("\t{} not stored today", usage.over) } else { String::new() };
    format!("{}\tlimit {limit} ({whose})\tused {used}{over}", usage.quota)
}

/// Reads `things=100`.
fn parse(text: &str) -> Result<(Quota, Setting), ConfigError> {
    let wrong = |fault: String| ConfigError::new("NAME=LIMIT", fault);
    let (name, limit) =
        text.split_once('=').ok_or_else(|| wrong(format!("{text:?} is not of the form things=100")))?;
    let names = || Quota::ALL.map(Quota::as_str).join(", ");
    let quota = name.parse().map_err(|_| wrong(format!("{name:?} is none of {}", names())))?;
    let value = limit.parse::<u64>().map_or_else(|_| Value::from(limit), Value::from);
    let setting = parse_setting(&value).map_err(|fault| wrong(format!("{name} {fault}")))?;
    Ok((quota, setting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_name() {
        assert_eq!(parse("things=100").ok(), Some((Quota::Things, Setting::Most(100))));
        assert_eq!(parse("links=unlimited").ok(), Some((Quota::Links, Setting::Unlimited)));
        assert_eq!(parse("uploads=default").ok(), Some((Quota::Uploads, Setting::Default)));
        for wrong in
            ["things", "thngs=1", "things=", "things=-1", "things=1.5", "things=99999999999999999999"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
