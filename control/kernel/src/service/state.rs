//! What every operation needs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use shared::{
    id::{AccountId, ApplicationId, BatchId, ProductId, ThngId, UserId},
    time::{Clock, UnixMillis},
};

use super::{
    access::{Caller, KeyLookups},
    capacity::{Capacity, Place},
    open_quotas::OpenQuotas,
};
use crate::{
    domain::device::DeviceKey,
    error::{CommonError, ServiceError},
    store::{Conn, Db, StoreError, Tx},
};

/// Where random bits come from; the system's source lives in the binaries.
pub trait Random: Send + Sync + 'static {
    /// Fills `out` with random bytes fit for keys.
    ///
    /// # Errors
    /// The system has none to give.
    fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable>;
}

/// The system's source of random bits failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no random bits")]
pub struct RandomUnavailable;

impl From<RandomUnavailable> for ServiceError {
    fn from(error: RandomUnavailable) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Keys that all replicas share, from the store.
#[derive(Clone)]
pub struct Secrets {
    /// Authenticates page tokens.
    pub page_token: [u8; 32],
    /// Key for the ids of scan actions, which must be unguessable and the same on a repeat. What tells devices apart is
    /// derived from it.
    pub scan_id: [u8; 32],
    /// Signs the URLs of files.
    pub file_url: [u8; 32],
    /// Keys of applications and Thngs are derived from it, so that they can be read again.
    pub api_key: [u8; 32],
    /// What webhooks sign with is derived from it.
    pub webhook: [u8; 32],
    /// Encrypts the answers that are kept for repeats of a request.
    pub kept_answer: [u8; 32],
    /// Chains the entries of the audit trail.
    pub audit: [u8; 32],
    /// Encrypts mails that wait; what counts tries of addresses is derived from it.
    pub mail: [u8; 32],
    /// Keys of sessions, and what protects second factors and tries to sign in, are derived from it.
    pub sign_in: [u8; 32],
    /// Encrypts the private keys of certificates, and the key of the account at their authority.
    pub certificate: [u8; 32],
}

impl Secrets {
    /// The key of the hashes by which assessments tell devices apart.
    #[must_use]
    pub fn device_key(&self) -> DeviceKey {
        DeviceKey::new(&self.scan_id)
    }
}

/// Tells the readers of this process, after a commit, that there is something to read. A reader that is not told
/// finds it a little later.
pub trait Readers: Send + Sync + 'static {
    /// Events were committed.
    fn wake_events(&self);
    /// Redirections, rules or domains were committed.
    fn wake_edges(&self);
}

/// What a change of a Thng touches elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedThng {
    /// The Thng.
    pub id: ThngId,
    /// What it is an instance of, after the change.
    pub product: Option<ProductId>,
    /// Whether its name changed.
    pub is_renamed: bool,
    /// Whether it is an instance of something else now.
    pub is_moved: bool,
    /// Whether a tag changed that verdicts depend on.
    pub is_marked: bool,
    /// Whether its serial, its scopes or the links of its Digital Link changed.
    pub is_relinked: bool,
    /// Whether it has links that it did not have, so that their targets are to be checked.
    pub has_new_links: bool,
}

/// What a change of a product touches elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedProduct {
    /// The product, which may be gone.
    pub id: ProductId,
    /// Whether its links changed, so that their targets are to be checked.
    pub has_new_links: bool,
    /// Whether the Digital Links of its Things change with it.
    pub moves_things: bool,
}

/// What other subjects do when something changes.
///
/// The subject that is changed knows none of them: the composition names them.
pub trait Dependents: Send + Sync + 'static {
    /// An application was removed, in this transaction; `true`: edges must learn of it.
    fn application_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        application: ApplicationId,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// A batch was removed, in this transaction.
    fn batch_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        batch: BatchId,
    ) -> BoxFuture<'a, Result<(), ServiceError>>;

    /// Locks the change log. Take it before any row lock.
    fn lock_changes<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), ServiceError>>;

    /// What edges know of the short domains of an account was changed, in this transaction; edges learn of it.
    fn domains_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<(), ServiceError>>;

    /// How many scans by edges an account has since a time, by looking at no more than `most`. Asked without a connection.
    fn count_scans(
        &self,
        account: AccountId,
        since: UnixMillis,
        most: u64,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Whether work that was accepted still reads the bytes of a file that was removed or replaced: then they stay.
    /// Asked after the commit.
    fn reads_blob<'a>(
        &'a self,
        conn: &'a mut Conn,
        blob: &'a str,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// A product with Digital Links, or one that had such, was created, changed or removed, in this transaction; `true`: edges
    /// must learn of it.
    fn product_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        product: ChangedProduct,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// A Thng was created or changed, in this transaction; `true`: edges must learn of it.
    fn thng_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        thng: ChangedThng,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// Makes the Digital Links that a transaction has left to its end, with which it takes the order of changes; `true`: edges
    /// must learn of it.
    fn follow_left<'a>(
        &'a self,
        tx: &'a mut Tx,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// A Thng was removed, in this transaction; `true`: edges must learn of it.
    fn thng_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        thng: ThngId,
        product: Option<ProductId>,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>>;

    /// Users of applications were removed, in this transaction; with the time, and 128 random bits.
    fn users_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        users: Vec<UserId>,
        at: (UnixMillis, [u8; 16]),
    ) -> BoxFuture<'a, Result<(), ServiceError>>;
}

/// What every operation needs; one for each process, shared.
pub struct Core {
    /// The store.
    pub db: Db,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub random: Arc<dyn Random>,
    /// Shared keys.
    pub secrets: Secrets,
    /// Places that all share.
    pub capacity: Capacity,
    /// What accounts have open, over all processes.
    pub open_quotas: OpenQuotas,
    /// Look-ups of keys.
    pub key_lookups: KeyLookups,
    /// Who reads what is committed.
    pub readers: Arc<dyn Readers>,
    /// Who acts in the transaction of a change.
    pub dependents: Arc<dyn Dependents>,
}

shared::opaque!(Core);

impl AsRef<Self> for Core {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Makes the state of a subject stand for the `Core` in it: `has_core!(JobState, actions.core)` names the path to it.
///
/// Its `Debug` shows its name alone.
#[macro_export]
macro_rules! has_core {
    ($state:ident, $($core:ident).+) => {
        ::shared::opaque!($state);

        impl ::std::ops::Deref for $state {
            type Target = $crate::service::Core;

            fn deref(&self) -> &$crate::service::Core {
                &self.$($core).+
            }
        }

        impl AsRef<$crate::service::Core> for $state {
            fn as_ref(&self) -> &$crate::service::Core {
                self
            }
        }
    };
}

impl Core {
    /// 128 random bits.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn random16(&self) -> Result<[u8; 16], RandomUnavailable> {
        let mut out = [0; 16];
        self.random.fill(&mut out)?;
        Ok(out)
    }

    /// Begins the write of a request, with a place among all writes that is held until it is committed.
    ///
    /// # Errors
    /// As many writes are under way as the caller, or all together, may have.
    pub async fn begin_write(&self, caller: &Caller) -> Result<(Place, Tx), ServiceError> {
        let place = self.capacity.write(caller)?;
        Ok((place, self.db.begin(&caller.ctx).await?))
    }
}

/// A create request without a name.
#[must_use]
pub fn name_required() -> ServiceError {
    CommonError::NameMissing.into()
}
