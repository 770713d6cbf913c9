//! The settings of control, parsed and checked before any port is bound.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use ::mail::MailSettings;
use ::oidc::OidcSettings;
use kernel::service::capacity::CapacityLimits;
use platform::settings::{check_plain, listen, listen_or_off, loopback, name, number, public_url, truth};
use region_redis::{InvalidRedisUrl, RedisUrl};
use shared::{client_address::TrustedProxies, contact::Contact, short_url::Scheme, wire::view::MAX_SHARDS};
use web::limiter::Limits;

use self::parse::{
    capacity, check_certificates, check_geoip, check_twins, dns_server, file_store, jobs_kept, limits, mail,
    oidc, printing,
};
use crate::secret_key_file;

pub mod acme;
pub mod parse;
pub mod scans;
mod settings;

pub use ::certificates::settings::AcmeSettings;
pub use ::printing::service::PrintLimits;
pub use acme::AcmeTexts;
pub use platform::settings::{ConfigError, LogFormat};
pub use scan_store::domain::scan_server::ScanServer;
pub use scans::ScanTexts;
pub use settings::{Database, LimitSettings, MailTexts, OidcTexts, Place, SecretKeyFile, Settings};

/// Where the content of files is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStore {
    /// A folder.
    Folder(PathBuf),
    /// An S3 bucket, as `s3://bucket/prefix`.
    Bucket(String),
}

/// A short domain as given: without a scheme it follows the edge's listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSetting {
    /// The scheme, where one was given.
    pub scheme: Option<Scheme>,
    /// The host, with a port where one was given.
    pub host: String,
}

/// Where the view of a region is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// The servers.
    pub url: RedisUrl,
    /// The authority that signed their certificates, as PEM; `None` means those of the system.
    pub ca: Option<Vec<u8>>,
    /// Into how many shards the view is cut: 1, or 16 on a cluster; fixed at set-up.
    pub shards: u16,
}

/// Settings of `control serve`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Plain listener of the API.
    pub api_listen: SocketAddr,
    /// TLS listener of the API.
    pub api_tls_listen: Option<SocketAddr>,
    /// Plain listener of MQTT.
    pub mqtt_listen: Option<SocketAddr>,
    /// TLS listener of MQTT.
    pub mqtt_tls_listen: Option<SocketAddr>,
    /// Plain listener of edges.
    pub internal_listen: SocketAddr,
    /// TLS listener of edges.
    pub internal_tls_listen: Option<SocketAddr>,
    /// Listener of `/live`, `/ready` and `/metrics`.
    pub admin_listen: SocketAddr,
    /// Base of the API as clients reach it; without it the host of a request counts if it is known.
    pub public_url: Option<String>,
    /// Folder of certificates.
    pub tls_dir: Option<PathBuf>,
    /// Whether there is a TLS proxy in front.
    pub behind_tls_proxy: bool,
    /// Where people report abuse.
    pub contact: Option<Contact>,
    /// Whether webhooks may lead to loopback.
    pub webhooks_loopback: bool,
    /// Who is asked for the TXT records of domains; `None`: the servers of the system.
    pub dns_server: Option<SocketAddr>,
    /// The authority that is asked for certificates of domains; `None`: none is.
    pub acme: Option<AcmeSettings>,
    /// Proxies that may name the client.
    pub trusted_proxies: TrustedProxies,
    /// How many requests keys and addresses may make.
    pub limits: Limits,
    /// How many connections and uploads there may be.
    pub capacity: CapacityLimits,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub jobs_kept: Option<Duration>,
    /// How large print orders may be, and how long their files are kept.
    pub printing: PrintLimits,
    /// How mail is sent; `None` is not at all.
    pub mail: Option<MailSettings>,
    /// The provider by which operators sign in; `None` is none.
    pub oidc: Option<OidcSettings>,
    /// A city database.
    pub geoip_db: Option<PathBuf>,
    /// URL of the Postgres server.
    pub database_url: String,
    /// Whether the start brings the schema up to date.
    pub migrate: bool,
    /// The keys that encrypt the secrets in the database.
    pub secret_key_file: PathBuf,
    /// The view of the region.
    pub redis: RedisSettings,
    /// The region whose view this replica may publish.
    pub region: Arc<str>,
    /// Where scans are, if not in the database.
    pub scans: Option<ScanServer>,
    /// Where the content of files is.
    pub files: FileStore,
    /// What to log.
    pub log: String,
    /// Form of the log.
    pub log_format: LogFormat,
    /// Base URL of a collector of spans.
    pub otlp_url: Option<String>,
}

