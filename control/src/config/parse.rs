//! From text to what settings mean; every error names the setting and what is allowed.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use figment::{
    Figment,
    providers::{Format, Toml},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned},
};
use shared::{
    client_address::TrustedProxies,
    short_url::{Scheme, ShortDomain},
};

use super::{ConfigError, DomainSetting, FileStore, LogFormat};
use crate::{domain::access, service::limiter::Limits};

/// An address of this machine alone.
#[must_use]
pub const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Whether a folder has a certificate with its key.
#[must_use]
pub fn holds_certificate(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|files| {
        files.filter_map(Result::ok).map(|file| file.path()).any(|path| {
            path.extension().is_some_and(|end| end == "pem") && path.with_extension("key").is_file()
        })
    })
}

/// An address to listen on.
///
/// # Errors
/// It is none.
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

/// A truth value; unset is false.
///
/// # Errors
/// It is none.
pub fn truth(key: &'static str, text: Option<&str>) -> Result<bool, ConfigError> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("0" | "false" | "no" | "off") => Ok(false),
        Some("1" | "true" | "yes" | "on") => Ok(true),
        Some(other) => Err(ConfigError::new(key, format!("{other:?} is neither 1 (true) nor 0 (false)"))),
    }
}

/// Hosts of short URLs, separated by commas.
///
/// # Errors
/// One is no host, or is named twice.
pub fn domains(text: &str) -> Result<Vec<DomainSetting>, ConfigError> {
    let mut out: Vec<DomainSetting> = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (scheme, host) = match entry.split_once("://") {
            None => (None, entry),
            Some(("http", host)) => (Some(Scheme::Http), host),
            Some(("https", host)) => (Some(Scheme::Https), host),
            Some(_) => return Err(bad_domain(entry)),
        };
        let host = host.strip_suffix('/').unwrap_or(host).to_ascii_lowercase();
        ShortDomain::new(scheme.unwrap_or(Scheme::Https), &host).map_err(|_| bad_domain(entry))?;
        if out.iter().any(|known| known.host == host) {
            return Err(ConfigError::new("WAYMARK_SHORT_DOMAINS", format!("{host} is named twice")));
        }
        out.push(DomainSetting { scheme, host });
    }
    Ok(out)
}

/// A number up to a million.
///
/// # Errors
/// It is none.
pub fn count(key: &'static str, text: Option<&str>, default: u32) -> Result<u32, ConfigError> {
    const MAX: u32 = 1_000_000;
    let Some(text) = text else { return Ok(default) };
    let wrong = || ConfigError::new(key, format!("{text:?} is no whole number from 0 (off) to {MAX}"));
    text.parse().ok().filter(|count| *count <= MAX).ok_or_else(wrong)
}

/// Addresses and networks of proxies.
///
/// # Errors
/// One is none.
pub fn trusted_proxies(text: &str) -> Result<TrustedProxies, ConfigError> {
    text.parse().map_err(|error| {
        ConfigError::new(
            "WAYMARK_TRUSTED_PROXIES",
            format!("{error}: give addresses and networks, with commas"),
        )
    })
}

fn bad_domain(entry: &str) -> ConfigError {
    ConfigError::new(
        "WAYMARK_SHORT_DOMAINS",
        format!("{entry:?} is not a host: give names such as tn.gg or http://127.0.0.1:8081, with commas"),
    )
}

/// A key of an operator; an error does not repeat it.
///
/// # Errors
/// It has not the form of a key.
pub fn operator_key(text: Option<String>) -> Result<Option<String>, ConfigError> {
    match text {
        // The text itself is not repeated: it may be a key with a slip in it.
        Some(text) if !access::is_key(&text) => Err(ConfigError::new(
            "WAYMARK_OPERATOR_KEY",
            format!(
                "a key has exactly {} characters A-Z a-z 0-9; this one has {}{}",
                access::KEY_LEN,
                text.chars().count(),
                if text.len() == access::KEY_LEN { " with others among them" } else { "" },
            ),
        )),
        key => Ok(key),
    }
}

/// Where the content of files is, if anything is said.
///
/// # Errors
/// It is neither a folder nor a bucket.
pub fn file_store(text: Option<&str>) -> Result<Option<FileStore>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    if let Some(rest) = text.strip_prefix("s3://") {
        let bucket = rest.split('/').next().unwrap_or_default();
        let is_name = bucket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if bucket.len() >= 3 && is_name && !rest.contains(['?', '#', '@']) {
            return Ok(Some(FileStore::Bucket(text.to_owned())));
        }
    } else if !text.contains("://") {
        return Ok(Some(FileStore::Folder(text.into())));
    }
    Err(ConfigError::new(
        "WAYMARK_FILES_URL",
        "give a folder, or s3://bucket/prefix with the usual AWS_… variables for the rest",
    ))
}

