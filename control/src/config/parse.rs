//! Parses and checks the settings that only control has; the rest is in [`platform::settings`].

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use ::mail::{InvalidSetting, MAILS_PER_ACCOUNT, MailSettings};
use ::oidc::{InvalidSetting as InvalidOidc, OidcSettings};
use ::printing::service::{MAX_CODES, PrintLimits};
use kernel::{domain::access, service::capacity::CapacityLimits};
use platform::{
    TimeLimits,
    settings::{ConfigError, number},
};
use shared::short_url::{Scheme, ShortDomain};
use web::limiter::Limits;

use super::{DomainSetting, FileStore, LimitSettings, MailTexts, OidcTexts};

/// Whether a folder has a certificate with its key.
#[must_use]
pub fn holds_certificate(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|files| {
        files.filter_map(Result::ok).map(|file| file.path()).any(|path| {
            path.extension().is_some_and(|end| end == "pem") && path.with_extension("key").is_file()
        })
    })
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
/// The text is not one.
pub fn count(key: &'static str, text: Option<&str>, default: u32) -> Result<u32, ConfigError> {
    const MAX: u32 = 1_000_000;
    let Some(text) = text else { return Ok(default) };
    let wrong = || ConfigError::new(key, format!("{text:?} is no whole number from 0 (off) to {MAX}"));
    text.parse().ok().filter(|count| *count <= MAX).ok_or_else(wrong)
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

/// The store of file content, if it is set.
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

/// How many requests keys and addresses may make.
///
/// # Errors
/// One is no number.
pub fn limits(texts: &LimitSettings) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    let count = |key, text: &Option<String>, default| count(key, text.as_deref(), default);
    Ok(Limits {
        requests_per_key: count(
            "WAYMARK_REQUESTS_PER_KEY",
            &texts.requests_per_key,
            default.requests_per_key,
        )?,
        refusals_per_address: count(
            "WAYMARK_REFUSALS_PER_ADDRESS",
            &texts.refusals_per_address,
            default.refusals_per_address,
        )?,
        logins_per_address: count(
            "WAYMARK_LOGINS_PER_ADDRESS",
            &texts.logins_per_address,
            default.logins_per_address,
        )?,
    })
}

/// How many connections and uploads there may be.
///
/// # Errors
/// One is no number in its range.
pub fn capacity(texts: &LimitSettings) -> Result<CapacityLimits, ConfigError> {
    /// With fewer, shares would be empty.
    const LEAST: usize = 8;
    const MOST: usize = 1_000_000;
    let default = CapacityLimits::default();
    let maybe = |key, text: Option<&str>, least| {
        text.map(|text| number(key, Some(text), 0, least..=MOST)).transpose()
    };
    let headers = number(
        "WAYMARK_HEADER_SECONDS",
        texts.header_seconds.as_deref(),
        default.times.headers.as_secs(),
        1..=600,
    )?;
    Ok(CapacityLimits {
        api_connections: maybe("WAYMARK_API_CONNECTIONS", texts.api_connections.as_deref(), LEAST)?,
        mqtt_connections: maybe("WAYMARK_MQTT_CONNECTIONS", texts.mqtt_connections.as_deref(), LEAST)?,
        connections_per_address: number(
            "WAYMARK_API_CONNECTIONS_PER_ADDRESS",
            texts.api_connections_per_address.as_deref(),
            default.connections_per_address,
            1..=MOST,
        )?,
        connections_per_key: maybe("WAYMARK_CONNECTIONS_PER_KEY", texts.connections_per_key.as_deref(), 1)?,
        connections_per_account: maybe(
            "WAYMARK_CONNECTIONS_PER_ACCOUNT",
            texts.connections_per_account.as_deref(),
            1,
        )?,
        times: TimeLimits { headers: Duration::from_secs(headers), ..default.times },
        uploads: number("WAYMARK_UPLOADS", texts.uploads.as_deref(), default.uploads, 1..=10_000)?,
        upload_rate: number(
            "WAYMARK_UPLOAD_BYTES_PER_SECOND",
            texts.upload_bytes_per_second.as_deref(),
            default.upload_rate,
            1..=1 << 30,
        )?,
        upload_window: default.upload_window,
        writes: default.writes,
    })
}

