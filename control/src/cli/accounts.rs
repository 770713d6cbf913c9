//! `control accounts`: accounts and their short domains, directly in the database.

use std::process::ExitCode;

use clap::Subcommand;
use kernel::{domain::access::UserRights, error::ServiceError, store::StoreError};
use platform::settings::truth;
use shared::{
    id::AccountId,
    short_url::{Scheme, ShortDomain},
};
use tenants::domain::{target_hosts::parse_hosts, tenant::AccountChange};

use super::{connect, failed, say, text};
use crate::{
    config::{ConfigError, DomainSetting, Place, parse},
    failure::Failure,
    service::seed::{self, NewAccount},
    system::{SystemClock, SystemRandom},
};

/// Arguments of `control accounts`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an account with an operator, and print its id and the operator's key; the key is shown this once.
    Create {
        /// Name of the account
        #[arg(long, default_value = "Waymark")]
        name: String,
        /// E-mail address of the operator
        #[arg(long, default_value = "operator@localhost")]
        email: String,
        /// Short domains of the account, separated by commas, as tn.gg or http://127.0.0.1:8081; without a
        /// scheme they are https, and http on loopback [default: none]
        #[arg(long, value_name = "HOST,…")]
        domains: Option<String>,
        /// A key of 80 characters A-Z a-z 0-9 that the operator shall have, for automation [default: a random
        /// one, printed]
        #[arg(long, env = "WAYMARK_OPERATOR_KEY", value_name = "KEY", hide_env_values = true)]
        operator_key: Option<String>,
        /// What users of its applications may do: own (what they made themselves, as far as the application lets
        /// them) or open (what the project has); everybody can become a user with the public key of a page
        #[arg(long, value_name = "own|open", default_value = "own")]
        user_rights: UserRights,
        /// Let redirections lead to loopback, link-local and private addresses
        #[arg(long)]
        private_targets: bool,
        /// The only hosts that redirections may lead to, separated by commas, as example.com or *.example.com
        /// [default: any]
        #[arg(long, value_name = "HOST,…")]
        target_hosts: Option<String>,
        /// Do nothing when there is an account already
        #[arg(long)]
        if_none: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Change what the redirections of an account may lead to.
    Update {
        /// Id of the account [default: the one that was made first]
        #[arg(long, value_name = "ID")]
        account: Option<String>,
        /// Whether redirections may lead to loopback, link-local and private addresses
        #[arg(long, value_name = "BOOL")]
        private_targets: Option<String>,
        /// The only hosts that redirections may lead to, separated by commas; empty is any
        #[arg(long, value_name = "HOST,…")]
        target_hosts: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Work on the short domains of an account.
    #[command(subcommand)]
    Domains(Domains),
}

#[derive(Debug, Subcommand)]
enum Domains {
    /// Give an account short domains; running edges serve them at once.
    Add {
        /// Hosts, separated by commas, as tn.gg or http://10.0.0.1:8081; without a scheme they are https, and
        /// http on loopback
        #[arg(value_name = "HOST,…")]
        domains: String,
        /// Id of the account [default: the one that was made first]
        #[arg(long, value_name = "ID")]
        account: Option<String>,
        /// Short ids tell upper from lower case: for imported codes with mixed-case ids
        #[arg(long)]
        case_sensitive: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Change the scheme or the case of short domains on which no code was ever created.
    Change {
        /// Hosts, separated by commas, as tn.gg or http://127.0.0.1:8081, as they shall be
        #[arg(value_name = "HOST,…")]
        domains: String,
        /// Id of the account [default: the one that was made first]
        #[arg(long, value_name = "ID")]
        account: Option<String>,
        /// Short ids tell upper from lower case
        #[arg(long)]
        case_sensitive: bool,
        #[command(flatten)]
        place: Place,
    },
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Create {
            name,
            email,
            domains,
            operator_key,
            user_rights,
            private_targets,
            target_hosts,
            if_none,
            place,
        } => {
            let targets = AccountChange {
                private_targets: private_targets.then_some(true),
                target_hosts: hosts(target_hosts.as_deref())?,
                ..AccountChange::default()
            };
            let new = NewAccount {
                name: text("--name", name)?,
                email: text("--email", email)?,
                domains: short_domains(domains.as_deref().unwrap_or_default(), false)?,
                key: parse::operator_key(operator_key.filter(|key| !key.is_empty()))?,
                user_rights,
                only_first: if_none,
            };
            let db = connect(place).await?;
            let made = seed::create_account(&db, &SystemClock, &SystemRandom, new).await.map_err(refused)?;
            if let Some(made) = &made
                && targets != AccountChange::default()
            {
                let account = Some(made.account);
                seed::change_account(&db, &SystemClock, account, targets).await.map_err(refused)?;
            }
            db.close().await;
            match made {
                None => say("There is an account already."),
                Some(made) => {
                    say(&format!("Account      {}", made.account));
                    if let Some(key) = made.new_key {
                        say(&format!("Operator key {key}"));
                    }
                }
            }
        }
        Command::Domains(Domains::Add { domains, account, case_sensitive, place }) => {
            let domains = short_domains(&domains, case_sensitive)?;
            let account = account_id(account)?;
            let db = connect(place).await?;
            let count = seed::add_domains(&db, &SystemClock, account, &domains).await.map_err(refused)?;
            db.close().await;
            say(&format!("{count} short domains were added."));
        }
        Command::Domains(Domains::Change { domains, account, case_sensitive, place }) => {
            let domains = short_domains(&domains, case_sensitive)?;
            let account = account_id(account)?;
            let db = connect(place).await?;
            for domain in domains {
                let text = format!("{}://{} it is.", domain.scheme.as_str(), domain.host);
                seed::change_domain(&db, &SystemClock, account, domain).await.map_err(refused)?;
                say(&text);
            }
            db.close().await;
        }
        Command::Update { account, private_targets, target_hosts, place } => {
            let private = private_targets.as_deref().map(|text| truth("--private-targets", Some(text)));
            let change = AccountChange {
                private_targets: private.transpose()?,
                target_hosts: hosts(target_hosts.as_deref())?,
                ..AccountChange::default()
            };
            let account = account_id(account)?;
            let db = connect(place).await?;
            seed::change_account(&db, &SystemClock, account, change).await.map_err(refused)?;
            db.close().await;
            say("The account was changed.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn account_id(text: Option<String>) -> Result<Option<AccountId>, ConfigError> {
    text.map(|id| id.parse::<AccountId>())
        .transpose()
        .map_err(|_| ConfigError::new("--account", "an id has 24 characters; GET /accounts lists them"))
}

fn hosts(text: Option<&str>) -> Result<Option<Vec<String>>, ConfigError> {
    let list = |text: &str| {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        parse_hosts(entries).map_err(|faults| ConfigError::new("--target-hosts", faults.join("; ")))
    };
    text.map(list).transpose()
}

fn short_domains(text: &str, case_sensitive: bool) -> Result<Vec<ShortDomain>, ConfigError> {
    let one = |DomainSetting { scheme, host }: DomainSetting| {
        let scheme = scheme.unwrap_or_else(|| Scheme::of_host(&host));
        let domain = ShortDomain::new(scheme, &host)
            .map_err(|error| ConfigError::new("WAYMARK_SHORT_DOMAINS", error.to_string()))?;
        Ok(ShortDomain { case_sensitive, ..domain })
    };
    parse::domains(text)?.into_iter().map(one).collect()
}

fn refused(error: ServiceError) -> Failure {
    match error {
        ServiceError::Refused { errors, .. } => Failure::Failed(errors.join(" ")),
        ServiceError::Store(StoreError::Unique(what)) if what.contains("short_domains") => {
            Failure::Failed("a short domain belongs to an account already".to_owned())
        }
        ServiceError::Store(StoreError::Unique(_)) => {
            Failure::Failed("this key is there already, or was revoked: give another, or none".to_owned())
        }
        error => failed(error),
    }
}
