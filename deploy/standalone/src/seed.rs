//! The first account, its operator, its key and its short domains.

use control::{
    domain::access::{self, ActorKind},
    error::ServiceError,
    service::{Random, RandomUnavailable},
    store::{Db, StoreError, Tx, accounts, keys, log},
};
use sha2::{Digest as _, Sha256};
use shared::{
    id::{AccountId, OperatorId},
    short_url::ShortDomain,
    time::Clock,
    wire::stream::{Change, Event},
};

/// What the first account is called; an operator may rename it.
const ACCOUNT_NAME: &str = "Waymark";

/// What seeding found or made.
#[derive(Debug)]
pub struct Seeded {
    /// The account that was made first.
    pub account: AccountId,
    /// Whether the account was made just now.
    pub first_start: bool,
    /// A key that was made just now; it is stored nowhere in clear.
    pub new_key: Option<String>,
    /// The account's short domains, its first one first.
    pub domains: Vec<ShortDomain>,
}

/// Makes what is missing: account, operator, key and short domains, in one transaction.
///
/// `key` is added to the first operator's keys if it is not among them. Safe to run at each start, by
/// several processes at once; the log must be set up.
///
/// # Errors
/// The database failed, there are no random bits, or [`StoreError::Unique`] for a key that was revoked and
/// for a domain of another account.
pub async fn seed(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    key: Option<&str>,
    domains: &[ShortDomain],
) -> Result<Seeded, ServiceError> {
    let now = clock.now().0;
    let id_bits = || -> Result<[u8; 16], RandomUnavailable> {
        let mut bits = [0; 16];
        random.fill(&mut bits)?;
        Ok(bits)
    };
    let mut tx = db.begin().await?;
    // Of two first starts on one Postgres the second finds what the first made.
    log::lock(&mut tx).await?;
    let found = accounts::find_first(&mut tx).await?;
    let account = match found {
        Some(account) => account,
        None => {
            let account = AccountId::new(now, id_bits()?);
            accounts::insert(&mut tx, account, ACCOUNT_NAME, true, now).await?;
            account
        }
    };
    let (operator, fresh) = match accounts::find_first_operator(&mut tx).await? {
        Some((operator, _)) => (operator, false),
        None => {
            let operator = OperatorId::new(now, id_bits()?);
            let names = ("Waymark", "Operator");
            accounts::insert_operator(&mut tx, operator, account, "operator@localhost", names, now).await?;
            (operator, true)
        }
    };
    let new_key = match key {
        Some(key) => {
            let hash = hash(key);
            if keys::find(&mut tx, &hash).await?.is_none() {
                keys::insert(&mut tx, &hash, account, ActorKind::Operator, operator.as_str(), now).await?;
            }
            None
        }
        None if fresh => Some(add_key(&mut tx, random, account, operator, now).await?),
        None => None,
    };
    let known = accounts::list_domains(&mut tx, account).await?;
    for domain in domains.iter().filter(|domain| !known.iter().any(|known| known.host == domain.host)) {
        accounts::insert_domain(&mut tx, account, domain).await?;
        // Edges that are connected hear of it as of any other change.
        let rev = log::take_revs(&mut tx, 1).await?;
        log::append(&mut tx, now, &[Event { rev, change: Change::Domain(domain.clone()) }]).await?;
    }
    let domains = accounts::list_domains(&mut tx, account).await?;
    tx.commit().await?;
    Ok(Seeded { account, first_start: found.is_none(), new_key, domains })
}

/// Makes a key for the first operator; only its hash is stored.
///
/// # Errors
/// The database failed, there are no random bits, or there is no operator yet.
pub async fn create_key(db: &Db, clock: &dyn Clock, random: &dyn Random) -> Result<String, ServiceError> {
    let mut tx = db.begin().await?;
    let (operator, account) = first_operator(&mut tx).await?;
    let key = add_key(&mut tx, random, account, operator, clock.now().0).await?;
    tx.commit().await?;
    Ok(key)
}

/// Revokes one key; gives whether it was valid until now.
///
/// # Errors
/// The database failed.
pub async fn revoke_key(db: &Db, clock: &dyn Clock, key: &str) -> Result<bool, ServiceError> {
    let mut tx = db.begin().await?;
    let revoked = keys::revoke(&mut tx, &hash(key), clock.now().0).await?;
    tx.commit().await?;
    Ok(revoked)
}

/// Revokes every key of the first operator; gives how many there were.
///
/// # Errors
/// The database failed, or there is no operator yet.
pub async fn revoke_all_keys(db: &Db, clock: &dyn Clock) -> Result<u64, ServiceError> {
    let mut tx = db.begin().await?;
    let (operator, account) = first_operator(&mut tx).await?;
    let revoked = keys::revoke_all(&mut tx, account, operator.as_str(), clock.now().0).await?;
    tx.commit().await?;
    Ok(revoked)
}

async fn first_operator(tx: &mut Tx) -> Result<(OperatorId, AccountId), ServiceError> {
    accounts::find_first_operator(tx)
        .await?
        .ok_or_else(|| StoreError::Row("there is no operator yet".to_owned()).into())
}

async fn add_key(
    tx: &mut Tx,
    random: &dyn Random,
    account: AccountId,
    operator: OperatorId,
    now: i64,
) -> Result<String, ServiceError> {
    let mut bits = [0; 2 * access::KEY_LEN];
    random.fill(&mut bits)?;
    let key = access::key_from_random(&bits).ok_or(RandomUnavailable)?;
    keys::insert(tx, &hash(&key), account, ActorKind::Operator, operator.as_str(), now).await?;
    Ok(key)
}

/// How a key is stored (decisions 1).
fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}
