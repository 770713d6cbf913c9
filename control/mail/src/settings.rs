//! The settings of mail.

use std::fmt;

use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// Mails of a kind that an account may send in an hour by default.
pub const MAILS_PER_ACCOUNT: u32 = 2_000;

/// How a connection to the server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// TLS from the start: `smtps://`.
    Tls,
    /// `STARTTLS`, without which nothing is sent: `smtp://`.
    StartTls,
    /// Nothing, on this machine only: `smtp://localhost?tls=off`.
    Off,
}

/// How mail is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct MailSettings {
    /// Host of the server, also the name that its certificate must have.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub protection: Protection,
    /// User and password, where the server asks for them.
    pub login: Option<(String, String)>,
    /// The sender.
    pub from: Mailbox,
    /// The authority that signed the server's certificate, as PEM; `None` means those of the system.
    pub ca: Option<Vec<u8>>,
    /// Mails that an account may send in an hour; 0 is any number.
    pub per_account: u32,
}

impl fmt::Debug for MailSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailSettings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("protection", &self.protection)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// Why a setting cannot be used; it does not repeat the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The URL of the server.
    #[error("{0}: give smtps://user:password@host:465, or smtp://user:password@host:587 for STARTTLS")]
    Server(&'static str),
    /// The sender.
    #[error("it is no mail address: give noreply@example.com or Name <noreply@example.com>")]
    From,
    /// The certificate of the authority.
    #[error("it is no PEM file with a certificate")]
    Ca,
}

impl MailSettings {
    /// Reads the URL of the server and the sender.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn parse(server: &str, from: &str) -> Result<Self, InvalidSetting> {
        let wrong = InvalidSetting::Server;
        let url = Url::parse(server).map_err(|_| wrong("it is no URL"))?;
        let tls_is_off = match url.query() {
            None => false,
            Some("tls=off") => true,
            Some(_) => return Err(wrong("it has an unknown parameter")),
        };
        let is_bare = matches!(url.path(), "" | "/") && url.fragment().is_none();
        let host = url.host_str().filter(|host| !host.is_empty() && is_bare);
        let host = host.ok_or(wrong("it names no host, or more than a host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (protection, port) = match (url.scheme(), tls_is_off) {
            ("smtps", false) => (Protection::Tls, 465),
            ("smtp", false) => (Protection::StartTls, 587),
            ("smtp", true) if is_loopback(&host) => (Protection::Off, 25),
            ("smtp", true) => return Err(wrong("without TLS mail goes to this machine only")),
            (_, _) => return Err(wrong("its scheme is neither smtps nor smtp")),
        };
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8();
            text.map(String::from).map_err(|_| wrong("user or password is not UTF-8"))
        };
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            ("", Some(_)) => return Err(wrong("there is a password without a user")),
            (_, None) => return Err(wrong("there is a user without a password")),
            (user, Some(password)) => Some((decoded(user)?, decoded(password)?)),
        };
        Ok(Self {
            host,
            port: url.port().unwrap_or(port),
            protection,
            login,
            from: from.parse().map_err(|_| InvalidSetting::From)?,
            ca: None,
            per_account: MAILS_PER_ACCOUNT,
        })
    }

    /// With the authority that signed the certificate of the server.
    ///
    /// # Errors
    /// The text holds no certificate.
    pub fn with_ca(self, pem: Vec<u8>) -> Result<Self, InvalidSetting> {
        crate::smtp::check_ca(&pem)?;
        Ok(Self { ca: Some(pem), ..self })
    }
}

fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Domain(name)) => name == "localhost",
        Ok(Host::Ipv4(ip)) => ip.is_loopback(),
        Ok(Host::Ipv6(ip)) => ip.is_loopback(),
        Err(_) => host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_says_how_the_server_is_reached() {
        let read = |url: &str| MailSettings::parse(url, "Waymark <noreply@example.com>");
        for (url, host, port, protection, login) in [
            ("smtps://u:p@mail.example.com", "mail.example.com", 465, Protection::Tls, Some(("u", "p"))),
            (
                "smtp://u:p%40%2F@mail.example.com/",
                "mail.example.com",
                587,
                Protection::StartTls,
                Some(("u", "p@/")),
            ),
            ("smtps://[::1]:2465", "::1", 2465, Protection::Tls, None),
            ("smtp://127.0.0.1:2525?tls=off", "127.0.0.1", 2525, Protection::Off, None),
            ("smtp://localhost?tls=off", "localhost", 25, Protection::Off, None),
        ] {
            let settings = read(url).unwrap();
            let found = settings.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
            assert_eq!(
                (settings.host.as_str(), settings.port, settings.protection, found),
                (host, port, protection, login),
                "{url}"
            );
        }
        for url in [
            "",
            "mail.example.com",
            "http://mail.example.com",
            "smtp://mail.example.com?tls=off",
            "smtps://mail.example.com?tls=off",
            "smtp://mail.example.com?tls=maybe",
            "smtps://mail.example.com/path",
            "smtps://user@mail.example.com",
            "smtps://:password@mail.example.com",
            "smtps://",
        ] {
            let fault = read(url).unwrap_err();
            assert!(matches!(fault, InvalidSetting::Server(_)), "{url}: {fault}");
        }
        assert_eq!(MailSettings::parse("smtps://mail.example.com", "x"), Err(InvalidSetting::From));
    }

    #[test]
    fn a_password_is_not_shown() {
        let settings = MailSettings::parse("smtps://user:hidden@example.com", "a@example.com").unwrap();
        assert!(!format!("{settings:?}").contains("hidden"));
    }

    #[test]
    fn an_authority_is_a_certificate() {
        let settings = MailSettings::parse("smtps://example.com", "a@example.com").unwrap();
        assert_eq!(settings.with_ca(b"no PEM".to_vec()), Err(InvalidSetting::Ca));
    }
}
