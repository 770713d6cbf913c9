//! The settings of the `edge` command, parsed and checked before any port is bound.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use platform::settings::{
    ConfigError, LogFormat, check_plain, listen_or_off, loopback, name, number, public_url, truth, with_file,
};
use shared::wire::view::MAX_SHARDS;

use super::Settings;
use crate::{
    EdgeError, EdgeKey, GeoDatabase, TlsCerts,
    backing::NetworkConfig,
    config::{DiskLimits, EdgeConfig},
};

/// Most threads that serve: above the cores of the largest machines.
const MAX_WORKERS: usize = 1_024;

/// Settings of one edge, with the files that they name.
#[derive(Debug)]
pub struct Config {
    /// The edge's own.
    pub edge: EdgeConfig,
    /// The rest of the fleet.
    pub network: NetworkConfig,
    pub(super) edge_listen: Option<SocketAddr>,
    pub(super) edge_tls_listen: Option<SocketAddr>,
    pub(super) admin_listen: Option<SocketAddr>,
    pub(super) behind_tls_proxy: bool,
    pub(super) certificates: Option<TlsCerts>,
    pub(super) geo: Option<GeoDatabase>,
    pub(super) log: String,
    pub(super) log_format: LogFormat,
}

impl Config {
    /// Reads settings and the files they name.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn read(settings: Settings) -> Result<Self, ConfigError> {
        let settings = with_file(&settings, settings.config.as_deref())?;
        let edge_id = name("WAYMARK_EDGE_ID", required("WAYMARK_EDGE_ID", settings.edge_id.as_deref())?)?;
        let region = name("WAYMARK_REGION", settings.region.as_deref().unwrap_or("main"))?;
        let data_dir = PathBuf::from(settings.data_dir.as_deref().unwrap_or("./edge-data"));
        let api_urls = urls("WAYMARK_API_URLS", settings.api_urls.as_deref())?;
        let behind_tls_proxy = settings.network.is_behind_tls_proxy()?;
        let api_base = match public_url(settings.public_url)? {
            Some(base) => base,
            None => written_base(&api_urls[0], behind_tls_proxy),
        };
        let docs = settings.docs_url.unwrap_or_else(|| format!("{api_base}/docs"));
        let key_file = required("WAYMARK_EDGE_KEY_FILE", settings.edge_key_file.as_deref())?;
        let bad = |key: &'static str| {
            move |error: EdgeError| named(&error).unwrap_or(ConfigError::new(key, error.to_string()))
        };
        let key = Arc::new(EdgeKey::open(key_file.as_ref()).map_err(bad("WAYMARK_EDGE_KEY_FILE"))?);
        let control_ca = file("WAYMARK_CONTROL_CA", settings.control_ca)?;
        let certificates = settings.network.tls_dir.as_deref().map(PathBuf::from).map(|folder| {
            TlsCerts::from_folder(&folder).map_err(|error| {
                ConfigError::new(
                    "WAYMARK_TLS_DIR",
                    format!("{error}; each host needs <host>.pem and <host>.key"),
                )
            })
        });
        let geo = settings.geoip_db.map(PathBuf::from).map(|path| {
            GeoDatabase::open(&path).map_err(|error| {
                ConfigError::new("WAYMARK_GEOIP_DB", format!("give a city database (.mmdb): {error}"))
            })
        });
        let geo = geo.transpose()?;

        let mut edge = EdgeConfig::new(&edge_id, data_dir, "", &docs);
        edge.api_urls = api_urls;
        edge.api_ca.clone_from(&control_ca);
        edge.region = region.into();
        edge.key = Some(key.clone());
        edge.cache_bytes = mib("WAYMARK_CACHE_MIB", settings.cache_mib.as_deref(), edge.cache_bytes)?;
        edge.is_replica = replica(settings.edge_replica.as_deref())?;
        edge.fast_redirects = fast_redirects(settings.fast_redirects.as_deref())?;
        edge.takes_certificates = edge_acme(settings.edge_acme.as_deref())?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        edge.workers = number("WAYMARK_EDGE_WORKERS", settings.workers.as_deref(), cores, 1..=MAX_WORKERS)?;
        edge.trusted_proxies = settings.network.proxies()?;
        edge.behind_tls_proxy = behind_tls_proxy;
        edge.contact = settings.network.contact()?;
        if let Some(geo) = &geo {
            edge.geo = Arc::new(geo.clone());
        }
        let disk = DiskLimits::default();
        let seconds = number(
            "WAYMARK_SNAPSHOT_SECONDS",
            settings.snapshot_seconds.as_deref(),
            disk.interval.as_secs(),
            0..=86_400,
        )?;
        let bytes = mib("WAYMARK_SNAPSHOT_MIB", settings.snapshot_mib.as_deref(), disk.bytes)?;
        edge.disk =
            (seconds > 0).then_some(DiskLimits { interval: Duration::from_secs(seconds), bytes, ..disk });
        let limits = &mut edge.limits;
        limits.spool_bytes = mib("WAYMARK_SPOOL_MIB", settings.spool_mib.as_deref(), limits.spool_bytes)?;
        if let Some(text) = settings.connections.as_deref() {
            limits.connections = Some(number("WAYMARK_CONNECTIONS", Some(text), 0, 1..=10_000_000)?);
        }
        let count =
            |key, text: &Option<String>, default| number(key, text.as_deref(), default, 1..=1_000_000);
        for (key, text, value) in [
            (
                "WAYMARK_CONNECTIONS_PER_ADDRESS",
                &settings.connections_per_address,
                &mut limits.connections_per_address,
            ),
            ("WAYMARK_MISSES_PER_ADDRESS", &settings.misses_per_address, &mut limits.misses_per_address),
            ("WAYMARK_MISSES_PER_SECOND", &settings.misses_per_second, &mut limits.misses_per_second),
        ] {
            *value = count(key, text, *value)?;
        }
        let drain = limits.drain_timeout.as_secs();
        limits.drain_timeout = Duration::from_secs(number(
            "WAYMARK_DRAIN_SECONDS",
            settings.drain_seconds.as_deref(),
            drain,
            1..=3_600,
        )?);
        let lookups =
            NonZeroU32::new(count("WAYMARK_LOOKUPS_PER_SECOND", &settings.lookups_per_second, 500)?);
        let redis = required("REDIS_URL", settings.redis_url.as_deref())?;
        let shards = settings.redis_shards.as_deref();
        let network = NetworkConfig {
            control_urls: urls("WAYMARK_CONTROL_URLS", settings.control_urls.as_deref())?,
            control_ca,
            key,
            redis: redis.parse().map_err(|error| ConfigError::new("REDIS_URL", format!("{error}")))?,
            redis_ca: file("WAYMARK_REDIS_CA", settings.redis_ca)?,
            shards: number("WAYMARK_REDIS_SHARDS", shards, 1, 1..=MAX_SHARDS)?,
            lookups_per_second: lookups.unwrap_or(NonZeroU32::MIN),
        };
        let listen = |key, text: Option<String>, port: Option<u16>| {
            listen_or_off(key, text.as_deref(), port.map(loopback))
        };
        let config = Self {
            edge,
            network,
            edge_listen: listen("WAYMARK_EDGE_LISTEN", settings.edge_listen, Some(8081))?,
            edge_tls_listen: listen("WAYMARK_EDGE_TLS_LISTEN", settings.edge_tls_listen, None)?,
            admin_listen: listen("WAYMARK_ADMIN_LISTEN", settings.admin_listen, Some(8084))?,
            behind_tls_proxy,
            certificates: certificates.transpose()?,
            geo,
            log: settings.logging.filter().to_owned(),
            log_format: settings.logging.form()?,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (key, address) in
            [("WAYMARK_EDGE_LISTEN", self.edge_listen), ("WAYMARK_ADMIN_LISTEN", self.admin_listen)]
        {
            if let Some(address) = address {
                self.check_plain(key, address)?;
            }
        }
        self.check_certificates(self.edge_tls_listen.is_some())?;
        backing::origins::Origins::new("api_urls", &self.edge.api_urls, true)
            .and(backing::origins::Origins::new("control_urls", &self.network.control_urls, true))
            .map(drop)
            .map_err(|error| named(&error).unwrap_or(ConfigError::new("WAYMARK_API_URLS", error.to_string())))
    }

    /// Refuses a TLS listener for which no certificate can come.
    pub(super) fn check_certificates(&self, listens: bool) -> Result<(), ConfigError> {
        if !listens || self.certificates.is_some() || self.edge.takes_certificates {
            return Ok(());
        }
        let reason = "a TLS listener needs certificates: set WAYMARK_TLS_DIR, or WAYMARK_EDGE_ACME=on";
        Err(ConfigError::new("WAYMARK_EDGE_TLS_LISTEN", reason))
    }

    /// Refuses a plain listener that the world can reach.
    pub(super) fn check_plain(&self, key: &'static str, address: SocketAddr) -> Result<(), ConfigError> {
        check_plain(key, address, self.behind_tls_proxy)
    }
}

