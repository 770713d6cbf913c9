//! The outbox: mails that wait, encrypted.

use std::{fmt, sync::Arc};

use kernel::{
    error::ServiceError,
    service::{Random, Secrets},
    store::Tx,
};
use lettre::Address;
use secrets::keys::{NONCE_LEN, open_with, seal_with};
use serde::{Deserialize, Serialize};
use shared::id::AccountId;
use tokio::sync::Notify;
use url::Url;

use crate::{metrics::MailMetrics, settings::MailSettings, smtp::Smtp, store::mails};

/// A mail to one person.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) text: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mail(…)")
    }
}

/// Mail cannot be sent to the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address to which mail can be sent")]
pub struct InvalidAddress;

impl Mail {
    /// A mail in plain text.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(
        to: &str,
        subject: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<Self, InvalidAddress> {
        let to: Address = to.parse().map_err(|_| InvalidAddress)?;
        Ok(Self { to: to.to_string(), subject: subject.into(), text: text.into() })
    }
}

/// Where mails are put and taken from; one for each process.
pub struct Outbox {
    pub(crate) smtp: Option<Smtp>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) wake: Notify,
    /// What happened.
    pub metrics: MailMetrics,
    key: [u8; 32],
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbox")
    }
}

impl Outbox {
    /// An outbox; without settings it takes no mail.
    #[must_use]
    pub fn new(settings: Option<MailSettings>, secrets: &Secrets, random: Arc<dyn Random>) -> Self {
        Self {
            smtp: settings.map(Smtp::new),
            random,
            wake: Notify::new(),
            metrics: MailMetrics::default(),
            key: secrets.mail,
        }
    }

    /// Whether mail is sent.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.smtp.is_some()
    }

    /// The page that takes codes, if mails shall link to one.
    #[must_use]
    pub fn links(&self) -> Option<&Url> {
        self.smtp.as_ref().and_then(|smtp| smtp.settings().links.as_ref())
    }

    /// Puts a mail into the outbox, in the transaction of what it tells of; [`Self::wake`] after the commit sends it
    /// at once.
    ///
    /// # Errors
    /// The system's own fault.
    pub async fn enqueue(
        &self,
        tx: &mut Tx,
        account: Option<AccountId>,
        mail: &Mail,
    ) -> Result<(), ServiceError> {
        let internal = |text: &str| ServiceError::Internal(text.to_owned());
        let (mut id, mut nonce) = ([0; 16], [0; NONCE_LEN]);
        self.random.fill(&mut id)?;
        self.random.fill(&mut nonce)?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let bytes = serde_json::to_vec(mail).map_err(|_| internal("a mail cannot be written"))?;
        let sealed = seal_with(&self.key, &id, &bytes, nonce);
        let sealed = sealed.ok_or_else(|| internal("a mail is too long"))?;
        Ok(mails::insert(tx, &id, account, &sealed).await?)
    }

    /// Tells the worker of this process that there is mail.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// The mail; `None` when it does not decrypt.
    pub(crate) fn open(&self, id: &str, sealed: &[u8]) -> Option<Mail> {
        serde_json::from_slice(&open_with(&self.key, id, sealed)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_must_be_one() {
        for (to, fits) in [
            ("ada@example.com", true),
            ("Ada+x@Example.COM", true),
            ("ü@example.com", true),
            ("ada", false),
            ("ada@", false),
            ("ada@example.com\r\nBcc: x@example.com", false),
            ("ada@example.com, eve@example.com", false),
        ] {
            assert_eq!(Mail::new(to, "s", "t").is_ok(), fits, "{to:?}");
        }
        assert_eq!(format!("{:?}", Mail::new("ada@example.com", "s", "t").unwrap()), "Mail(…)");
    }
}
