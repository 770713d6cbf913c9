//! `control platform`: what the platform operator does, directly in the database; running replicas and edges see it
//! within a second.

use std::{fmt::Debug, process::ExitCode};

use clap::Subcommand;
use domains::service::release::{self, Released};
use hosting::{
    domain::{
        hosted_account::{HostedAccount, MAX_REASON},
        page::{PageRequest, SortOrder},
        platform_key::PlatformKey,
        platform_take_down::{NewTakeDown, PlatformTakeDown},
    },
    service::{
        By, accounts, keys as platform_keys,
        take_downs::{self, Named},
    },
};
use kernel::{
    domain::api_key::KeyId,
    service::{access::KNOWN_FOR, state::Random as _},
    store::Db,
};
use shared::{
    negotiate::Representation,
    time::{Clock as _, UnixMillis},
    withheld::Withheld,
};

use super::{
    connect,
    keys::{after, date, duration, refused},
    quotas::Quotas,
    say,
};
use crate::{
    config::{ConfigError, Place, ScanServer},
    failure::Failure,
    system::{SystemClock, SystemRandom},
};

/// Arguments of `control platform`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command<Place>,
}

/// What may be done to the platform; `P` says where the database is.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment of a group of arguments would be help of none")]
pub enum Command<P: clap::Args + Debug> {
    /// Take an account out of service: its keys are refused, its links show a page, its webhooks, reactions, jobs and tasks
    /// wait, its files are closed.
    Suspend {
        /// Id of the account
        account: String,
        /// Why; the answer to `accounts` shows it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        place: P,
    },
    /// Put a suspended account into service again.
    Resume {
        /// Id of the account
        account: String,
        #[command(flatten)]
        place: P,
    },
    /// List the accounts: id, name, when it was made, its state.
    Accounts {
        #[command(flatten)]
        place: P,
    },
    /// Take down a link, or with --host every link and rule that leads to a host or to one below it.
    ///
    /// Whoever scans such a code gets a page (451). The owner of a link cannot change it, and sees the reason. New links
    /// and rules must not lead to the host.
    TakeDown {
        #[command(flatten)]
        what: What,
        /// Why; the owner of a link sees it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// How long, as 30d, 12h or 30m [default: until it is released]
        #[arg(long, value_name = "TIME")]
        lasts: Option<String>,
        #[command(flatten)]
        place: P,
    },
    /// Release a link or a host that was taken down.
    Release {
        #[command(flatten)]
        what: What,
        #[command(flatten)]
        place: P,
    },
    /// Take a short domain without links from its account, so that whoever proves it next gets it.
    ///
    /// For a host that was sold, or claimed by somebody else. A domain that never had links is removed. One whose links are
    /// all deleted stays with its account, which can make no new ones, until an account proves it.
    ReleaseDomain {
        /// The host, as go.example.com
        host: String,
        #[command(flatten)]
        place: P,
    },
    /// List the take-downs: link or host, since when, until when, who, why.
    Takedowns {
        #[command(flatten)]
        place: P,
    },
    /// Show and set how much accounts may have: Things, links, bytes of files, users, scans and events a day, open streams
    /// and uploads.
    Quotas {
        #[command(subcommand)]
        command: Quotas<P>,
    },
    /// Make, list and revoke keys of the platform, for the API below /platform/.
    Keys {
        #[command(subcommand)]
        command: Keys<P>,
    },
}

/// What may be done with keys of the platform.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment of a group of arguments would be help of none")]
pub enum Keys<P: clap::Args + Debug> {
    /// Make a key and print it; it is shown this once.
    Create {
        /// What the key is called
        #[arg(long, value_name = "TEXT", default_value = "made by a command")]
        label: String,
        /// How long it works, as 90d, 12h or 30m [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        expires_in: Option<String>,
        #[command(flatten)]
        place: P,
    },
    /// List the keys, never the keys themselves: id, label, when it was made, when it expires, its state.
    List {
        #[command(flatten)]
        place: P,
    },
    /// Revoke a key.
    Revoke {
        /// Id of the key, as `list` shows it
        id: String,
        #[command(flatten)]
        place: P,
    },
}

