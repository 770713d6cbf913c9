//! What one process is told at start; read, checked and typed before any port is bound.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use ::mail::MailSettings;
use ::oidc::OidcSettings;
use control::config::{
    AcmeSettings, ScanServer,
    acme::acme,
    parse::{
        JOBS_KEPT, capacity, check_certificates, check_geoip, check_twins, dns_server, domains, file_store,
        jobs_kept, limits, mail, oidc, operator_key, printing,
    },
    scans::scans,
};
use kernel::service::capacity::CapacityLimits;
use platform::settings::{
    check_plain, listen, listen_or_off, loopback, number, public_url, truth, with_file,
};
use shared::{client_address::TrustedProxies, contact::Contact, short_url::Scheme};
use web::limiter::Limits;

mod lan;
mod settings;

pub use control::config::{DomainSetting, FileStore, PrintLimits};
pub use platform::settings::{ConfigError, LogFormat};
pub use settings::Settings;

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A Postgres server, by its URL.
    Postgres(String),
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

/// Settings of one process; [`Config::new`] gives the documented defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of everything that is kept in files.
    pub data_dir: PathBuf,
    /// Plain listener of the API.
    pub api_listen: SocketAddr,
    /// TLS listener of the API.
    pub api_tls_listen: Option<SocketAddr>,
    /// Plain listener of MQTT.
    pub mqtt_listen: Option<SocketAddr>,
    /// TLS listener of MQTT.
    pub mqtt_tls_listen: Option<SocketAddr>,
    /// Plain listener of short URLs.
    pub edge_listen: SocketAddr,
    /// TLS listener of short URLs.
    pub edge_tls_listen: Option<SocketAddr>,
    /// Whether the edge serves certificates that are got by ACME.
    pub edge_acme: bool,
    /// Listener of `/live`, `/ready` and `/metrics`.
    pub admin_listen: SocketAddr,
    /// Base of the API as clients reach it; without it the host of a request counts if it is known.
    pub public_url: Option<String>,
    /// Short domains; empty stands for the edge's own address.
    pub short_domains: Vec<DomainSetting>,
    /// The key that the first operator shall have.
    pub operator_key: Option<String>,
    /// Where certificates come from.
    pub tls: Tls,
    /// Whether a TLS proxy stands in front.
    pub behind_tls_proxy: bool,
    /// Where people report abuse.
    pub contact: Option<Contact>,
    /// Whether targets of the first account may lead to private addresses; `None` leaves it as it is.
    pub private_targets: Option<bool>,
    /// This machine's address in its network, at which short URLs are served for development.
    pub lan: Option<IpAddr>,
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
    /// Most connections of the edge; `None` is half of the descriptors.
    pub edge_connections: Option<usize>,
    /// Most connections of one address to the edge.
    pub edge_connections_per_address: u32,
    /// Whether the edge holds every link.
    pub is_replica: bool,
    /// Whether the edge answers plain redirects before hyper sees them.
    pub fast_redirects: bool,
    /// How mail is sent; `None` is not at all.
    pub mail: Option<MailSettings>,
    /// The provider by which operators sign in; `None` is none.
    pub oidc: Option<OidcSettings>,
    /// A city database.
    pub geoip_db: Option<PathBuf>,
    /// Where the data is.
    pub database: Database,
    /// Where scans are, if not with the database.
    pub scans: Option<ScanServer>,
    /// The keys that encrypt the secrets in the database; `None` is a file in the data folder, made when it is missing.
    pub secret_key_file: Option<PathBuf>,
    /// Where the content of files is.
    pub files: FileStore,
    /// What to log.
    pub log: String,
    /// Form of the log.
    pub log_format: LogFormat,
    /// Base URL of a collector of spans.
    pub otlp_url: Option<String>,
}

/// Where short URLs are served with development certificates.
const LAN_PORT: u16 = 8443;

