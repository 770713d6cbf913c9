//! Parses the texts of settings for every binary. An error names the setting and the values allowed.
//!
//! Each binary defines its own flags, environment variables and files; this module merges them, says what their text
//! means, and has the groups that all binaries share.

mod file;

use std::{
    fmt::Display,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use shared::{
    client_address::{ForwardedHeader, TrustedProxies},
    contact::{Contact, NotAContact},
};

pub use self::file::with_file;

/// An unusable setting: which one, and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigError {
    /// The variable that holds the setting.
    pub key: &'static str,
    /// The fault and the allowed values, in one line.
    pub reason: String,
}

impl ConfigError {
    /// A setting and its fault.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A filter of the log in which `PART=LEVEL` is said of each crate of a part, such as `edge` or `control`.
#[must_use]
pub fn log_filter(filter: &str, part: &str, crates: &[&str]) -> String {
    let directives = filter.split(',').flat_map(|directive| {
        match directive.trim().strip_prefix(part).and_then(|rest| rest.strip_prefix('=')) {
            Some(level) => crates.iter().map(|name| format!("{name}={level}")).collect(),
            None => vec![directive.to_owned()],
        }
    });
    directives.collect::<Vec<_>>().join(",")
}

/// An address of this machine alone.
#[must_use]
pub const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// An address to listen on.
///
/// # Errors
/// The text is not one.
pub fn listen(
    key: &'static str,
    text: Option<String>,
    default: SocketAddr,
) -> Result<SocketAddr, ConfigError> {
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|_| {
        ConfigError::new(
            key,
            format!("{text:?} is not an address: give an IP and a port, such as {default} or [::1]:8080"),
        )
    })
}

/// An address to listen on, or `off`.
///
/// # Errors
/// It is neither.
pub fn listen_or_off(
    key: &'static str,
    text: Option<&str>,
    default: Option<SocketAddr>,
) -> Result<Option<SocketAddr>, ConfigError> {
    match text {
        None => Ok(default),
        Some("off") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            ConfigError::new(
                key,
                format!("{text:?} is not an address: give an IP and a port, such as 127.0.0.1:8443, or off"),
            )
        }),
    }
}

/// A boolean; unset is false.
///
/// # Errors
/// The text is not one.
pub fn truth(key: &'static str, text: Option<&str>) -> Result<bool, ConfigError> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("0" | "false" | "no" | "off") => Ok(false),
        Some("1" | "true" | "yes" | "on") => Ok(true),
        Some(other) => Err(ConfigError::new(key, format!("{other:?} is neither 1 (true) nor 0 (false)"))),
    }
}

/// A listener without TLS must be on loopback, unless there is a TLS proxy in front.
///
/// # Errors
/// It is reachable from outside.
pub fn check_plain(
    key: &'static str,
    address: SocketAddr,
    behind_tls_proxy: bool,
) -> Result<(), ConfigError> {
    if address.ip().is_loopback() || behind_tls_proxy {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!(
            "{address} is reachable from outside without TLS: listen on 127.0.0.1 or [::1], use the TLS listener, \
             or say WAYMARK_BEHIND_TLS_PROXY=1 when a TLS proxy stands in front"
        ),
    ))
}

/// Why a file with a secret is refused by its mode: every user of the machine may read or change it.
#[must_use]
pub fn open_to_others(path: &std::path::Path, mode: u32) -> Option<String> {
    /// Permissions of users other than the owner and the group.
    const OTHERS: u32 = 0o007;
    (mode & OTHERS != 0).then(|| {
        let (path, mode) = (path.display(), mode & 0o777);
        format!(
            "{path} is open to every user of this machine (mode {mode:03o}): chmod 600 it, or 640 for a group"
        )
    })
}

/// Addresses and networks of proxies.
///
/// # Errors
/// An entry is invalid.
fn trusted_proxies(text: &str) -> Result<TrustedProxies, ConfigError> {
    text.parse().map_err(|error| {
        ConfigError::new(
            "WAYMARK_TRUSTED_PROXIES",
            format!("{error}: give addresses and networks, with commas"),
        )
    })
}

/// The header in which trusted proxies name the client; unset is `X-Forwarded-For`.
///
/// # Errors
/// It is another one, or both.
fn forwarded_header(text: Option<&str>) -> Result<ForwardedHeader, ConfigError> {
    let header = text.map(str::parse).transpose();
    let wrong = |error| {
        let reason = format!("{error}: name the one that the proxies write");
        ConfigError::new("WAYMARK_FORWARDED_HEADER", reason)
    };
    header.map(Option::unwrap_or_default).map_err(wrong)
}

/// A warning at start behind a TLS proxy: without trusted addresses all clients appear to be that proxy.
#[must_use]
pub fn proxy_warning(behind_tls_proxy: bool, proxies: &TrustedProxies) -> Option<&'static str> {
    (behind_tls_proxy && proxies.is_empty()).then_some(
        "a TLS proxy stands in front, but WAYMARK_TRUSTED_PROXIES names none: every client counts as the proxy, so \
         scans have its address and limits by address hold for all clients together",
    )
}

