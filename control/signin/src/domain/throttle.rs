//! What is counted of tries to sign in. Known and unknown addresses are counted alike; a count in the database is shared
//! by all replicas.

use super::attempts::AttemptKind;

/// Mails that one network may ask for in an hour.
const MAILS_OF_NETWORK: u32 = 20;

/// What is tried, and by whom. A subject is stored as a keyed hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle<'a> {
    /// The password of an address, as it was named: with the account or without it. A sign-in without the account must
    /// not be counted with one that names it: otherwise the counts would tell in which account the address is.
    Password {
        /// The account, if it was named.
        account: Option<&'a str>,
        /// The address in the form in which it is compared.
        email: &'a str,
    },
    /// The password of an operator, from a network from which it signed in before. Strangers elsewhere do not slow it down.
    /// With the account or without it, as [`Self::Password`].
    PasswordFrom {
        /// The account, if it was named.
        account: Option<&'a str>,
        /// The operator.
        operator: &'a str,
        /// The network.
        network: &'a str,
    },
    /// Codes of the second factor with the right password; `network` if the operator signed in from it before.
    Code {
        /// The operator.
        operator: &'a str,
        /// The network, if it is known.
        network: Option<&'a str>,
    },
    /// Passwords and codes that somebody gives who is signed in.
    Own(&'a str),
    /// Resets that are asked for an address as it was named: with the account or without it, and with what is behind a
    /// `+`. Whoever asks for another form of it leaves this one alone.
    Reset {
        /// The account, if it was named.
        account: Option<&'a str>,
        /// The address in the form in which it is compared.
        email: &'a str,
    },
    /// Mails that an address gets. Addresses that differ only behind a `+` are one mailbox.
    Mailbox(&'a str),
    /// Mails that a network asks for.
    MailsOf(&'a str),
}

impl Throttle<'_> {
    /// How it is limited.
    #[must_use]
    pub const fn kind(&self) -> AttemptKind {
        match self {
            Self::Password { .. } | Self::PasswordFrom { .. } | Self::Code { .. } | Self::Own(_) => {
                AttemptKind::Password
            }
            Self::Reset { .. } | Self::Mailbox(_) => AttemptKind::Reset,
            Self::MailsOf(_) => AttemptKind::NetworkMail(MAILS_OF_NETWORK),
        }
    }

    /// What is stored instead of names.
    #[must_use]
    pub fn subject(&self, secret: &[u8; 32]) -> [u8; 32] {
        let key = blake3::derive_key("waymark 2026-11 tries to sign in", secret);
        let mailbox;
        let parts: &[&str] = match *self {
            Self::Password { account, email } => &["password", account.unwrap_or_default(), email],
            Self::PasswordFrom { account, operator, network } => {
                &["passwordFrom", account.unwrap_or_default(), operator, network]
            }
            Self::Code { operator, network } => &["code", operator, network.unwrap_or_default()],
            Self::Own(operator) => &["own", operator],
            Self::Reset { account, email } => &["reset", account.unwrap_or_default(), email],
            Self::Mailbox(email) => {
                mailbox = without_tag(email);
                &["mailbox", &mailbox]
            }
            Self::MailsOf(network) => &["mailsOf", network],
        };
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().into()
    }
}

fn without_tag(email: &str) -> String {
    let Some((local, domain)) = email.rsplit_once('@') else { return email.to_owned() };
    let local = local.split_once('+').map_or(local, |(local, _)| local);
    format!("{local}@{domain}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_subject_is_its_own() {
        let (email, operator, network) = ("a@b", "o", "192.0.2.0/24");
        let all = [
            Throttle::Password { account: None, email },
            Throttle::Password { account: Some("o"), email },
            Throttle::PasswordFrom { account: None, operator, network },
            Throttle::PasswordFrom { account: Some("o"), operator, network },
            Throttle::PasswordFrom { account: None, operator, network: "198.51.100.0/24" },
            Throttle::Code { operator, network: None },
            Throttle::Code { operator, network: Some(network) },
            Throttle::Own(operator),
            Throttle::Reset { account: None, email },
            Throttle::Reset { account: Some("o"), email },
            Throttle::Reset { account: None, email: "a+x@b" },
            Throttle::Mailbox(email),
            Throttle::MailsOf(network),
        ];
        let subjects: HashSet<_> = all.iter().map(|throttle| throttle.subject(&[1; 32])).collect();
        assert_eq!(subjects.len(), all.len());
        assert!(all.iter().all(|throttle| !subjects.contains(&throttle.subject(&[2; 32]))));
        let mailbox = |email| Throttle::Mailbox(email).subject(&[1; 32]);
        assert_eq!(mailbox("a+x@b"), mailbox("a@b"));
        assert_ne!(mailbox("a@b+x"), mailbox("a@b"));
    }
}
