//! Takes links and hosts down across accounts, and releases them.

use serde_json::{Value, json};
use shared::{
    id::AccountId,
    redirect::RedirectKey,
    short_url::ShortDomain,
    time::UnixMillis,
    wire::stream::Rev,
    withheld::{Withheld, parse_host},
};
use tracing::instrument;

use super::{By, note, publish, redirections::Written};
use crate::{
    domain::{
        page::{Page, PageRequest, Position},
        platform_take_down::{NewTakeDown, PlatformTakeDown},
    },
    error::{HostingError, ServiceError},
    store::{
        Conn, Db, Tx, accounts, log, redirections,
        withheld::columns,
        withholdings::{self as store, NewRow},
    },
};

/// What the audit trail calls them.
const KIND: &str = "takeDown";

/// What a take-down names, as a request or a command says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A link, by its short domain and its short id.
    Link {
        /// Host of the short domain.
        domain: String,
        /// The short id.
        short_id: String,
    },
    /// Every link that leads to a host or to one below it.
    Host(String),
}

/// Most take-downs. Every edge holds all of them, and gets them whole when it connects: 100,000 have some 6 MB.
pub const MAX_TAKE_DOWNS: u64 = 100_000;

/// Take-downs that are read at once to be ended.
const OVER: u32 = 100;

/// Lists the take-downs of the platform.
#[instrument(skip_all)]
pub async fn list(db: &Db, page: PageRequest) -> Result<Page<PlatformTakeDown>, ServiceError> {
    let rows = store::list(&mut db.read().await?, page).await?;
    Ok(Page::cut(rows, page, |row| Position { at: row.created_at, seq: row.seq }))
}

/// Reads a take-down.
///
/// # Errors
/// 404 when there is none, or no such link.
#[instrument(skip_all)]
pub async fn read(db: &Db, named: &Named) -> Result<PlatformTakeDown, ServiceError> {
    let mut conn = db.read().await?;
    let (what, _) = resolve(&mut conn, named).await?;
    store::find(&mut conn, &what).await?.ok_or_else(|| absent(&what))
}

/// Takes a link or a host down, or changes why and until when it is.
///
/// # Errors
/// 404 when there is no such link, 400 for what is no host, a host of the platform itself or an end that is over, 409 when
/// there are [`MAX_TAKE_DOWNS`].
#[instrument(skip_all)]
pub async fn take_down(
    db: &Db,
    by: &By,
    named: &Named,
    new: NewTakeDown,
) -> Result<Written<PlatformTakeDown>, ServiceError> {
    if new.until.is_some_and(|until| until <= by.now) {
        return Err(HostingError::UntilPassed.into());
    }
    let mut tx = db.begin(&by.ctx).await?;
    log::lock(&mut tx).await?;
    let (what, account) = resolve(&mut tx, named).await?;
    if let Withheld::Host(host) = &what {
        refuse_short_domains(&mut tx, host).await?;
    }
    let before = store::find(&mut tx, &what).await?;
    if before.is_none() && store::count(&mut tx).await? >= MAX_TAKE_DOWNS {
        return Err(HostingError::TooManyTakeDowns { most: MAX_TAKE_DOWNS }.into());
    }
    let NewTakeDown { reason, until } = new;
    let row = NewRow { what: &what, account, reason: &reason, author: &by.author, until };
    store::put(&mut tx, &row, by.now).await?;
    let rev = match &before {
        Some(_) => log::load_head(&mut tx).await?.head,
        None => publish(&mut tx, &what, true, by.now).await?,
    };
    let value = store::find(&mut tx, &what).await?.ok_or_else(|| absent(&what))?;
    let states = (before.as_ref().map(state), Some(state(&value)));
    note(&mut tx, account, (KIND, &columns(&what).1), states);
    tx.commit().await?;
    Ok(Written { value, rev })
}

