//! Creates the first account, its operator, its key and its short domains.

use ::tenants::{
    domain::tenant::AccountChange,
    service::first_keys::{self, NewFirstKey},
    store::{accounts, tenants},
};
use kernel::{
    domain::access::{UserRights, hash_key},
    service::{Random, RandomUnavailable},
    store::{Ctx, Db, StoreError, Tx, keys},
};
use redirects::store::{domains, log};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, OperatorId},
    short_url::ShortDomain,
    time::{Clock, UnixMillis},
};

use crate::error::{ControlError, ServiceError};

/// Name of the first account; an operator may rename it.
const ACCOUNT_NAME: &str = "Waymark";

/// The result of seeding.
#[derive(Debug)]
pub struct Seeded {
    /// The first account.
    pub account: AccountId,
    /// Whether the account was created now.
    pub first_start: bool,
    /// A newly created key; only its hash is stored.
    pub new_key: Option<String>,
    /// The account's short domains, its first one first.
    pub domains: Vec<ShortDomain>,
}

/// Creates what is missing: account, operator, key and short domains, in one transaction.
///
/// `key` is added to the first operator's keys if it is not among them. The first of `domains` becomes the account's
/// first one, on which codes are created by default, if `puts_first` says so or the present one is for development
/// only. Safe to run at each start, by several processes at once; the log must be set up.
///
/// # Errors
/// The database failed, there are no random bits, or [`StoreError::Unique`] for a key that was revoked and for a
/// domain of another account.
pub async fn seed(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    key: Option<&str>,
    domains: &[ShortDomain],
    puts_first: bool,
) -> Result<Seeded, ServiceError> {
    let now = clock.now().0;
    let mut tx = db.begin(&Ctx::of_command("start", UnixMillis(now))).await?;
    // Of two concurrent first starts on one Postgres, the second finds what the first created.
    log::lock(&mut tx).await?;
    let found = accounts::find_first(&mut tx).await?;
    let account = match found {
        Some(account) => account,
        None => {
            let account = AccountId::new(now, id_bits(random)?);
            accounts::insert(&mut tx, account, ACCOUNT_NAME, true, now).await?;
            let state = || json!({"name": ACCOUNT_NAME});
            tx.note(account, ("account", account.as_str()), || (None, Some(state())));
            account
        }
    };
    let (operator, fresh) = match accounts::find_first_owner(&mut tx).await? {
        Some((operator, _)) => (operator, false),
        None => {
            let operator = OperatorId::new(now, id_bits(random)?);
            let names = ("Waymark", "Operator");
            accounts::insert_operator(&mut tx, operator, account, "operator@localhost", names, now).await?;
            (operator, true)
        }
    };
    let is_missing = match key {
        Some(key) => keys::find(&mut tx, &hash_key(key)).await?.is_none(),
        None => fresh,
    };
    let new_key = if is_missing {
        first_keys::add(&mut tx, random, (account, operator), key, first_key(), UnixMillis(now)).await?
    } else {
        None
    };
    give_domains(&mut tx, account, domains, now).await?;
    let known = accounts::list_domains(&mut tx, account).await?;
    for domain in domains {
        let stored = known.iter().find(|known| known.host == domain.host);
        if let Some(stored) = stored.filter(|stored| stored.scheme != domain.scheme) {
            let changed = ShortDomain { scheme: domain.scheme, ..stored.clone() };
            change_in(&mut tx, account, changed, now).await?;
        }
    }
    if let (Some(wanted), Some(first)) = (domains.first(), known.first())
        && wanted.host != first.host
        && (puts_first || first.is_development())
    {
        accounts::put_first(&mut tx, account, wanted).await?;
        let state = |host: &str| json!({"first": host});
        tx.note(account, ("account", account.as_str()), || {
            (Some(state(first.host.as_str())), Some(state(wanted.host.as_str())))
        });
    }
    let domains = accounts::list_domains(&mut tx, account).await?;
    tx.commit().await?;
    Ok(Seeded { account, first_start: found.is_none(), new_key, domains })
}

fn first_key() -> NewFirstKey {
    NewFirstKey { label: "first key".to_owned(), ..NewFirstKey::default() }
}

/// A new account with its operator.
#[derive(Debug)]
pub struct NewAccount {
    /// Name of the account.
    pub name: String,
    /// E-mail address of the operator.
    pub email: String,
    /// Its short domains, the first one first.
    pub domains: Vec<ShortDomain>,
    /// The key of the operator; generated if absent.
    pub key: Option<String>,
    /// What users of its applications may do.
    pub user_rights: UserRights,
    /// Create it only if there is no account.
    pub only_first: bool,
}

/// Creates an account; `None` if there is one and `only_first` was asked. The log must be set up.
///
/// # Errors
/// The database failed, there are no random bits, or [`StoreError::Unique`] for a key or a domain that is
/// there already.
pub async fn create_account(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    new: NewAccount,
) -> Result<Option<Seeded>, ServiceError> {
    let now = clock.now().0;
    let mut tx = db.begin(&Ctx::of_command("accounts create", UnixMillis(now))).await?;
    log::lock(&mut tx).await?;
    let first_start = accounts::find_first(&mut tx).await?.is_none();
    if new.only_first && !first_start {
        return Ok(None);
    }
    let account = AccountId::new(now, id_bits(random)?);
    accounts::insert(&mut tx, account, &new.name, true, now).await?;
    accounts::set_user_rights(&mut tx, account, new.user_rights).await?;
    let operator = OperatorId::new(now, id_bits(random)?);
    let names = ("Waymark", "Operator");
    accounts::insert_operator(&mut tx, operator, account, &new.email, names, now).await?;
    let state = || json!({"name": new.name, "operator": operator});
    tx.note(account, ("account", account.as_str()), || (None, Some(state())));
    let given = new.key.as_deref();
    let new_key =
        first_keys::add(&mut tx, random, (account, operator), given, first_key(), UnixMillis(now)).await?;
    give_domains(&mut tx, account, &new.domains, now).await?;
    tx.commit().await?;
    Ok(Some(Seeded { account, first_start, new_key, domains: new.domains }))
}

