//! What an edge is told at start; read, checked and typed before any port is bound.

use std::{
    fmt::Display,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    path::PathBuf,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use shared::wire::view::MAX_SHARDS;

use super::Settings;
use crate::{
    backing::NetworkConfig,
    config::{DiskLimits, EdgeConfig},
    edge_key::EdgeKey,
    error::EdgeError,
    geo::GeoDatabase,
    tls::TlsCerts,
};

/// Most threads that serve: above the cores of the largest machines.
const MAX_WORKERS: usize = 1_024;
/// Longest name of an edge or a region.
const MAX_NAME: usize = 64;

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
    pub(super) fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }

    /// Names the variable behind an error of the library's settings.
    pub(super) fn of(error: &EdgeError) -> Option<Self> {
        let EdgeError::Config { key, reason } = error else { return None };
        let key = match *key {
            "control_urls" => "WAYMARK_CONTROL_URLS",
            "api_urls" => "WAYMARK_API_URLS",
            "edge_key_file" => "WAYMARK_EDGE_KEY_FILE",
            "redis_url" => "REDIS_URL",
            other => other,
        };
        Some(Self::new(key, reason.clone()))
    }
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

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
        let settings = settings.with_file()?;
        let edge_id = name("WAYMARK_EDGE_ID", settings.edge_id.as_deref())?;
        let region = name("WAYMARK_REGION", Some(settings.region.as_deref().unwrap_or("main")))?;
        let data_dir = PathBuf::from(settings.data_dir.as_deref().unwrap_or("./edge-data"));
        let api_urls = urls("WAYMARK_API_URLS", settings.api_urls.as_deref())?;
        let docs = settings.docs_url.unwrap_or_else(|| format!("{}/docs", api_urls[0].trim_end_matches('/')));
        let key_file = required("WAYMARK_EDGE_KEY_FILE", settings.edge_key_file.as_deref())?;
        let bad = |key: &'static str| {
            move |error: EdgeError| {
                ConfigError::of(&error).unwrap_or(ConfigError::new(key, error.to_string()))
            }
        };
        let key = Arc::new(EdgeKey::open(key_file.as_ref()).map_err(bad("WAYMARK_EDGE_KEY_FILE"))?);
        let control_ca = file("WAYMARK_CONTROL_CA", settings.control_ca)?;
        let certificates = settings.tls_dir.map(PathBuf::from).map(|folder| {
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
        edge.is_replica = match settings.edge_replica.as_deref() {
            None | Some("off") => false,
            Some("full") => true,
            Some(other) => {
                let reason = format!("{other:?} is neither off nor full");
                return Err(ConfigError::new("WAYMARK_EDGE_REPLICA", reason));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        edge.workers = number("WAYMARK_EDGE_WORKERS", settings.workers.as_deref(), cores, 1..=MAX_WORKERS)?;
        edge.trusted_proxies =
            settings.trusted_proxies.as_deref().unwrap_or_default().parse().map_err(|error| {
                let reason = format!("{error}: give addresses and networks, with commas");
                ConfigError::new("WAYMARK_TRUSTED_PROXIES", reason)
            })?;
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
        let listen = |key, text: Option<String>, default| listen(key, text.as_deref(), default);
        let config = Self {
            edge,
            network,
            edge_listen: listen("WAYMARK_EDGE_LISTEN", settings.edge_listen, Some(8081))?,
            edge_tls_listen: listen("WAYMARK_EDGE_TLS_LISTEN", settings.edge_tls_listen, None)?,
            admin_listen: listen("WAYMARK_ADMIN_LISTEN", settings.admin_listen, Some(8084))?,
            behind_tls_proxy: truth("WAYMARK_BEHIND_TLS_PROXY", settings.behind_tls_proxy.as_deref())?,
            certificates: certificates.transpose()?,
            geo,
            log: settings.log.unwrap_or_else(|| "info".to_owned()),
            log_format: match settings.log_format.as_deref() {
                None | Some("text") => LogFormat::Text,
                Some("json") => LogFormat::Json,
                Some(other) => {
                    let reason = format!("{other:?} is neither text nor json");
                    return Err(ConfigError::new("WAYMARK_LOG_FORMAT", reason));
                }
            },
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
        if self.edge_tls_listen.is_some() && self.certificates.is_none() {
            let reason = "a TLS listener needs certificates: set WAYMARK_TLS_DIR";
            return Err(ConfigError::new("WAYMARK_EDGE_TLS_LISTEN", reason));
        }
        crate::origins::Origins::new("api_urls", &self.edge.api_urls, true)
            .and(crate::origins::Origins::new("control_urls", &self.network.control_urls, true))
            .map(drop)
            .map_err(|error| {
                ConfigError::of(&error).unwrap_or(ConfigError::new("WAYMARK_API_URLS", error.to_string()))
            })
    }

    /// Refuses a plain listener that the world can reach.
    pub(super) fn check_plain(&self, key: &'static str, address: SocketAddr) -> Result<(), ConfigError> {
        if address.ip().is_loopback() || self.behind_tls_proxy {
            return Ok(());
        }
        Err(ConfigError::new(
            key,
            format!(
                "{address} is reachable from outside without TLS: listen on 127.0.0.1 or [::1], use the TLS \
                 listener, or say WAYMARK_BEHIND_TLS_PROXY=1 when a TLS proxy stands in front"
            ),
        ))
    }
}

fn required<'a>(key: &'static str, text: Option<&'a str>) -> Result<&'a str, ConfigError> {
    text.ok_or_else(|| ConfigError::new(key, "it must be set; `edge --help` says to what"))
}

fn name(key: &'static str, text: Option<&str>) -> Result<String, ConfigError> {
    let text = required(key, text)?;
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if text.len() > MAX_NAME || !text.bytes().all(is_fine) {
        let reason = format!("{text:?} is no name: 1 to {MAX_NAME} letters, digits and . _ -");
        return Err(ConfigError::new(key, reason));
    }
    Ok(text.to_owned())
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

fn file(key: &'static str, path: Option<String>) -> Result<Option<PathBuf>, ConfigError> {
    match path.map(PathBuf::from) {
        Some(path) if !path.is_file() => {
            Err(ConfigError::new(key, format!("{} is not a file", path.display())))
        }
        path => Ok(path),
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    key: &'static str,
    text: Option<&str>,
    default: T,
    allowed: std::ops::RangeInclusive<T>,
) -> Result<T, ConfigError> {
    let Some(text) = text else { return Ok(default) };
    text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        ConfigError::new(key, format!("{text:?} is no whole number from {least} to {most}"))
    })
}

fn mib(key: &'static str, text: Option<&str>, default: u64) -> Result<u64, ConfigError> {
    number(key, text, default >> 20, 1..=1 << 24).map(|mib| mib << 20)
}

fn listen(
    key: &'static str,
    text: Option<&str>,
    default: Option<u16>,
) -> Result<Option<SocketAddr>, ConfigError> {
    match text {
        None => Ok(default.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))),
        Some("off") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let reason = "is not an address: give an IP and a port, such as 127.0.0.1:8443, or off";
            ConfigError::new(key, format!("{text:?} {reason}"))
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