/// How mail is sent; `None` is not at all. An error repeats no text, which may hold a password.
///
/// # Errors
/// One cannot be used, or is of no use without another.
pub fn mail(texts: &MailTexts) -> Result<Option<MailSettings>, ConfigError> {
    const URL: &str = "WAYMARK_SMTP_URL";
    const FROM: &str = "WAYMARK_MAIL_FROM";
    let others = [("WAYMARK_SMTP_CA", &texts.smtp_ca), (FROM, &texts.mail_from)];
    let most = texts.mails_per_account.as_deref();
    let per_account = number("WAYMARK_MAILS_PER_ACCOUNT", most, MAILS_PER_ACCOUNT, 0..=u32::MAX)?;
    let Some(server) = &texts.smtp_url else {
        return match others.into_iter().find(|(_, text)| text.is_some()) {
            Some((key, _)) => {
                Err(ConfigError::new(key, "it is of no use without WAYMARK_SMTP_URL: set both"))
            }
            None => Ok(None),
        };
    };
    let Some(from) = &texts.mail_from else {
        return Err(ConfigError::new(FROM, "mail needs a sender: give noreply@example.com"));
    };
    let wrong = |key| move |error: InvalidSetting| ConfigError::new(key, error.to_string());
    let read = MailSettings::parse(server, from);
    let mut settings =
        read.map_err(|error| wrong(if error == InvalidSetting::From { FROM } else { URL })(error))?;
    settings.per_account = per_account;
    if let Some(path) = &texts.smtp_ca {
        let key = "WAYMARK_SMTP_CA";
        let unread =
            |error| ConfigError::new(key, format!("{path} cannot be read: {error}; give a PEM file"));
        settings = settings.with_ca(std::fs::read(path).map_err(unread)?).map_err(wrong(key))?;
    }
    Ok(Some(settings))
}

/// The provider by which operators sign in; `None` is none. An error repeats no secret.
///
/// # Errors
/// One cannot be used, or is of no use without another.
pub fn oidc(texts: &OidcTexts) -> Result<Option<OidcSettings>, ConfigError> {
    const ISSUER: &str = "WAYMARK_OIDC_ISSUER";
    const ID: &str = "WAYMARK_OIDC_CLIENT_ID";
    const SECRET: &str = "WAYMARK_OIDC_CLIENT_SECRET_FILE";
    const CA: &str = "WAYMARK_OIDC_CA";
    const CLAIM: &str = "WAYMARK_OIDC_REQUIRED_CLAIM";
    let others = [
        (ID, &texts.oidc_client_id),
        (SECRET, &texts.oidc_client_secret_file),
        (CA, &texts.oidc_ca),
        (CLAIM, &texts.oidc_required_claim),
    ];
    let Some(issuer) = &texts.oidc_issuer else {
        return match others.into_iter().find(|(_, text)| text.is_some()) {
            Some((key, _)) => {
                Err(ConfigError::new(key, "it is of no use without WAYMARK_OIDC_ISSUER: set both"))
            }
            None => Ok(None),
        };
    };
    let needed = |key, text: &Option<String>| {
        let missing = "WAYMARK_OIDC_ISSUER needs it: set both";
        text.clone().ok_or_else(|| ConfigError::new(key, missing))
    };
    let id = needed(ID, &texts.oidc_client_id)?;
    let secret = private_text(SECRET, &needed(SECRET, &texts.oidc_client_secret_file)?)?;
    let wrong = |error: InvalidOidc| {
        let key = match error {
            InvalidOidc::Issuer(_) => ISSUER,
            InvalidOidc::ClientId => ID,
            InvalidOidc::ClientSecret => SECRET,
            InvalidOidc::Ca => CA,
            InvalidOidc::RequiredClaim => CLAIM,
        };
        ConfigError::new(key, error.to_string())
    };
    let mut settings = OidcSettings::parse(issuer, &id, &secret).map_err(wrong)?;
    if let Some(claim) = &texts.oidc_required_claim {
        settings = settings.with_required_claim(claim).map_err(wrong)?;
    }
    let Some(path) = &texts.oidc_ca else { return Ok(Some(settings)) };
    let unread = |error| ConfigError::new(CA, format!("{path} cannot be read: {error}; give a PEM file"));
    Ok(Some(settings.with_ca(fs::read(path).map_err(unread)?).map_err(wrong)?))
}

