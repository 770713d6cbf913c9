//! What one process is told at start; read, checked and typed before any port is bound.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use control::{domain::access, service::limiter::Limits};
use shared::{
    client_address::TrustedProxies,
    short_url::{Scheme, ShortDomain},
};

mod settings;

pub use settings::Settings;

/// A setting that cannot be used: which one, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigError {
    /// The variable that holds the setting.
    pub key: &'static str,
    /// What is wrong and what is allowed, in one line.
    pub reason: String,
}

impl ConfigError {
    pub(crate) fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }
}

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A Postgres server, by its URL.
    Postgres(String),
}

/// Where the content of files is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStore {
    /// A folder.
    Folder(PathBuf),
    /// An S3 bucket, as `s3://bucket/prefix`.
    Bucket(String),
}

/// Where certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// There is no TLS.
    Off,
    /// `<host>.pem` and `<host>.key` in a folder, chosen by SNI.
    Dir(PathBuf),
    /// A local CA made by Waymark.
    Dev,
}

/// A short domain as given: without a scheme it follows the edge's listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSetting {
    /// The scheme, where one was given.
    pub scheme: Option<Scheme>,
    /// The host, with a port where one was given.
    pub host: String,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Settings of one process; [`Config::new`] gives the documented defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of everything that is kept in files.
    pub data_dir: PathBuf,
    /// Plain listener of the API.
    pub api_listen: SocketAddr,
    /// TLS listener of the API.
    pub api_tls_listen: Option<SocketAddr>,
    /// Plain listener of short URLs.
    pub edge_listen: SocketAddr,
    /// TLS listener of short URLs.
    pub edge_tls_listen: Option<SocketAddr>,
    /// Listener of `/live`, `/ready` and `/metrics`.
    pub admin_listen: SocketAddr,
    /// Short domains; empty stands for the edge's own address.
    pub short_domains: Vec<DomainSetting>,
    /// The key that the first operator shall have.
    pub operator_key: Option<String>,
    /// Where certificates come from.
    pub tls: Tls,
    /// Whether a TLS proxy stands in front.
    pub behind_tls_proxy: bool,
    /// Proxies that may name the client.
    pub trusted_proxies: TrustedProxies,
    /// How many requests keys and addresses may make.
    pub limits: Limits,
    /// A city database.
    pub geoip_db: Option<PathBuf>,
    /// Where the data is.
    pub database: Database,
    /// Where the content of files is.
    pub files: FileStore,
    /// What to log.
    pub log: String,
    /// Form of the log.
    pub log_format: LogFormat,
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Config {
    /// The defaults over a data folder.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            api_listen: loopback(8080),
            api_tls_listen: None,
            edge_listen: loopback(8081),
            edge_tls_listen: None,
            admin_listen: loopback(8082),
            short_domains: Vec::new(),
            operator_key: None,
            tls: Tls::Off,
            behind_tls_proxy: false,
            trusted_proxies: TrustedProxies::default(),
            limits: Limits::default(),
            geoip_db: None,
            database: Database::Sqlite(data_dir.join("waymark.db")),
            files: FileStore::Folder(data_dir.join("files")),
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            data_dir,
        }
    }

    /// The defaults with every listener on a free port of loopback: for tests.
    #[must_use]
    pub fn on_free_ports(data_dir: PathBuf) -> Self {
        Self {
            api_listen: loopback(0),
            edge_listen: loopback(0),
            admin_listen: loopback(0),
            ..Self::new(data_dir)
        }
    }

    /// Reads settings.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn read(settings: Settings) -> Result<Self, ConfigError> {
        let settings = settings.with_file()?;
        if settings.redis_url.is_some() {
            return Err(ConfigError::new(
                "REDIS_URL",
                "Redis comes with the fleet; one process works without it, so leave this unset",
            ));
        }
        let data_dir = PathBuf::from(settings.data_dir.as_deref().unwrap_or("./data"));
        let defaults = Self::new(data_dir);
        let dev_tls = truth("WAYMARK_DEV_TLS", settings.dev_tls.as_deref())?;
        let dev = |port| dev_tls.then(|| loopback(port));
        let config = Self {
            api_listen: listen("WAYMARK_API_LISTEN", settings.api_listen, defaults.api_listen)?,
            api_tls_listen: listen_or_off(
                "WAYMARK_API_TLS_LISTEN",
                settings.api_tls_listen.as_deref(),
                dev(8444),
            )?,
            edge_listen: listen("WAYMARK_EDGE_LISTEN", settings.edge_listen, defaults.edge_listen)?,
            edge_tls_listen: listen_or_off(
                "WAYMARK_EDGE_TLS_LISTEN",
                settings.edge_tls_listen.as_deref(),
                dev(8443),
            )?,
            admin_listen: listen("WAYMARK_ADMIN_LISTEN", settings.admin_listen, defaults.admin_listen)?,
            short_domains: domains(settings.short_domains.as_deref().unwrap_or_default())?,
            operator_key: operator_key(settings.operator_key)?,
            tls: tls(settings.tls_dir, dev_tls)?,
            behind_tls_proxy: truth("WAYMARK_BEHIND_TLS_PROXY", settings.behind_tls_proxy.as_deref())?,
            trusted_proxies: trusted_proxies(settings.trusted_proxies.as_deref().unwrap_or_default())?,
            limits: Limits {
                requests_per_key: count(
                    "WAYMARK_REQUESTS_PER_KEY",
                    settings.requests_per_key.as_deref(),
                    defaults.limits.requests_per_key,
                )?,
                refusals_per_address: count(
                    "WAYMARK_REFUSALS_PER_ADDRESS",
                    settings.refusals_per_address.as_deref(),
                    defaults.limits.refusals_per_address,
                )?,
                logins_per_address: count(
                    "WAYMARK_LOGINS_PER_ADDRESS",
                    settings.logins_per_address.as_deref(),
                    defaults.limits.logins_per_address,
                )?,
            },
            geoip_db: settings.geoip_db.map(PathBuf::from),
            database: database(settings.database_url.as_deref(), &defaults.data_dir)?,
            files: file_store(settings.files_url.as_deref(), &defaults.data_dir)?,
            log: settings.log.unwrap_or(defaults.log),
            log_format: log_format(settings.log_format.as_deref())?,
            data_dir: defaults.data_dir,
        };
        config.check()?;
        Ok(config)
    }

    /// Checks what single settings cannot tell.
    ///
    /// # Errors
    /// The first setting that does not go with the others.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (key, address) in [
            ("WAYMARK_API_LISTEN", self.api_listen),
            ("WAYMARK_EDGE_LISTEN", self.edge_listen),
            ("WAYMARK_ADMIN_LISTEN", self.admin_listen),
        ] {
            if !address.ip().is_loopback() && !self.behind_tls_proxy {
                return Err(ConfigError::new(
                    key,
                    format!(
                        "{address} is reachable from outside without TLS: listen on 127.0.0.1 or [::1], use the \
                         TLS listener, or say WAYMARK_BEHIND_TLS_PROXY=1 when a TLS proxy stands in front"
                    ),
                ));
            }
        }
        for (key, address) in [
            ("WAYMARK_API_TLS_LISTEN", self.api_tls_listen),
            ("WAYMARK_EDGE_TLS_LISTEN", self.edge_tls_listen),
        ] {
            if address.is_some() && self.tls == Tls::Off {
                return Err(ConfigError::new(
                    key,
                    "a TLS listener needs certificates: set WAYMARK_TLS_DIR or WAYMARK_DEV_TLS=1",
                ));
            }
        }
        let tls_listens = self.api_tls_listen.is_some() || self.edge_tls_listen.is_some();
        if matches!(self.tls, Tls::Dir(_)) && !tls_listens {
            return Err(ConfigError::new(
                "WAYMARK_TLS_DIR",
                "certificates are of no use without WAYMARK_EDGE_TLS_LISTEN or WAYMARK_API_TLS_LISTEN",
            ));
        }
        self.check_files()?;
        let addresses = [
            ("WAYMARK_API_LISTEN", Some(self.api_listen)),
            ("WAYMARK_EDGE_LISTEN", Some(self.edge_listen)),
            ("WAYMARK_ADMIN_LISTEN", Some(self.admin_listen)),
            ("WAYMARK_EDGE_TLS_LISTEN", self.edge_tls_listen),
            ("WAYMARK_API_TLS_LISTEN", self.api_tls_listen),
        ];
        for (at, (key, address)) in addresses.iter().enumerate() {
            let twin = addresses.iter().take(at).find(|(_, other)| other == address);
            if let (Some(address), Some((other, _))) = (address.filter(|a| a.port() != 0), twin) {
                return Err(ConfigError::new(
                    key,
                    format!("{address} is taken by {other}: use another port"),
                ));
            }
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), ConfigError> {
        if let Tls::Dir(dir) = &self.tls
            && !holds_certificate(dir)
        {
            return Err(ConfigError::new(
                "WAYMARK_TLS_DIR",
                format!("{} must be a folder with <host>.pem and <host>.key for each host", dir.display()),
            ));
        }
        match &self.geoip_db {
            Some(file) if !file.is_file() => Err(ConfigError::new(
                "WAYMARK_GEOIP_DB",
                format!("{} is not a file: give a city database (.mmdb) or leave it unset", file.display()),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The scheme of a short domain that names none.
    #[must_use]
    pub fn default_scheme(&self) -> Scheme {
        if self.edge_tls_listen.is_some() || self.behind_tls_proxy { Scheme::Https } else { Scheme::Http }
    }
}

fn holds_certificate(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|files| {
        files.filter_map(Result::ok).map(|file| file.path()).any(|path| {
            path.extension().is_some_and(|end| end == "pem") && path.with_extension("key").is_file()
        })
    })
}

fn listen(key: &'static str, text: Option<String>, default: SocketAddr) -> Result<SocketAddr, ConfigError> {
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|_| {
        ConfigError::new(
            key,
            format!("{text:?} is not an address: give an IP and a port, such as {default} or [::1]:8080"),
        )
    })
}

fn listen_or_off(
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

fn truth(key: &'static str, text: Option<&str>) -> Result<bool, ConfigError> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("0" | "false" | "no" | "off") => Ok(false),
        Some("1" | "true" | "yes" | "on") => Ok(true),
        Some(other) => Err(ConfigError::new(key, format!("{other:?} is neither 1 (true) nor 0 (false)"))),
    }
}

fn domains(text: &str) -> Result<Vec<DomainSetting>, ConfigError> {
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

fn count(key: &'static str, text: Option<&str>, default: u32) -> Result<u32, ConfigError> {
    const MAX: u32 = 1_000_000;
    let Some(text) = text else { return Ok(default) };
    let wrong = || ConfigError::new(key, format!("{text:?} is no whole number from 0 (off) to {MAX}"));
    text.parse().ok().filter(|count| *count <= MAX).ok_or_else(wrong)
}

fn trusted_proxies(text: &str) -> Result<TrustedProxies, ConfigError> {
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

fn operator_key(text: Option<String>) -> Result<Option<String>, ConfigError> {
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

fn tls(dir: Option<String>, dev: bool) -> Result<Tls, ConfigError> {
    match (dir, dev) {
        (Some(_), true) => Err(ConfigError::new(
            "WAYMARK_DEV_TLS",
            "development certificates and WAYMARK_TLS_DIR exclude each other: set one of them",
        )),
        (Some(dir), false) => Ok(Tls::Dir(dir.into())),
        (None, true) => Ok(Tls::Dev),
        (None, false) => Ok(Tls::Off),
    }
}

fn database(text: Option<&str>, data_dir: &Path) -> Result<Database, ConfigError> {
    let allowed = "give the path of a SQLite file, or postgres://user@host/database";
    let Some(text) = text else { return Ok(Database::Sqlite(data_dir.join("waymark.db"))) };
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok(Database::Postgres(text.to_owned()));
    }
    let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    if path.is_empty() || path.contains("://") || path.contains(":memory:") || path.ends_with('/') {
        // Not repeated: a URL may hold a password.
        return Err(ConfigError::new("DATABASE_URL", format!("it is not a database: {allowed}")));
    }
    Ok(Database::Sqlite(path.into()))
}

fn file_store(text: Option<&str>, data_dir: &Path) -> Result<FileStore, ConfigError> {
    let Some(text) = text else { return Ok(FileStore::Folder(data_dir.join("files"))) };
    if let Some(rest) = text.strip_prefix("s3://") {
        let bucket = rest.split('/').next().unwrap_or_default();
        let is_name = bucket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if bucket.len() >= 3 && is_name && !rest.contains(['?', '#', '@']) {
            return Ok(FileStore::Bucket(text.to_owned()));
        }
    } else if !text.contains("://") {
        return Ok(FileStore::Folder(text.into()));
    }
    Err(ConfigError::new(
        "WAYMARK_FILES_URL",
        "give a folder, or s3://bucket/prefix with the usual AWS_… variables for the rest",
    ))
}

fn log_format(text: Option<&str>) -> Result<LogFormat, ConfigError> {
    match text {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => {
            Err(ConfigError::new("WAYMARK_LOG_FORMAT", format!("{other:?} is neither text nor json")))
        }
    }
}