/// The base of the API as clients reach it.
///
/// # Errors
/// It is no scheme and host alone.
pub fn public_url(text: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    let is_base = url::Url::parse(&text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.path() == "/"
    });
    if is_base {
        return Ok(Some(text.trim_end_matches('/').to_owned()));
    }
    Err(ConfigError::new("WAYMARK_PUBLIC_URL", format!("{text:?} is no base such as https://api.example")))
}

/// A whole number within its range; unset is the default.
///
/// # Errors
/// The text is not one, or is out of range.
pub fn number<T: FromStr + PartialOrd + Display>(
    key: &'static str,
    text: Option<&str>,
    default: T,
    allowed: RangeInclusive<T>,
) -> Result<T, ConfigError> {
    let Some(text) = text else { return Ok(default) };
    text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        ConfigError::new(key, format!("{text:?} is no whole number from {least} to {most}"))
    })
}

/// The name of an edge or a region.
///
/// # Errors
/// The text is not valid.
pub fn name(key: &'static str, text: &str) -> Result<String, ConfigError> {
    const MAX_NAME: usize = 64;
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_fine) {
        return Ok(text.to_owned());
    }
    let reason = format!("{text:?} is no name: give 1 to {MAX_NAME} letters, digits and . _ -");
    Err(ConfigError::new(key, reason))
}

/// Where a binary stands in the network: settings that all binaries have.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct Network {
    /// Folder of certificates, HOST.pem and HOST.key for each host; exchanged ones are taken within seconds
    /// [default: none]
    #[arg(long, env = "WAYMARK_TLS_DIR", value_name = "DIR")]
    pub tls_dir: Option<String>,

    /// A TLS proxy stands in front: plain listeners may leave loopback [default: false]
    #[arg(
        long,
        env = "WAYMARK_BEHIND_TLS_PROXY",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub behind_tls_proxy: Option<String>,

    /// Proxies that may name the client, as addresses or networks separated by commas, such as
    /// 127.0.0.1,10.0.0.0/8 [default: none]
    #[arg(long, env = "WAYMARK_TRUSTED_PROXIES", value_name = "CIDR,…")]
    pub trusted_proxies: Option<String>,

    /// The one header in which trusted proxies name the client: X-Forwarded-For or Forwarded; the other one is
    /// not looked at [default: X-Forwarded-For]
    #[arg(long, env = "WAYMARK_FORWARDED_HEADER", value_name = "NAME")]
    pub forwarded_header: Option<String>,

    /// Where people report abuse, a mail address or an https URL: on pages, in refusals and in
    /// /.well-known/security.txt [default: none]
    #[arg(long, env = "WAYMARK_ABUSE_CONTACT", value_name = "MAIL|URL")]
    pub abuse_contact: Option<String>,
}

impl Network {
    /// Whether a TLS proxy stands in front.
    ///
    /// # Errors
    /// The text is no truth value.
    pub fn is_behind_tls_proxy(&self) -> Result<bool, ConfigError> {
        truth("WAYMARK_BEHIND_TLS_PROXY", self.behind_tls_proxy.as_deref())
    }

    /// Where people report abuse.
    ///
    /// # Errors
    /// The text is neither a mail address nor an `https` URL.
    pub fn contact(&self) -> Result<Option<Contact>, ConfigError> {
        let text = self.abuse_contact.as_deref().filter(|text| !text.trim().is_empty());
        text.map(|text| {
            text.parse()
                .map_err(|error: NotAContact| ConfigError::new("WAYMARK_ABUSE_CONTACT", error.to_string()))
        })
        .transpose()
    }

    /// The proxies that may name the client, and how they do it.
    ///
    /// # Errors
    /// An entry is no network, or the header is unknown.
    pub fn proxies(&self) -> Result<TrustedProxies, ConfigError> {
        Ok(trusted_proxies(self.trusted_proxies.as_deref().unwrap_or_default())?
            .reading(forwarded_header(self.forwarded_header.as_deref())?)
            .behind_tls_proxy(self.is_behind_tls_proxy()?))
    }
}

/// What a binary logs: settings that all binaries have.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct Log {
    /// What to log, as error, warn, info, debug, trace or a filter such as info,control=debug,edge=debug
    /// [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Form of the log: text or json [default: text]
    #[arg(long, env = "WAYMARK_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,
}

impl Log {
    /// What to log; an empty text counts as unset.
    #[must_use]
    pub fn filter(&self) -> &str {
        self.log.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("info")
    }

    /// The form of the log.
    ///
    /// # Errors
    /// It is unknown.
    pub fn form(&self) -> Result<LogFormat, ConfigError> {
        match self.log_format.as_deref().map(str::trim) {
            None | Some("" | "text") => Ok(LogFormat::Text),
            Some("json") => Ok(LogFormat::Json),
            Some(other) => {
                Err(ConfigError::new("WAYMARK_LOG_FORMAT", format!("{other:?} is neither text nor json")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_a_part_is_that_of_its_crates() {
        let filter = |text| log_filter(text, "edge", &["edge", "replica", "scans"]);
        for (text, expected) in [
            ("info", "info"),
            ("edge=debug", "edge=debug,replica=debug,scans=debug"),
            ("warn, edge=debug,hyper=error", "warn,edge=debug,replica=debug,scans=debug,hyper=error"),
            ("edges=debug,edge::cache=trace", "edges=debug,edge::cache=trace"),
        ] {
            assert_eq!(filter(text), expected);
        }
    }
}
