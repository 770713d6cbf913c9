//! Counts tries with an address, and mails of an account, in the database, for all replicas together.

use shared::id::{AccountId, ProjectId};

use super::{Core, users::Users};
use crate::{
    domain::attempts::{FORGET_MS, TooMany, Tried},
    error::ServiceError,
    store::{Ctx, StoreError, Tx, password_resets, user_attempts},
};

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 1_000;

/// Why something was not tried.
#[derive(Debug)]
pub enum AttemptError {
    /// There were too many wrong passwords.
    Passwords(TooMany),
    /// The account has sent too many mails.
    Mails(TooMany),
    /// Another reason.
    Other(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for AttemptError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// One address in a project, and what is tried with it.
pub(super) struct Subject {
    account: AccountId,
    tried: Tried,
    hash: [u8; 32],
}

impl Subject {
    /// `folded` is the address in the form in which it is compared. It is stored hashed: it may be of somebody who is no
    /// user.
    pub(super) fn new(
        core: &Core,
        tried: Tried,
        (account, project): (AccountId, ProjectId),
        folded: &str,
    ) -> Self {
        Self::of(core, tried, account, project.as_str(), folded)
    }

    fn of(core: &Core, tried: Tried, account: AccountId, within: &str, folded: &str) -> Self {
        let key = blake3::derive_key("waymark 2026-11 tries with an address", &core.secrets.mail);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for part in [tried.as_str(), within, folded] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Self { account, tried, hash: hasher.finalize().into() }
    }

    /// Counts a try, or says how long to wait.
    pub(super) async fn count(&self, core: &Core, tx: &mut Tx) -> Result<Result<(), TooMany>, StoreError> {
        let now = core.clock.now();
        match user_attempts::open(tx, &self.hash, self.account, now).await?.with(self.tried, now) {
            Ok(attempts) => Ok(Ok(user_attempts::update(tx, &self.hash, attempts).await?)),
            Err(too_many) => Ok(Err(too_many)),
        }
    }

    /// Forgets the tries: its owner has shown who it is.
    pub(super) async fn forget(&self, tx: &mut Tx) -> Result<(), StoreError> {
        user_attempts::delete(tx, &self.hash).await
    }
}

/// Counts a try of a password before it is compared, in a transaction of its own.
pub(super) async fn count_password(core: &Core, subject: &Subject) -> Result<(), AttemptError> {
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let counted = subject.count(core, &mut tx).await?;
    tx.commit().await?;
    counted.map_err(AttemptError::Passwords)
}

/// Counts a mail of an account. Whoever asks for one counts, whether it is sent or not, because the answer must not tell.
pub(super) async fn count_mail(users: &Users, tx: &mut Tx, account: AccountId) -> Result<(), AttemptError> {
    let Some(most) = users.outbox.per_account() else { return Ok(()) };
    let subject = Subject::of(&users.core, Tried::Mail(most), account, account.as_str(), "");
    subject.count(&users.core, tx).await?.map_err(AttemptError::Mails)
}

/// Removes tries that are forgotten and codes that have expired; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge(core: &Core) -> Result<u64, ServiceError> {
    let now = core.clock.now();
    let mut removed = 0;
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let before = shared::time::UnixMillis(now.0 - FORGET_MS);
        let step = user_attempts::purge(&mut tx, before, PURGE_STEP).await?
            + password_resets::purge(&mut tx, now, PURGE_STEP).await?;
        tx.commit().await?;
        removed += step;
        if step == 0 {
            return Ok(removed);
        }
    }
}