/// Whether an edge holds every link (`full`) or those that are asked for (`off`, or unset).
///
/// # Errors
/// It is neither.
pub fn replica(text: Option<&str>) -> Result<bool, ConfigError> {
    match text {
        None | Some("off") => Ok(false),
        Some("full") => Ok(true),
        Some(other) => {
            Err(ConfigError::new("WAYMARK_EDGE_REPLICA", format!("{other:?} is neither off nor full")))
        }
    }
}

/// Whether the fast reader answers plain redirects: `on`, or unset, and `off`.
///
/// # Errors
/// It is neither.
pub fn fast_redirects(text: Option<&str>) -> Result<bool, ConfigError> {
    truth("WAYMARK_FAST_REDIRECTS", Some(text.unwrap_or("on")))
}

/// Whether certificates of short domains come from control: `on`, and `off`, or unset.
///
/// # Errors
/// It is neither.
pub fn edge_acme(text: Option<&str>) -> Result<bool, ConfigError> {
    truth("WAYMARK_EDGE_ACME", text)
}

/// Names the variable behind an error of the library's settings.
pub(super) fn named(error: &EdgeError) -> Option<ConfigError> {
    let EdgeError::Config { key, reason } = error else { return None };
    let key = match *key {
        "control_urls" => "WAYMARK_CONTROL_URLS",
        "api_urls" => "WAYMARK_API_URLS",
        "edge_key_file" => "WAYMARK_EDGE_KEY_FILE",
        "redis_url" => "REDIS_URL",
        other => other,
    };
    Some(ConfigError::new(key, reason.clone()))
}