/// Adds short domains to an account (the first one, unless another is named); existing ones are unchanged.
///
/// Returns how many were added. The log must be set up.
///
/// # Errors
/// The database failed, there is no such account, or [`StoreError::Unique`] for a domain of another account.
pub async fn add_domains(
    db: &Db,
    clock: &dyn Clock,
    account: Option<AccountId>,
    domains: &[ShortDomain],
) -> Result<usize, ServiceError> {
    let mut tx = db.begin(&Ctx::of_command("accounts add-domain", clock.now())).await?;
    log::lock(&mut tx).await?;
    let account = find_account(&mut tx, account).await?;
    let count = give_domains(&mut tx, account, domains, clock.now().0).await?;
    tx.commit().await?;
    Ok(count)
}

/// Adds domains that the account does not have yet, and publishes them to edges as any other change; returns how
/// many.
///
/// The transaction holds the lock of the log.
async fn give_domains(
    tx: &mut Tx,
    account: AccountId,
    domains: &[ShortDomain],
    now: i64,
) -> Result<usize, StoreError> {
    let known = accounts::list_domains(tx, account).await?;
    let mut count = 0;
    for domain in domains.iter().filter(|domain| !known.iter().any(|known| known.host == domain.host)) {
        accounts::insert_domain(tx, account, domain).await?;
        tx.note(account, ("shortDomain", domain.host.as_str()), || (None, Some(domain_state(domain))));
        domains::publish_one(tx, account, &domain.host, UnixMillis(now)).await?;
        count += 1;
    }
    Ok(count)
}

/// Changes a short domain of an account (the first one, unless another is named), and publishes it to edges.
///
/// The log must be set up.
///
/// # Errors
/// The database failed, the account has no such domain, or a code was created on it, because printed codes must not
/// change.
pub async fn change_domain(
    db: &Db,
    clock: &dyn Clock,
    account: Option<AccountId>,
    domain: ShortDomain,
) -> Result<(), ServiceError> {
    let mut tx = db.begin(&Ctx::of_command("accounts change-domain", clock.now())).await?;
    log::lock(&mut tx).await?;
    let account = find_account(&mut tx, account).await?;
    let known = accounts::list_domains(&mut tx, account).await?;
    if !known.iter().any(|known| known.host == domain.host) {
        return Err(ServiceError::not_found("short domain", domain.host));
    }
    let host = domain.host.clone();
    if !change_in(&mut tx, account, domain, clock.now().0).await? {
        return Err(ControlError::DomainHasCodes(host).into());
    }
    tx.commit().await?;
    Ok(())
}

/// Changes a domain without codes, and publishes it to edges; returns whether it did. The transaction holds the lock
/// of the log.
async fn change_in(
    tx: &mut Tx,
    account: AccountId,
    domain: ShortDomain,
    now: i64,
) -> Result<bool, StoreError> {
    if !accounts::change_domain(tx, account, &domain).await? {
        return Ok(false);
    }
    tx.note(account, ("shortDomain", domain.host.as_str()), || (None, Some(domain_state(&domain))));
    domains::publish_one(tx, account, &domain.host, UnixMillis(now)).await?;
    Ok(true)
}

/// Changes an account (the first one, unless another is named) as its operator could. For a change of `personal_data`,
/// which is published to edges, the log must be set up.
///
/// # Errors
/// There is no such account.
pub async fn change_account(
    db: &Db,
    clock: &dyn Clock,
    account: Option<AccountId>,
    change: AccountChange,
) -> Result<(), ServiceError> {
    let mut tx = db.begin(&Ctx::of_command("accounts update", clock.now())).await?;
    let is_published = change.personal_data.is_some();
    if is_published {
        log::lock(&mut tx).await?;
    }
    let id = find_account(&mut tx, account).await?;
    let account = tenants::find_account_locked(&mut tx, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("account", id))?
        .apply(change, clock.now());
    tenants::update_account(&mut tx, &account).await?;
    if is_published {
        domains::publish(&mut tx, id, clock.now()).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// What the audit trail shows of a domain.
fn domain_state(domain: &ShortDomain) -> Value {
    json!({"scheme": domain.scheme.as_str(), "caseSensitive": domain.case_sensitive})
}

/// The named account, else the first one.
async fn find_account(tx: &mut Tx, account: Option<AccountId>) -> Result<AccountId, ServiceError> {
    match account {
        Some(account) if accounts::exists(tx, account).await? => Ok(account),
        Some(account) => Err(ServiceError::not_found("account", account)),
        None => accounts::find_first(tx).await?.ok_or_else(|| ControlError::NoAccount.into()),
    }
}

fn id_bits(random: &dyn Random) -> Result<[u8; 16], RandomUnavailable> {
    let mut bits = [0; 16];
    random.fill(&mut bits)?;
    Ok(bits)
}