impl Config {
    /// The defaults over a data folder.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            api_listen: loopback(8080),
            api_tls_listen: None,
            mqtt_listen: None,
            mqtt_tls_listen: None,
            edge_listen: loopback(8081),
            edge_tls_listen: None,
            edge_acme: false,
            admin_listen: loopback(8082),
            public_url: None,
            short_domains: Vec::new(),
            operator_key: None,
            tls: Tls::Off,
            behind_tls_proxy: false,
            contact: None,
            private_targets: None,
            lan: None,
            webhooks_loopback: false,
            dns_server: None,
            acme: None,
            trusted_proxies: TrustedProxies::default(),
            limits: Limits::default(),
            capacity: CapacityLimits::default(),
            jobs_kept: Some(JOBS_KEPT),
            printing: PrintLimits { orders_kept: Some(JOBS_KEPT), ..PrintLimits::default() },
            edge_connections: None,
            edge_connections_per_address: edge::Limits::default().connections_per_address,
            is_replica: false,
            fast_redirects: true,
            mail: None,
            oidc: None,
            geoip_db: None,
            database: Database::Sqlite(data_dir.join("waymark.db")),
            scans: None,
            secret_key_file: None,
            files: FileStore::Folder(data_dir.join("files")),
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp_url: None,
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
        let settings = with_file(&settings, settings.config.as_deref())?;
        if settings.redis_url.is_some() {
            return Err(ConfigError::new(
                "REDIS_URL",
                "one process works without Redis, so leave this unset; a fleet runs the binaries edge and control",
            ));
        }
        let data_dir = PathBuf::from(settings.data_dir.as_deref().unwrap_or("./data"));
        let defaults = Self::new(data_dir);
        let lan = lan::address(settings.lan.as_deref())?;
        let dev_tls = truth("WAYMARK_DEV_TLS", settings.dev_tls.as_deref())? || lan.is_some();
        let dev = |port| dev_tls.then(|| loopback(port));
        let dev_edge = lan.map(|ip| SocketAddr::new(ip, LAN_PORT)).or(dev(LAN_PORT));
        let behind_tls_proxy = settings.network.is_behind_tls_proxy()?;
        let acme = acme(&settings.acme)?;
        let config = Self {
            api_listen: listen("WAYMARK_API_LISTEN", settings.api_listen, defaults.api_listen)?,
            api_tls_listen: listen_or_off(
                "WAYMARK_API_TLS_LISTEN",
                settings.api_tls_listen.as_deref(),
                dev(8444),
            )?,
            mqtt_listen: listen_or_off("WAYMARK_MQTT_LISTEN", settings.mqtt_listen.as_deref(), None)?,
            mqtt_tls_listen: listen_or_off(
                "WAYMARK_MQTT_TLS_LISTEN",
                settings.mqtt_tls_listen.as_deref(),
                None,
            )?,
            edge_listen: listen("WAYMARK_EDGE_LISTEN", settings.edge_listen, defaults.edge_listen)?,
            edge_tls_listen: listen_or_off(
                "WAYMARK_EDGE_TLS_LISTEN",
                settings.edge_tls_listen.as_deref(),
                dev_edge,
            )?,
            edge_acme: match settings.edge_acme.as_deref() {
                Some(text) => edge::cli::edge_acme(Some(text))?,
                None => acme.is_some(),
            },
            admin_listen: listen("WAYMARK_ADMIN_LISTEN", settings.admin_listen, defaults.admin_listen)?,
            public_url: public_url(settings.public_url)?,
            short_domains: domains(settings.short_domains.as_deref().unwrap_or_default())?,
            operator_key: operator_key(settings.operator_key)?,
            tls: tls(settings.network.tls_dir.clone(), dev_tls)?,
            behind_tls_proxy,
            contact: settings.network.contact()?,
            private_targets: settings
                .private_targets
                .as_deref()
                .map(|text| truth("WAYMARK_PRIVATE_TARGETS", Some(text)))
                .transpose()?,
            lan,
            webhooks_loopback: truth("WAYMARK_WEBHOOKS_LOOPBACK", settings.webhooks_loopback.as_deref())?,
            dns_server: dns_server(settings.dns_server.as_deref())?,
            acme,
            trusted_proxies: settings.network.proxies()?,
            limits: limits(&settings.limits)?,
            capacity: capacity(&settings.limits)?,
            edge_connections: settings
                .connections
                .as_deref()
                .map(|text| number("WAYMARK_CONNECTIONS", Some(text), 0, 1..=10_000_000))
                .transpose()?,
            edge_connections_per_address: number(
                "WAYMARK_CONNECTIONS_PER_ADDRESS",
                settings.connections_per_address.as_deref(),
                defaults.edge_connections_per_address,
                1..=1_000_000,
            )?,
            jobs_kept: jobs_kept(settings.limits.jobs_kept_days.as_deref())?,
            printing: printing(&settings.limits)?,
            is_replica: edge::cli::replica(settings.edge_replica.as_deref())?,
            fast_redirects: edge::cli::fast_redirects(settings.fast_redirects.as_deref())?,
            mail: mail(&settings.mail)?,
            oidc: oidc(&settings.oidc)?,
            geoip_db: settings.geoip_db.map(PathBuf::from),
            database: database(settings.database_url.as_deref(), &defaults.data_dir)?,
            scans: scans(&settings.scans)?,
            secret_key_file: settings.secret_key_file.map(PathBuf::from),
            files: file_store(settings.files_url.as_deref())?.unwrap_or(defaults.files),
            log: settings.logging.filter().to_owned(),
            log_format: settings.logging.form()?,
            otlp_url: settings.otlp_url,
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
            ("WAYMARK_API_LISTEN", Some(self.api_listen)),
            ("WAYMARK_EDGE_LISTEN", Some(self.edge_listen)),
            ("WAYMARK_ADMIN_LISTEN", Some(self.admin_listen)),
            ("WAYMARK_MQTT_LISTEN", self.mqtt_listen),
        ] {
            let Some(address) = address else { continue };
            check_plain(key, address, self.behind_tls_proxy)?;
        }
        for (key, address) in [
            ("WAYMARK_API_TLS_LISTEN", self.api_tls_listen),
            ("WAYMARK_EDGE_TLS_LISTEN", self.edge_tls_listen.filter(|_| !self.edge_acme)),
            ("WAYMARK_MQTT_TLS_LISTEN", self.mqtt_tls_listen),
        ] {
            if address.is_some() && self.tls == Tls::Off {
                return Err(ConfigError::new(
                    key,
                    "a TLS listener needs certificates: set WAYMARK_TLS_DIR or WAYMARK_DEV_TLS=1; that of the edge may \
                     have WAYMARK_ACME_DIRECTORY with WAYMARK_EDGE_ACME=on in their place",
                ));
            }
        }
        if let Some(ip) = self.lan {
            let is_there = self.edge_tls_listen.is_some_and(|at| at.ip() == ip || at.ip().is_unspecified());
            if !is_there || !self.short_domains.is_empty() {
                let reason = "short URLs are at the address in the network: leave WAYMARK_SHORT_DOMAINS unset, and \
                              WAYMARK_EDGE_TLS_LISTEN at that address";
                return Err(ConfigError::new("WAYMARK_LAN", reason));
            }
        }
        let listeners = [self.api_tls_listen, self.edge_tls_listen, self.mqtt_tls_listen];
        let tls_listens = listeners.iter().any(Option::is_some);
        if matches!(self.tls, Tls::Dir(_)) && !tls_listens {
            return Err(ConfigError::new(
                "WAYMARK_TLS_DIR",
                "certificates are of no use without WAYMARK_EDGE_TLS_LISTEN, WAYMARK_API_TLS_LISTEN or WAYMARK_MQTT_TLS_LISTEN",
            ));
        }
        if self.acme.is_some() && self.edge_tls_listen.is_none() {
            let reason = "certificates are of no use without WAYMARK_EDGE_TLS_LISTEN";
            return Err(ConfigError::new("WAYMARK_ACME_DIRECTORY", reason));
        }
        if let Tls::Dir(dir) = &self.tls {
            check_certificates(dir)?;
        }
        check_geoip(self.geoip_db.as_deref())?;
        check_twins(&[
            ("WAYMARK_API_LISTEN", Some(self.api_listen)),
            ("WAYMARK_EDGE_LISTEN", Some(self.edge_listen)),
            ("WAYMARK_ADMIN_LISTEN", Some(self.admin_listen)),
            ("WAYMARK_EDGE_TLS_LISTEN", self.edge_tls_listen),
            ("WAYMARK_API_TLS_LISTEN", self.api_tls_listen),
            ("WAYMARK_MQTT_LISTEN", self.mqtt_listen),
            ("WAYMARK_MQTT_TLS_LISTEN", self.mqtt_tls_listen),
        ])
    }

    /// The file of the keys that encrypt the secrets in the database.
    #[must_use]
    pub fn secret_key_path(&self) -> PathBuf {
        self.secret_key_file.clone().unwrap_or_else(|| self.data_dir.join("secret.key"))
    }

    /// The scheme of a short domain that names none: it is in every code, so only an address of this machine
    /// may be http by itself, and that only without TLS.
    #[must_use]
    pub fn scheme_of(&self, host: &str) -> Scheme {
        let has_tls = self.edge_tls_listen.is_some() || self.behind_tls_proxy;
        if has_tls { Scheme::Https } else { Scheme::of_host(host) }
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