impl Config {
    /// Reads and checks settings.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn read(settings: Settings) -> Result<Self, ConfigError> {
        let settings = settings.with_file()?;
        let behind_tls_proxy = settings.network.is_behind_tls_proxy()?;
        let config = Self {
            api_listen: listen("WAYMARK_API_LISTEN", settings.api_listen, loopback(8080))?,
            api_tls_listen: listen_or_off(
                "WAYMARK_API_TLS_LISTEN",
                settings.api_tls_listen.as_deref(),
                None,
            )?,
            mqtt_listen: listen_or_off("WAYMARK_MQTT_LISTEN", settings.mqtt_listen.as_deref(), None)?,
            mqtt_tls_listen: listen_or_off(
                "WAYMARK_MQTT_TLS_LISTEN",
                settings.mqtt_tls_listen.as_deref(),
                None,
            )?,
            internal_listen: listen("WAYMARK_INTERNAL_LISTEN", settings.internal_listen, loopback(8083))?,
            internal_tls_listen: listen_or_off(
                "WAYMARK_INTERNAL_TLS_LISTEN",
                settings.internal_tls_listen.as_deref(),
                None,
            )?,
            admin_listen: listen("WAYMARK_ADMIN_LISTEN", settings.admin_listen, loopback(8082))?,
            public_url: public_url(settings.public_url)?,
            tls_dir: settings.network.tls_dir.as_deref().map(PathBuf::from),
            behind_tls_proxy,
            contact: settings.network.contact()?,
            webhooks_loopback: truth("WAYMARK_WEBHOOKS_LOOPBACK", settings.webhooks_loopback.as_deref())?,
            dns_server: dns_server(settings.dns_server.as_deref())?,
            acme: acme::acme(&settings.acme)?,
            trusted_proxies: settings.network.proxies()?,
            limits: limits(&settings.limits)?,
            capacity: capacity(&settings.limits)?,
            jobs_kept: jobs_kept(settings.limits.jobs_kept_days.as_deref())?,
            printing: printing(&settings.limits)?,
            mail: mail(&settings.mail)?,
            oidc: oidc(&settings.oidc)?,
            geoip_db: settings.geoip_db.map(PathBuf::from),
            database_url: database_url(settings.database_url)?,
            migrate: truth("WAYMARK_MIGRATE", Some(settings.migrate.as_deref().unwrap_or("true")))?,
            redis: redis(settings.redis_url, settings.redis_ca, settings.redis_shards.as_deref())?,
            region: name("WAYMARK_REGION", settings.region.as_deref().unwrap_or("main"))?.into(),
            scans: scans::scans(&settings.scans)?,
            files: files(settings.files_url.as_deref())?,
            secret_key_file: secret_key_file::required(settings.secret_key_file)?,
            log: settings.logging.filter().to_owned(),
            log_format: settings.logging.form()?,
            otlp_url: settings.otlp_url,
        };
        config.check()?;
        Ok(config)
    }

    /// Checks combinations of settings.
    fn check(&self) -> Result<(), ConfigError> {
        let plain = [
            ("WAYMARK_API_LISTEN", self.api_listen),
            ("WAYMARK_INTERNAL_LISTEN", self.internal_listen),
            ("WAYMARK_ADMIN_LISTEN", self.admin_listen),
        ];
        let tls = [
            ("WAYMARK_API_TLS_LISTEN", self.api_tls_listen),
            ("WAYMARK_INTERNAL_TLS_LISTEN", self.internal_tls_listen),
            ("WAYMARK_MQTT_TLS_LISTEN", self.mqtt_tls_listen),
        ];
        let mqtt = ("WAYMARK_MQTT_LISTEN", self.mqtt_listen);
        for (key, address) in plain.into_iter().chain(mqtt.1.map(|address| (mqtt.0, address))) {
            check_plain(key, address, self.behind_tls_proxy)?;
        }
        match (&self.tls_dir, tls.iter().find(|(_, address)| address.is_some())) {
            (None, Some((key, _))) => {
                let reason = "a TLS listener needs certificates: set WAYMARK_TLS_DIR";
                return Err(ConfigError::new(key, reason));
            }
            (Some(_), None) => {
                let reason = "certificates are of no use without WAYMARK_API_TLS_LISTEN, WAYMARK_MQTT_TLS_LISTEN or WAYMARK_INTERNAL_TLS_LISTEN";
                return Err(ConfigError::new("WAYMARK_TLS_DIR", reason));
            }
            (Some(dir), Some(_)) => check_certificates(dir)?,
            (None, None) => {}
        }
        check_geoip(self.geoip_db.as_deref())?;
        secret_key_file::read(&self.secret_key_file)?;
        let plain = plain.map(|(key, address)| (key, Some(address)));
        check_twins(&[plain.as_slice(), tls.as_slice(), &[mqtt]].concat())
    }
}

/// The database of a fleet, which is Postgres.
///
/// # Errors
/// There is none, or it is another.
pub fn database_url(text: Option<String>) -> Result<String, ConfigError> {
    let wrong = |reason: &str| Err(ConfigError::new("DATABASE_URL", reason));
    match text {
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => Ok(url),
        // Not repeated: a URL may hold a password.
        Some(_) => wrong(
            "it is not Postgres: a fleet needs Postgres and Redis, and a start that mixes them says so and stops; \
             give postgres://user@host/database, or run everything in one process by `waymark up`",
        ),
        None => wrong("a fleet needs Postgres: give postgres://user@host/database"),
    }
}

fn redis(
    url: Option<String>,
    ca: Option<String>,
    shards: Option<&str>,
) -> Result<RedisSettings, ConfigError> {
    let wrong = |reason: String| ConfigError::new("REDIS_URL", reason);
    let url =
        url.ok_or_else(|| wrong("a fleet needs Redis beside Postgres: give redis://host:6379".to_owned()))?;
    let url = url.parse().map_err(|error: InvalidRedisUrl| wrong(error.to_string()))?;
    let ca = ca.map(|path| {
        std::fs::read(&path).map_err(|error| {
            ConfigError::new("WAYMARK_REDIS_CA", format!("{path} cannot be read: {error}; give a PEM file"))
        })
    });
    let shards = number("WAYMARK_REDIS_SHARDS", shards, 1, 1..=MAX_SHARDS)?;
    Ok(RedisSettings { url, ca: ca.transpose()?, shards })
}

fn files(text: Option<&str>) -> Result<FileStore, ConfigError> {
    file_store(text)?.ok_or_else(|| {
        let reason =
            "all replicas must share the content of files: give s3://bucket/prefix, or a folder that all of them mount";
        ConfigError::new("WAYMARK_FILES_URL", reason)
    })
}