/// The text of a file that holds a secret.
pub(super) fn private_text(key: &'static str, path: &str) -> Result<String, ConfigError> {
    let unread = |error| ConfigError::new(key, format!("{path} cannot be read: {error}"));
    let mode = fs::metadata(path).map_err(unread)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let reason = format!("{path} is open to its group or to others (mode {mode:03o}): chmod 600 {path}");
        return Err(ConfigError::new(key, reason));
    }
    fs::read_to_string(path).map_err(unread)
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A hundred years.
const MAX_DAYS: u64 = 36_500;

// Spec gap: how long jobs can be read is not shown.
/// Default retention of finished jobs: 30 days.
pub const JOBS_KEPT: Duration = Duration::from_secs(30 * DAY_SECONDS);

/// How long jobs are kept once they have ended; `None` is for ever.
///
/// # Errors
/// It is no number of days.
pub fn jobs_kept(days: Option<&str>) -> Result<Option<Duration>, ConfigError> {
    let default = JOBS_KEPT.as_secs() / DAY_SECONDS;
    let days = number("WAYMARK_JOBS_KEPT_DAYS", days, default, 0..=MAX_DAYS)?;
    Ok((days > 0).then(|| Duration::from_secs(days * DAY_SECONDS)))
}

/// How large print orders may be, and how long their files are kept. The orders are kept as long as jobs.
///
/// # Errors
/// One of them is no number, or out of range.
pub fn printing(texts: &LimitSettings) -> Result<PrintLimits, ConfigError> {
    let most = MAX_CODES;
    let max_codes = number("WAYMARK_PRINT_CODES", texts.print_codes.as_deref(), most, 1..=most)?;
    let days = number("WAYMARK_PRINT_FILES_DAYS", texts.print_files_days.as_deref(), 30, 0..=MAX_DAYS)?;
    let files_kept = (days > 0).then(|| Duration::from_secs(days * DAY_SECONDS));
    Ok(PrintLimits { max_codes, files_kept, orders_kept: jobs_kept(texts.jobs_kept_days.as_deref())? })
}

/// The DNS server that is asked for the records of domains; `None`: those of the system.
///
/// # Errors
/// It is no address with a port.
pub fn dns_server(text: Option<&str>) -> Result<Option<SocketAddr>, ConfigError> {
    let wrong = |text: &str| {
        let fault = format!("{text:?} is no address: give an IP and a port, such as 192.0.2.53:53");
        ConfigError::new("WAYMARK_DNS_SERVER", fault)
    };
    let parse = |text: &str| text.parse::<SocketAddr>().map_err(|_| wrong(text));
    text.filter(|text| !text.is_empty()).map(parse).transpose()
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

/// Checks a city database.
///
/// # Errors
/// The file is not one.
pub fn check_geoip(file: Option<&Path>) -> Result<(), ConfigError> {
    match file {
        Some(file) if !file.is_file() => Err(ConfigError::new(
            "WAYMARK_GEOIP_DB",
            format!("{} is not a file: give a city database (.mmdb) or leave it unset", file.display()),
        )),
        Some(_) | None => Ok(()),
    }
}
