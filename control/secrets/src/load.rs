//! Secrets that all replicas share: created once, stored encrypted under a key outside of the database.

use std::collections::BTreeSet;

use ::kernel::{
    service::{Random, RandomUnavailable, Secrets},
    store::{Conn, Ctx, Db, StoreError, Tx},
};

use crate::{
    keys::{KEY_LEN, KeyId, NONCE_LEN, OpenError, SecretKeys, key_of, line_of},
    store,
};

/// Length of a secret, and of one that a release before schema 41 stored as it is.
const SECRET_LEN: usize = 32;

/// Why the secrets cannot be used; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// Values are encrypted with keys that the file does not hold.
    #[error("the database is encrypted with the key {}, which is not in the file (it holds {})", joined(.missing), joined(.held))]
    MissingKeys {
        /// Those that are needed.
        missing: Vec<KeyId>,
        /// Those that are there.
        held: Vec<KeyId>,
    },
    /// A value was changed, moved from another name, or is of a newer form.
    #[error("the secret {0} in the database was changed or moved, and does not decrypt")]
    Invalid(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no random bits.
    #[error(transparent)]
    Random(#[from] RandomUnavailable),
}

fn joined(ids: &[KeyId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads the secrets and creates those that are missing; values that are not encrypted yet are from here on.
///
/// Returns whether there were such values. Safe to run at each start and from several processes.
///
/// # Errors
/// A value does not decrypt.
pub async fn load(
    tx: &mut Tx,
    keys: &SecretKeys,
    random: &dyn Random,
    at_ms: i64,
) -> Result<(Secrets, bool), SecretsError> {
    let rows = store::list(tx).await?;
    let plain = rows.iter().filter(|(_, value)| value.len() == SECRET_LEN).count();
    // They are encrypted all at once: one that is plain among others was put there by somebody else.
    if plain != 0 && plain != rows.len() {
        let odd = rows.into_iter().find(|(_, value)| value.len() == SECRET_LEN);
        return Err(SecretsError::Invalid(odd.map(|(name, _)| name).unwrap_or_default()));
    }
    if plain == 0 {
        check(&rows, keys)?;
    }
    for (name, value) in rows.iter().filter(|_| plain != 0) {
        // If it was exchanged meanwhile, another process has encrypted it.
        store::exchange(tx, name, value, &seal(keys, random, name, value)?).await?;
    }
    let loaded = Secrets {
        page_token: find_or_insert(tx, keys, random, "page-token", at_ms).await?,
        scan_id: find_or_insert(tx, keys, random, "scan-id", at_ms).await?,
        file_url: find_or_insert(tx, keys, random, "file-url", at_ms).await?,
        api_key: find_or_insert(tx, keys, random, "api-key", at_ms).await?,
        webhook: find_or_insert(tx, keys, random, "webhook", at_ms).await?,
        kept_answer: find_or_insert(tx, keys, random, "kept-answer", at_ms).await?,
        audit: find_or_insert(tx, keys, random, "audit", at_ms).await?,
        mail: find_or_insert(tx, keys, random, "mail", at_ms).await?,
        sign_in: find_or_insert(tx, keys, random, "sign-in", at_ms).await?,
        certificate: find_or_insert(tx, keys, random, "certificate", at_ms).await?,
    };
    Ok((loaded, plain != 0))
}

/// A secret of the database; `None` where no server has made it yet.
///
/// # Errors
/// It does not decrypt.
pub async fn find(
    conn: &mut Conn,
    keys: &SecretKeys,
    name: &str,
) -> Result<Option<[u8; SECRET_LEN]>, SecretsError> {
    let rows = store::list(conn).await?;
    check(&rows, keys)?;
    let found = rows.into_iter().find(|(found, value)| found == name && value.len() != SECRET_LEN);
    let Some((_, value)) = found else { return Ok(None) };
    let secret = open(keys, name, &value)?.try_into();
    Ok(Some(secret.map_err(|_| SecretsError::Invalid(name.to_owned()))?))
}

/// The keys that the values of a database are encrypted with; empty when none is encrypted yet.
pub async fn find_keys(conn: &mut Conn) -> Result<BTreeSet<KeyId>, StoreError> {
    let rows = store::list(conn).await?;
    Ok(rows
        .iter()
        .filter(|(_, value)| value.len() != SECRET_LEN)
        .filter_map(|(_, value)| key_of(value))
        .collect())
}

/// What [`rotate`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// Values that were encrypted again.
    pub changed: usize,
    /// Values that were encrypted with the current key already.
    pub unchanged: usize,
}

/// Encrypts each value with the current key, in a transaction of its own; servers may run meanwhile.
///
/// # Errors
/// A value does not decrypt; then nothing was changed.
pub async fn rotate(
    db: &Db,
    keys: &SecretKeys,
    random: &dyn Random,
    at_ms: i64,
) -> Result<Rotated, SecretsError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    load(&mut tx, keys, random, at_ms).await?;
    tx.commit().await?;
    let rows = store::list(&mut db.read().await?).await?;
    let mut done = Rotated { changed: 0, unchanged: 0 };
    for (name, value) in rows {
        if key_of(&value) == Some(keys.current()) {
            done.unchanged += 1;
            continue;
        }
        let fresh = seal(keys, random, &name, &open(keys, &name, &value)?)?;
        let mut tx = db.begin(&Ctx::default()).await?;
        // If it was exchanged meanwhile, another rotation did it.
        done.changed += usize::from(store::exchange(&mut tx, &name, &value, &fresh).await?);
        tx.commit().await?;
    }
    store::checkpoint(db).await?;
    Ok(done)
}

/// Checks that each value decrypts.
fn check(rows: &[(String, Vec<u8>)], keys: &SecretKeys) -> Result<(), SecretsError> {
    let held: Vec<KeyId> = keys.ids().collect();
    let needed: BTreeSet<KeyId> = rows.iter().filter_map(|(_, value)| key_of(value)).collect();
    let missing: Vec<KeyId> = needed.into_iter().filter(|id| !held.contains(id)).collect();
    if !missing.is_empty() {
        return Err(SecretsError::MissingKeys { missing, held });
    }
    rows.iter().try_for_each(|(name, value)| open(keys, name, value).map(|_| ()))
}

async fn find_or_insert(
    tx: &mut Tx,
    keys: &SecretKeys,
    random: &dyn Random,
    name: &str,
    at_ms: i64,
) -> Result<[u8; SECRET_LEN], SecretsError> {
    let mut fresh = [0; SECRET_LEN];
    random.fill(&mut fresh)?;
    store::insert(tx, name, &seal(keys, random, name, &fresh)?, at_ms).await?;
    let stored = store::list(tx).await?.into_iter().find(|(stored, _)| stored == name);
    let stored = stored.map(|(_, value)| value).unwrap_or_default();
    open(keys, name, &stored)?.try_into().map_err(|_| SecretsError::Invalid(name.to_owned()))
}

fn seal(keys: &SecretKeys, random: &dyn Random, name: &str, value: &[u8]) -> Result<Vec<u8>, SecretsError> {
    let mut nonce = [0; NONCE_LEN];
    random.fill(&mut nonce)?;
    keys.seal(name, value, nonce).ok_or_else(|| SecretsError::Invalid(name.to_owned()))
}

fn open(keys: &SecretKeys, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SecretsError> {
    keys.open(name, sealed).map_err(|error| match error {
        OpenError::MissingKey(id) => {
            SecretsError::MissingKeys { missing: vec![id], held: keys.ids().collect() }
        }
        OpenError::Invalid => SecretsError::Invalid(name.to_owned()),
    })
}

/// A new key as a line of a file.
///
/// # Errors
/// The system has no random bits.
pub fn new_key_line(random: &dyn Random) -> Result<String, RandomUnavailable> {
    let mut key = [0; KEY_LEN];
    random.fill(&mut key)?;
    Ok(line_of(&key))
}