fn required<'a>(key: &'static str, text: Option<&'a str>) -> Result<&'a str, ConfigError> {
    text.ok_or_else(|| ConfigError::new(key, "it must be set; `edge --help` says to what"))
}

fn urls(key: &'static str, text: Option<&str>) -> Result<Vec<String>, ConfigError> {
    let urls: Vec<String> = required(key, text)?
        .split(',')
        .map(|url| url.trim().to_owned())
        .filter(|url| !url.is_empty())
        .collect();
    if urls.is_empty() {
        return Err(ConfigError::new(key, "give at least one https://host:port"));
    }
    Ok(urls)
}

/// The base of the API in URLs that the edge writes: https where a TLS proxy stands in front.
fn written_base(api_url: &str, behind_tls_proxy: bool) -> String {
    let base = api_url.trim_end_matches('/');
    match base.strip_prefix("http://").filter(|_| behind_tls_proxy) {
        Some(rest) => format!("https://{rest}"),
        None => base.to_owned(),
    }
}

fn file(key: &'static str, path: Option<String>) -> Result<Option<PathBuf>, ConfigError> {
    match path.map(PathBuf::from) {
        Some(path) if !path.is_file() => {
            Err(ConfigError::new(key, format!("{} is not a file", path.display())))
        }
        path => Ok(path),
    }
}

fn mib(key: &'static str, text: Option<&str>, default: u64) -> Result<u64, ConfigError> {
    number(key, text, default >> 20, 1..=1 << 24).map(|mib| mib << 20)
}