/// Releases what was taken down; returns the revision.
///
/// # Errors
/// 404 when it is not taken down, or there is no such link.
#[instrument(skip_all)]
pub async fn release(db: &Db, by: &By, named: &Named) -> Result<Rev, ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    log::lock(&mut tx).await?;
    let (what, _) = resolve(&mut tx, named).await?;
    let before = store::find(&mut tx, &what).await?.ok_or_else(|| absent(&what))?;
    let rev = release_in(&mut tx, &before, by.now).await?;
    tx.commit().await?;
    Ok(rev)
}

/// Releases take-downs whose time is over by the clock of the database; returns how many. One that cannot be released now
/// holds no other up.
pub async fn release_over(db: &Db, by: &By) -> Result<usize, ServiceError> {
    let mut released = 0;
    loop {
        let over = store::list_over(&mut db.read().await?, OVER).await?;
        let before = released;
        for one in &over {
            match release_one_over(db, by, &one.what).await {
                Ok(is_released) => released += usize::from(is_released),
                Err(error) => {
                    tracing::warn!(%error, what = ?one.what, "a take-down that is over stays for now")
                }
            }
        }
        if over.len() < OVER as usize || released == before {
            return Ok(released);
        }
    }
}

async fn release_one_over(db: &Db, by: &By, what: &Withheld) -> Result<bool, ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    log::lock(&mut tx).await?;
    // Another replica may have released it, or somebody prolonged it.
    let Some(one) = store::find_over(&mut tx, what).await? else { return Ok(false) };
    release_in(&mut tx, &one, by.now).await?;
    tx.commit().await?;
    Ok(true)
}

async fn release_in(tx: &mut Tx, one: &PlatformTakeDown, now: UnixMillis) -> Result<Rev, ServiceError> {
    store::delete(tx, &one.what).await?;
    let rev = publish(tx, &one.what, false, now).await?;
    note(tx, one.account, (KIND, &columns(&one.what).1), (Some(state(one)), None));
    Ok(rev)
}

fn state(one: &PlatformTakeDown) -> Value {
    json!({"reason": one.reason, "until": one.until.map(|at| at.0)})
}

fn absent(what: &Withheld) -> ServiceError {
    ServiceError::not_found("take-down of", columns(what).1)
}

/// What is named, and whose it is. A deleted link may be taken down: its short id is never given out again.
async fn resolve(conn: &mut Conn, named: &Named) -> Result<(Withheld, Option<AccountId>), ServiceError> {
    let (domain, short_id) = match named {
        Named::Host(host) => {
            let host = parse_host(host).map_err(HostingError::NoHost)?;
            return Ok((Withheld::Host(host), None));
        }
        Named::Link { domain, short_id } => (domain, short_id),
    };
    let absent = || ServiceError::not_found("link", format!("{domain}/{short_id}"));
    let domains = accounts::list_all_domains(conn).await?;
    let is_named = |known: &&ShortDomain| {
        ShortDomain::new(known.scheme, domain).is_ok_and(|named| named.host == known.host)
    };
    let domain = domains.iter().find(is_named).ok_or_else(absent)?;
    // Somebody may have read it off a short URL with the prefix of the domain.
    let folded = domain.fold(&domain.short_id_in(short_id).ok_or_else(absent)?);
    let found = redirections::find_any(conn, domain.host.as_str(), &folded).await?.ok_or_else(absent)?;
    let key = RedirectKey::new(domain.host.as_str(), &folded);
    Ok((Withheld::Link(key), Some(found.account)))
}

/// Links may lead to other short URLs of ours: their domains are no hosts to block.
async fn refuse_short_domains(conn: &mut Conn, host: &str) -> Result<(), ServiceError> {
    let domains = accounts::list_all_domains(conn).await?;
    let is_ours = domains.iter().any(|domain| {
        let name = domain.host.as_str();
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        shared::withheld::and_parents(name).any(|name| name == host)
    });
    if is_ours {
        return Err(HostingError::OwnHost(host.to_owned()).into());
    }
    Ok(())
}
