//! The outbox: mails that wait, encrypted.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

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

use crate::{metrics::MailMetrics, settings::MailSettings, smtp::Smtp, store::mails};

/// A mail to one person.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) text: String,
    /// Seconds after which it is not sent any more, because the code in it has expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime_seconds: Option<u64>,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mail(…)")
    }
}

/// Why a mail is refused. The caller puts the name of the member before the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMail {
    /// Mail cannot be sent to the address.
    #[error("must be an address to which mail can be sent")]
    Address,
    /// A subject with a line break would begin another header.
    #[error("must be a subject of one line")]
    Subject,
}

impl Mail {
    /// A mail in plain text.
    ///
    /// # Errors
    /// The address is none, or the subject has control characters.
    pub fn new(to: &str, subject: impl Into<String>, text: impl Into<String>) -> Result<Self, InvalidMail> {
        let subject = subject.into();
        if subject.contains(char::is_control) {
            return Err(InvalidMail::Subject);
        }
        let to: Address = to.parse().map_err(|_| InvalidMail::Address)?;
        // An IP address or a host name without a dot would make the mail server connect to an internal host.
        let domain = to.domain();
        if domain.starts_with('[') || !domain.contains('.') || domain.parse::<IpAddr>().is_ok() {
            return Err(InvalidMail::Address);
        }
        Ok(Self { to: to.to_string(), subject, text: text.into(), lifetime_seconds: None })
    }

    /// The mail with a lifetime, such as that of the code in it; it is not sent later.
    #[must_use]
    pub fn expires_after(self, time: Duration) -> Self {
        Self { lifetime_seconds: Some(time.as_secs()), ..self }
    }

    /// Whether its lifetime is over at this age.
    pub(crate) fn has_expired(&self, age: Duration) -> bool {
        self.lifetime_seconds.is_some_and(|seconds| age >= Duration::from_secs(seconds))
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

shared::opaque!(Outbox);

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

    /// How many mails an account may send in an hour; `None` is any number.
    #[must_use]
    pub fn per_account(&self) -> Option<u32> {
        self.smtp.as_ref().map(|smtp| smtp.settings().per_account).filter(|most| *most > 0)
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
    fn a_mail_has_one_address_and_one_line_of_subject() {
        for (to, fits) in [
            ("ada@example.com", true),
            ("Ada+x@Example.COM", true),
            ("ü@example.com", true),
            ("ada", false),
            ("ada@", false),
            ("root@localhost", false),
            ("ada@127.0.0.1", false),
            ("ada@[127.0.0.1]", false),
            ("ada@[IPv6:::1]", false),
            ("ada@example.com\r\nBcc: x@example.com", false),
            ("ada@example.com, eve@example.com", false),
            ("ada@example.com\n", false),
            ("ada@example.com>\r\nRCPT TO:<eve@example.com", false),
        ] {
            assert_eq!(Mail::new(to, "s", "t").is_ok(), fits, "{to:?}");
        }
        for subject in ["a\r\nBcc: eve@example.com", "a\nb", "a\rb", "a\0b"] {
            assert_eq!(Mail::new("ada@example.com", subject, "t"), Err(InvalidMail::Subject), "{subject:?}");
        }
        assert_eq!(format!("{:?}", Mail::new("ada@example.com", "s", "t").unwrap()), "Mail(…)");
    }

    #[test]
    fn a_mail_expires_with_its_lifetime() {
        let hour = Duration::from_secs(3_600);
        let mail = Mail::new("ada@example.com", "s", "t").unwrap();
        assert!(!mail.has_expired(1_000 * hour));
        let mail = mail.expires_after(hour);
        assert!(!mail.has_expired(hour.saturating_sub(Duration::from_millis(1))) && mail.has_expired(hour));
    }
}