/// A link or a host.
#[derive(Debug, clap::Args)]
pub struct What {
    /// The short URL, as tn.gg/K7Q2M4XA9R or as somebody scanned it: scheme, query, fragment and .png are left out
    #[arg(value_name = "LINK", required_unless_present = "host", conflicts_with = "host")]
    link: Option<String>,
    /// The host that targets must not lead to, as evil.example
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

impl What {
    fn named(self) -> Result<Named, ConfigError> {
        let wrong = |text: &str| ConfigError::new("LINK", format!("{text:?} is no short URL"));
        match (self.link, self.host) {
            (_, Some(host)) => Ok(Named::Host(host)),
            (Some(link), None) => {
                let link = link.trim();
                let bare = link.split_once("://").map_or(link, |(_, rest)| rest);
                let bare = bare.split(['?', '#']).next().unwrap_or_default();
                let bare = bare.strip_suffix('/').unwrap_or(bare);
                match bare.split_once('/') {
                    Some((domain, path)) if !domain.is_empty() => {
                        let (short_id, _) = Representation::split_suffix(path);
                        Ok(Named::Link { domain: domain.to_owned(), short_id: short_id.to_owned() })
                    }
                    Some(_) | None => Err(wrong(link)),
                }
            }
            (None, None) => Err(wrong("")),
        }
    }
}

impl<P: clap::Args + Debug> Command<P> {
    /// Where the database is.
    pub fn place(&self) -> &P {
        match self {
            Self::Suspend { place, .. }
            | Self::Resume { place, .. }
            | Self::Accounts { place }
            | Self::TakeDown { place, .. }
            | Self::Release { place, .. }
            | Self::ReleaseDomain { place, .. }
            | Self::Takedowns { place }
            | Self::Keys {
                command: Keys::Create { place, .. } | Keys::List { place } | Keys::Revoke { place, .. },
            } => place,
            Self::Quotas { command } => command.place(),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// An argument is wrong, there is no such account, link or key, or the database failed.
    pub async fn run(self, db: &Db, scans: Option<ScanServer>) -> Result<ExitCode, Failure> {
        let now = SystemClock.now();
        let by = |operation: &str| By::command(operation, now);
        match self {
            Self::Suspend { account, reason, .. } => {
                let reason = reason_of(reason)?;
                let done = accounts::suspend(db, &by("platform suspend"), &account, &reason).await;
                let name = done.map_err(refused)?.value.name;
                // Until then a process may know its keys from before.
                tokio::time::sleep(KNOWN_FOR).await;
                say(&format!("{name} is suspended."));
            }
            Self::Resume { account, .. } => {
                let done = accounts::resume(db, &by("platform resume"), &account).await;
                say(&format!("{} is in service.", done.map_err(refused)?.value.name));
            }
            Self::Accounts { .. } => list_accounts(db).await?,
            Self::TakeDown { what, reason, lasts, .. } => {
                let reason = reason_of(reason)?;
                let life = lasts.map(|text| duration("--lasts", &text)).transpose()?;
                if life.is_some_and(|life| life.is_zero()) {
                    return Err(ConfigError::new("--lasts", "a take-down must last for some time").into());
                }
                let new = NewTakeDown { reason, until: life.map(|life| after(now, life)) };
                let done = take_downs::take_down(db, &by("platform take-down"), &what.named()?, new).await;
                say(&take_down_line(&done.map_err(refused)?.value));
            }
            Self::Release { what, .. } => {
                take_downs::release(db, &by("platform release"), &what.named()?).await.map_err(refused)?;
                say("It is released.");
            }
            Self::ReleaseDomain { host, .. } => {
                let mut bits = [0; 16];
                SystemRandom.fill(&mut bits).map_err(|error| refused(error.into()))?;
                let ctx = by("platform release-domain").ctx;
                let done = release::release(db, &ctx, &host, bits, now).await;
                let (host, released) = done.map_err(refused)?;
                say(&match released {
                    Released::Removed => format!("{host} is no short domain any more."),
                    Released::Open => format!("{host} goes to whoever proves it next."),
                });
            }
            Self::Takedowns { .. } => list_take_downs(db).await?,
            Self::Quotas { command } => command.run(db, scans, now).await?,
            Self::Keys { command } => run_keys(command, db, now).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let scans = args.command.place().scans()?;
    let db = connect(args.command.place().clone()).await?;
    let code = args.command.run(&db, scans).await?;
    db.close().await;
    Ok(code)
}

async fn run_keys<P: clap::Args + Debug>(command: Keys<P>, db: &Db, now: UnixMillis) -> Result<(), Failure> {
    match command {
        Keys::Create { label, expires_in, .. } => {
            let label = super::text("--label", label)?;
            let life = expires_in.map(|text| duration("--expires-in", &text)).transpose()?;
            if life.is_some_and(|life| life.is_zero()) {
                return Err(ConfigError::new("--expires-in", "a key must work for some time").into());
            }
            let (by, until) = (By::command("platform keys create", now), life.map(|life| after(now, life)));
            say(&platform_keys::create(db, &SystemRandom, &by, label, until).await.map_err(refused)?);
        }
        Keys::List { .. } => {
            for key in platform_keys::list(db).await.map_err(refused)? {
                say(&key_line(&key, now));
            }
        }
        Keys::Revoke { id, .. } => {
            let form = |_| ConfigError::new("ID", "the id of a key has 24 characters 0-9 A-F");
            let id: KeyId = id.parse().map_err(form)?;
            let by = By::command("platform keys revoke", now);
            platform_keys::revoke(db, &by, id).await.map_err(refused)?;
            say("The key was revoked.");
        }
    }
    Ok(())
}

fn reason_of(text: String) -> Result<String, ConfigError> {
    let text = text.trim().to_owned();
    if (1..=MAX_REASON).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    Err(ConfigError::new("--reason", format!("give 1 to {MAX_REASON} characters")))
}

/// Pages of a list until its end, oldest first.
const PAGE: PageRequest = PageRequest { per_page: 100, sort: SortOrder::Ascending, after: None, number: 1 };

async fn list_accounts(db: &Db) -> Result<(), Failure> {
    let mut page = Some(PAGE);
    while let Some(request) = page {
        let found = accounts::list(db, request).await.map_err(refused)?;
        found.items.iter().for_each(|account| say(&account_line(account)));
        page = found.next.map(|next| PageRequest { after: Some(next), ..PAGE });
    }
    Ok(())
}

async fn list_take_downs(db: &Db) -> Result<(), Failure> {
    let mut page = Some(PAGE);
    while let Some(request) = page {
        let found = take_downs::list(db, request).await.map_err(refused)?;
        found.items.iter().for_each(|one| say(&take_down_line(one)));
        page = found.next.map(|next| PageRequest { after: Some(next), ..PAGE });
    }
    Ok(())
}

/// A text of somebody in one column.
fn column(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn account_line(account: &HostedAccount) -> String {
    let state = account.suspension.as_ref().map_or_else(
        || "active".to_owned(),
        |suspension| {
            format!(
                "suspended {}\t{}\t{}",
                date(suspension.since),
                column(&suspension.author),
                column(&suspension.reason)
            )
        },
    );
    format!("{}\t{}\tmade {}\t{state}", account.id, column(&account.name), date(account.created_at))
}

fn take_down_line(one: &PlatformTakeDown) -> String {
    let what = match &one.what {
        Withheld::Link(key) => format!("{}/{}", key.domain, key.folded),
        Withheld::Host(host) => format!("host {host}"),
        Withheld::Account(account) => account.to_string(),
    };
    let until = one.until.map_or_else(|| "released".to_owned(), date);
    let (author, reason) = (column(&one.author), column(&one.reason));
    format!("{what}\tsince {}\tuntil {until}\t{author}\t{reason}", date(one.created_at))
}

fn key_line(key: &PlatformKey, now: UnixMillis) -> String {
    let state = match key.revoked_at {
        Some(at) => format!("revoked {}", date(at)),
        None if key.is_expired(now) => "expired".to_owned(),
        None => "valid".to_owned(),
    };
    let expires = key.expires_at.map_or_else(|| "never".to_owned(), date);
    let (label, made) = (column(&key.label), date(key.created_at));
    format!("{}\t{label}\tmade {made}\texpires {expires}\t{state}", key.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_urls_are_read_with_and_without_a_scheme() {
        let named = |link: &str| What { link: Some(link.to_owned()), host: None }.named().ok();
        let link = |domain: &str, short_id: &str| {
            Some(Named::Link { domain: domain.to_owned(), short_id: short_id.to_owned() })
        };
        assert_eq!(named("https://tn.gg/K7Q2"), link("tn.gg", "K7Q2"));
        assert_eq!(named("127.0.0.1:8081/K7Q2"), link("127.0.0.1:8081", "K7Q2"));
        for seen in [
            "https://tn.gg/K7Q2?utm_source=x",
            "https://tn.gg/K7Q2/",
            "https://tn.gg/K7Q2/?a=/b#c",
            "https://tn.gg/K7Q2#a/b",
            "https://tn.gg/K7Q2.png",
            "https://tn.gg/K7Q2.svg?w=300",
            " tn.gg/K7Q2 ",
        ] {
            assert_eq!(named(seen), link("tn.gg", "K7Q2"), "{seen}");
        }
        assert_eq!(named("https://tn.gg/a/b.png"), link("tn.gg", "a/b"), "several segments, or a prefix");
        for wrong in ["", "tn.gg", "tn.gg/", "/K7Q2", "?tn.gg/K7Q2"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }
}