/// The form of the log; unset is text.
///
/// # Errors
/// It is unknown.
pub fn log_format(text: Option<&str>) -> Result<LogFormat, ConfigError> {
    match text {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => {
            Err(ConfigError::new("WAYMARK_LOG_FORMAT", format!("{other:?} is neither text nor json")))
        }
    }
}

/// How many requests keys and addresses may make: a key, refusals and logins of an address.
///
/// # Errors
/// One is no number.
pub fn limits(
    key: Option<&str>,
    refusals: Option<&str>,
    logins: Option<&str>,
) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    Ok(Limits {
        requests_per_key: count("WAYMARK_REQUESTS_PER_KEY", key, default.requests_per_key)?,
        refusals_per_address: count("WAYMARK_REFUSALS_PER_ADDRESS", refusals, default.refusals_per_address)?,
        logins_per_address: count("WAYMARK_LOGINS_PER_ADDRESS", logins, default.logins_per_address)?,
    })
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

// Spec gap: how long jobs can be read is not shown.
/// How long jobs are kept once they have ended, unless something else is said: 30 days.
pub const JOBS_KEPT: Duration = Duration::from_secs(30 * DAY_SECONDS);

/// How long jobs are kept once they have ended; `None` is for ever.
///
/// # Errors
/// It is no number of days.
pub fn jobs_kept(days: Option<&str>) -> Result<Option<Duration>, ConfigError> {
    /// A hundred years.
    const MAX_DAYS: u64 = 36_500;
    let Some(text) = days else { return Ok(Some(JOBS_KEPT)) };
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(days @ 1..=MAX_DAYS) => Ok(Some(Duration::from_secs(days * DAY_SECONDS))),
        Ok(_) | Err(_) => {
            let reason = format!("{text:?} is no whole number from 0 to {MAX_DAYS}");
            Err(ConfigError::new("WAYMARK_JOBS_KEPT_DAYS", reason))
        }
    }
}

/// A listener without TLS stays on this machine, unless a TLS proxy stands in front.
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

/// No two listeners share an address.
///
/// # Errors
/// Two do.
pub fn check_twins(addresses: &[(&'static str, Option<SocketAddr>)]) -> Result<(), ConfigError> {
    for (at, (key, address)) in addresses.iter().enumerate() {
        let twin = addresses.iter().take(at).find(|(_, other)| other == address);
        if let (Some(address), Some((other, _))) = (address.filter(|a| a.port() != 0), twin) {
            return Err(ConfigError::new(key, format!("{address} is taken by {other}: use another port")));
        }
    }
    Ok(())
}

/// A folder of certificates that holds at least one.
///
/// # Errors
/// It holds none.
pub fn check_certificates(dir: &Path) -> Result<(), ConfigError> {
    if holds_certificate(dir) {
        return Ok(());
    }
    Err(ConfigError::new(
        "WAYMARK_TLS_DIR",
        format!("{} must be a folder with <host>.pem and <host>.key for each host", dir.display()),
    ))
}

/// A city database that is a file.
///
/// # Errors
/// It is none.
pub fn check_geoip(file: Option<&Path>) -> Result<(), ConfigError> {
    match file {
        Some(file) if !file.is_file() => Err(ConfigError::new(
            "WAYMARK_GEOIP_DB",
            format!("{} is not a file: give a city database (.mmdb) or leave it unset", file.display()),
        )),
        Some(_) | None => Ok(()),
    }
}

/// What a TOML file says.
///
/// # Errors
/// It cannot be read, is not TOML, or has a key that is unknown.
pub fn read_file<T: DeserializeOwned>(path: &str) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::new("WAYMARK_CONFIG", format!("cannot read {path}: {error}")))?;
    Figment::from(Toml::string(&text)).extract().map_err(|error| {
        // One line: the parser draws the place over several.
        let words: Vec<String> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
        ConfigError::new("WAYMARK_CONFIG", format!("{path}: {}", words.join(" ")))
    })
}

/// Takes what flag or variable say, else what the file says; an empty text counts as unset, as compose files
/// write it.
#[must_use]
pub fn first_of(here: Option<String>, file: Option<String>) -> Option<String> {
    here.filter(|text| !text.trim().is_empty())
        .or(file.filter(|text| !text.trim().is_empty()))
        .map(|text| text.trim().to_owned())
}

/// Reads a text, a number, a truth value or a list (joined by commas) as text.
///
/// # Errors
/// It is something else.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Bool(bool),
        Number(i64),
        Text(String),
        List(Vec<String>),
    }
    match Value::deserialize(deserializer) {
        Ok(Value::Bool(value)) => Ok(Some(value.to_string())),
        Ok(Value::Number(value)) => Ok(Some(value.to_string())),
        Ok(Value::Text(value)) => Ok(Some(value)),
        Ok(Value::List(values)) => Ok(Some(values.join(","))),
        Err(_) => Err(de::Error::custom("a text, a number, true or false, or a list of texts is expected")),
    }
}
