//! Counts attempts per e-mail address and mails per account, in the database, so that all replicas share the limits.

use std::net::IpAddr;

use mail::Outbox;
use shared::{
    id::{AccountId, ProjectId, UserId},
    time::UnixMillis,
};

use super::Core;
use crate::{
    domain::attempts::{AttemptKind, FORGET_MS, RetryAfter},
    error::ServiceError,
    store::{Ctx, StoreError, Tx, audit::network_of, user_attempts},
};

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 1_000;

/// One network may request one tenth of the mails of an account.
const NETWORK_SHARE: u32 = 10;

/// Why an attempt was refused.
#[derive(Debug)]
pub enum AttemptError {
    /// There were too many wrong passwords.
    Passwords(RetryAfter),
    /// The account has sent too many mails, or the network has asked for too many.
    Mails(RetryAfter),
    /// The mailbox has got too many mails.
    Mailbox(RetryAfter),
    /// Another reason.
    Other(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for AttemptError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// One address in a project, and what is tried with it.
pub struct Subject {
    account: AccountId,
    tried: AttemptKind,
    hash: [u8; 32],
}

impl Subject {
    /// `folded` is the address in the form in which it is compared. It is stored hashed: it may be of somebody who is no
    /// user.
    pub fn new(
        core: &Core,
        tried: AttemptKind,
        (account, project): (AccountId, ProjectId),
        folded: &str,
    ) -> Self {
        Self::of(core, tried, account, project.as_str(), folded)
    }

    /// A mailbox: addresses that differ only behind a `+` are one.
    pub fn mailbox(core: &Core, tried: AttemptKind, account: AccountId, folded: &str) -> Self {
        let mailbox = folded.rsplit_once('@').map(|(local, domain)| {
            let local = local.split_once('+').map_or(local, |(local, _)| local);
            format!("{local}@{domain}")
        });
        Self::of(core, tried, account, account.as_str(), mailbox.as_deref().unwrap_or(folded))
    }

    /// A user who changes its own password.
    pub fn user(core: &Core, account: AccountId, id: UserId) -> Self {
        Self::of(core, AttemptKind::Change, account, account.as_str(), id.as_str())
    }

    fn of(core: &Core, tried: AttemptKind, account: AccountId, within: &str, folded: &str) -> Self {
        let key = blake3::derive_key("waymark 2026-11 tries with an address", &core.secrets.mail);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for part in [tried.as_str(), within, folded] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Self { account, tried, hash: hasher.finalize().into() }
    }

    /// Counts a try, or says how long to wait.
    pub async fn count(&self, core: &Core, tx: &mut Tx) -> Result<Result<(), RetryAfter>, StoreError> {
        let now = core.clock.now();
        match user_attempts::open(tx, &self.hash, self.account, now).await?.with(self.tried, now) {
            Ok(attempts) => Ok(Ok(user_attempts::update(tx, &self.hash, attempts).await?)),
            Err(too_many) => Ok(Err(too_many)),
        }
    }

    /// Forgets the tries: its owner has shown who it is.
    pub async fn forget(&self, tx: &mut Tx) -> Result<(), StoreError> {
        user_attempts::delete(tx, &self.hash).await
    }
}

/// Counts a try of a password before it is compared, in a transaction of its own.
pub async fn count_password_attempt(core: &Core, subject: &Subject) -> Result<(), AttemptError> {
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let counted = subject.count(core, &mut tx).await?;
    tx.commit().await?;
    counted.map_err(AttemptError::Passwords)
}

/// Counts a mail against the limits of its mailbox.
pub async fn count_mailbox(
    core: &Core,
    tx: &mut Tx,
    account: AccountId,
    (kind, folded): (AttemptKind, &str),
) -> Result<(), AttemptError> {
    Subject::mailbox(core, kind, account, folded).count(core, tx).await?.map_err(AttemptError::Mailbox)
}

/// Counts a requested mail against the limits of the requesting network and of the account. A request counts even if no
/// mail follows: otherwise the limit would reveal whether the address has a user. `client` is the address by which a
/// stranger is limited.
pub async fn count_mail(
    core: &Core,
    outbox: &Outbox,
    tx: &mut Tx,
    account: AccountId,
    kind: AttemptKind,
    client: Option<IpAddr>,
) -> Result<(), AttemptError> {
    let Some(most) = outbox.per_account() else { return Ok(()) };
    let of_account = |tried, whose: &str| Subject::of(core, tried, account, kind.as_str(), whose);
    if let Some(client) = client {
        let share = AttemptKind::NetworkMail(most.div_ceil(NETWORK_SHARE));
        let whose = format!("{account} {}", network_of(client));
        of_account(share, &whose).count(core, tx).await?.map_err(AttemptError::Mails)?;
    }
    of_account(AttemptKind::Mail(most), account.as_str()).count(core, tx).await?.map_err(AttemptError::Mails)
}

/// Removes counts that are old enough to be forgotten; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge(core: &Core) -> Result<u64, ServiceError> {
    let before = UnixMillis(core.clock.now().0 - FORGET_MS);
    let mut removed = 0;
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let step = user_attempts::purge(&mut tx, before, PURGE_STEP).await?;
        tx.commit().await?;
        removed += step;
        if step == 0 {
            return Ok(removed);
        }
    }
}
