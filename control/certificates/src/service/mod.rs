//! Operations: orders of certificates, and what becomes of one when its domain changes.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod order;

use std::{ops::Deref, sync::Arc};

use kernel::{
    error::ServiceError,
    service::Core,
    store::{StoreError, Tx},
};
use push::certificates::CertificateKey;
use redirects::service::Redirects;
use secrets::keys::NONCE_LEN;
use shared::{id::AccountId, short_url::Host, time::UnixMillis, wire::stream::Change};
use tokio::sync::Notify;

use crate::{
    client::Authority,
    metrics::CertificateMetrics,
    store::{certificates, clock, published},
};

/// What operations and the worker of certificates need; one for each process.
pub struct CertificateState {
    /// What the operations on links need.
    pub redirects: Redirects,
    /// Who gives certificates; `None`: nobody is asked.
    pub authority: Option<Authority>,
    /// What happened.
    pub metrics: CertificateMetrics,
    pub(crate) wake: Notify,
    key: CertificateKey,
}

impl CertificateState {
    /// The state of a process.
    #[must_use]
    pub fn new(redirects: Redirects, authority: Option<Authority>) -> Arc<Self> {
        let key = CertificateKey::new(redirects.secrets.certificate);
        let metrics = CertificateMetrics::default();
        Arc::new(Self { redirects, authority, metrics, wake: Notify::new(), key })
    }

    /// Whether an authority is asked.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.authority.is_some()
    }

    /// Lets the worker of this process look now: there is something to order.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// A text of a host or of an authority, encrypted.
    pub(crate) fn seal(&self, name: &str, text: &str) -> Result<String, ServiceError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce)?;
        let sealed = self.key.seal(name, text, nonce);
        sealed.ok_or_else(|| ServiceError::Internal("a key is too long to be encrypted".to_owned()))
    }

    /// What [`Self::seal`] encrypted; `None`: it was changed.
    pub(crate) fn open(&self, name: &str, sealed: &str) -> Option<String> {
        self.key.open(name, sealed)
    }
}

shared::opaque!(CertificateState);

impl Deref for CertificateState {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.redirects.core
    }
}

/// Removes the certificate of a short domain that its account no longer has. The transaction holds the lock of the change log.
pub async fn forget(tx: &mut Tx, account: AccountId, host: &Host, now: UnixMillis) -> Result<(), StoreError> {
    let is_held = certificates::has_chain(tx, account, host).await?;
    certificates::delete(tx, account, host).await?;
    withdraw(tx, host, is_held, now).await
}

/// Switches certificates of a short domain off, which takes the present one from the edges, or on again. The transaction holds
/// the lock of the change log.
pub async fn switch(
    tx: &mut Tx,
    account: AccountId,
    host: &Host,
    is_off: bool,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let is_held = certificates::has_chain(tx, account, host).await?;
    let due = clock::now(tx).await?;
    certificates::set_off(tx, account, host, is_off, due).await?;
    withdraw(tx, host, is_held, now).await
}

async fn withdraw(tx: &mut Tx, host: &Host, is_held: bool, now: UnixMillis) -> Result<(), StoreError> {
    if is_held {
        published::publish(tx, Change::Certificate(host.as_str().into(), None), now).await?;
    }
    Ok(())
}
