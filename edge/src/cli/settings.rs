//! Settings as text, merged from flags, environment and a TOML file, in this order.

use serde::Deserialize;
use shared::settings::{ConfigError, first_of, text, toml};

/// Every setting of `edge`; flags win over variables, and both over the TOML file.
///
/// A key of the TOML file is the variable without `WAYMARK_`, in lower case: `edge_listen = "…"`.
#[derive(Debug, Default, Clone, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// TOML file with any of these settings [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<String>,

    /// Name of this edge, unique in the fleet and the same at every start: letters, digits and . _ -; its key is
    /// of this name (required)
    #[arg(long, env = "WAYMARK_EDGE_ID", value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    pub edge_id: Option<String>,

    /// Name of the region whose Redis this is [default: main]
    #[arg(long, env = "WAYMARK_REGION", value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    pub region: Option<String>,

    /// Folder of the scan spool and of what the edge holds; made when missing [default: ./edge-data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    #[serde(deserialize_with = "text")]
    pub data_dir: Option<String>,

    /// Internal listeners of control's replicas, as https://host:port, with commas; http only on loopback
    /// (required)
    #[arg(long, env = "WAYMARK_CONTROL_URLS", value_name = "URL,…")]
    #[serde(deserialize_with = "text")]
    pub control_urls: Option<String>,

    /// APIs of control's replicas, for management requests, as https://host:port, with commas; http only on
    /// loopback (required)
    #[arg(long, env = "WAYMARK_API_URLS", value_name = "URL,…")]
    #[serde(deserialize_with = "text")]
    pub api_urls: Option<String>,

    /// CA of control's certificates, PEM [default: the roots of this system]
    #[arg(long, env = "WAYMARK_CONTROL_CA", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub control_ca: Option<String>,

    /// File with the key of this edge, from `control edge-keys create`; a replaced one is taken without a restart
    /// (required)
    #[arg(long, env = "WAYMARK_EDGE_KEY_FILE", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub edge_key_file: Option<String>,

    /// Redis of the region: redis://user:password@host:6379, redis+sentinel://host,host/service or
    /// redis+cluster://host,host; rediss for TLS; the user needs MGET alone (required)
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    #[serde(deserialize_with = "text")]
    pub redis_url: Option<String>,

    /// CA of Redis's certificates, PEM [default: the roots of this system]
    #[arg(long, env = "WAYMARK_REDIS_CA", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub redis_ca: Option<String>,

    /// Shards of the view in Redis, as control has it [default: 1]
    #[arg(long, env = "WAYMARK_REDIS_SHARDS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub redis_shards: Option<String>,

    /// Where short URLs are served without TLS [default: 127.0.0.1:8081]
    #[arg(long, env = "WAYMARK_EDGE_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub edge_listen: Option<String>,

    /// Where short URLs are served over TLS [default: off]
    #[arg(long, env = "WAYMARK_EDGE_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub edge_tls_listen: Option<String>,

    /// Where /live, /ready and /metrics are [default: 127.0.0.1:8084]
    #[arg(long, env = "WAYMARK_ADMIN_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub admin_listen: Option<String>,

    /// Folder of certificates, HOST.pem and HOST.key for each host; exchanged ones are taken within a second
    /// [default: none]
    #[arg(long, env = "WAYMARK_TLS_DIR", value_name = "DIR")]
    #[serde(deserialize_with = "text")]
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
    #[serde(deserialize_with = "text")]
    pub behind_tls_proxy: Option<String>,

    /// Proxies that may name the client, as addresses or networks [default: none]
    #[arg(long, env = "WAYMARK_TRUSTED_PROXIES", value_name = "CIDR,…")]
    #[serde(deserialize_with = "text")]
    pub trusted_proxies: Option<String>,

    /// The one header in which trusted proxies name the client: X-Forwarded-For or Forwarded; the other one is
    /// not looked at [default: X-Forwarded-For]
    #[arg(long, env = "WAYMARK_FORWARDED_HEADER", value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    pub forwarded_header: Option<String>,

    /// City database in MaxMind's form (.mmdb), for rules; a replaced file is taken within seconds [default: none]
    #[arg(long, env = "WAYMARK_GEOIP_DB", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub geoip_db: Option<String>,

    /// Base of the API as clients reach it: scheme, host and port [default: the first of WAYMARK_API_URLS]
    #[arg(long, env = "WAYMARK_PUBLIC_URL", value_name = "URL")]
    #[serde(deserialize_with = "text")]
    pub public_url: Option<String>,

    /// Page of the docs that errors point to [default: /docs of WAYMARK_PUBLIC_URL]
    #[arg(long, env = "WAYMARK_DOCS_URL", value_name = "URL")]
    #[serde(deserialize_with = "text")]
    pub docs_url: Option<String>,

    /// Threads that serve, each with sockets of its own [default: one for each core]
    #[arg(long, env = "WAYMARK_EDGE_WORKERS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub workers: Option<String>,

    /// Memory for links, 1 KiB each [default: 1024]
    #[arg(long, env = "WAYMARK_CACHE_MIB", value_name = "MIB")]
    #[serde(deserialize_with = "text")]
    pub cache_mib: Option<String>,

    /// Links to hold: off for those that are asked for, full for every link, 90 bytes each beside the former; then no
    /// id needs Redis once all links were read from control [default: off]
    #[arg(long, env = "WAYMARK_EDGE_REPLICA", value_name = "off|full")]
    #[serde(deserialize_with = "text")]
    pub edge_replica: Option<String>,

    /// Time between two times that what is held is written to disk; 0 is never [default: 60]
    #[arg(long, env = "WAYMARK_SNAPSHOT_SECONDS", value_name = "SECONDS")]
    #[serde(deserialize_with = "text")]
    pub snapshot_seconds: Option<String>,

    /// Most disk for what is held [default: 512]
    #[arg(long, env = "WAYMARK_SNAPSHOT_MIB", value_name = "MIB")]
    #[serde(deserialize_with = "text")]
    pub snapshot_mib: Option<String>,

    /// Most disk for scans that control has not taken yet [default: 2048]
    #[arg(long, env = "WAYMARK_SPOOL_MIB", value_name = "MIB")]
    #[serde(deserialize_with = "text")]
    pub spool_mib: Option<String>,

    /// Most connections [default: the descriptor limit less 512]
    #[arg(long, env = "WAYMARK_CONNECTIONS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections: Option<String>,

    /// Most connections of one address [default: 200]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections_per_address: Option<String>,

    /// Unknown ids a second that one address may ask for, with bursts of four times as many [default: 50]
    #[arg(long, env = "WAYMARK_MISSES_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub misses_per_address: Option<String>,

    /// The same over all addresses, with bursts of twice as many [default: 5000]
    #[arg(long, env = "WAYMARK_MISSES_PER_SECOND", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub misses_per_second: Option<String>,

    /// Single reads a second at control, for what Redis cannot answer [default: 500]
    #[arg(long, env = "WAYMARK_LOOKUPS_PER_SECOND", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub lookups_per_second: Option<String>,

    /// How long open requests may take at the stop [default: 30]
    #[arg(long, env = "WAYMARK_DRAIN_SECONDS", value_name = "SECONDS")]
    #[serde(deserialize_with = "text")]
    pub drain_seconds: Option<String>,

    /// What to log, as error, warn, info, debug, trace or a filter such as info,edge=debug [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    #[serde(deserialize_with = "text")]
    pub log: Option<String>,

    /// Form of the log: text or json [default: text]
    #[arg(long, env = "WAYMARK_LOG_FORMAT", value_name = "FORMAT")]
    #[serde(deserialize_with = "text")]
    pub log_format: Option<String>,
}

impl Settings {
    /// Adds what the TOML file says, where neither flag nor variable says anything.
    ///
    /// An empty text counts as unset, as compose files write it.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has a key that is unknown.
    pub(super) fn with_file(mut self) -> Result<Self, ConfigError> {
        let file = match self.config.take().filter(|path| !path.is_empty()) {
            Some(path) => toml(&path, std::fs::read_to_string(&path))?,
            None => Self::default(),
        };
        let or = first_of;
        Ok(Self {
            config: None,
            edge_id: or(self.edge_id, file.edge_id),
            region: or(self.region, file.region),
            data_dir: or(self.data_dir, file.data_dir),
            control_urls: or(self.control_urls, file.control_urls),
            api_urls: or(self.api_urls, file.api_urls),
            control_ca: or(self.control_ca, file.control_ca),
            edge_key_file: or(self.edge_key_file, file.edge_key_file),
            redis_url: or(self.redis_url, file.redis_url),
            redis_ca: or(self.redis_ca, file.redis_ca),
            redis_shards: or(self.redis_shards, file.redis_shards),
            edge_listen: or(self.edge_listen, file.edge_listen),
            edge_tls_listen: or(self.edge_tls_listen, file.edge_tls_listen),
            admin_listen: or(self.admin_listen, file.admin_listen),
            tls_dir: or(self.tls_dir, file.tls_dir),
            behind_tls_proxy: or(self.behind_tls_proxy, file.behind_tls_proxy),
            trusted_proxies: or(self.trusted_proxies, file.trusted_proxies),
            forwarded_header: or(self.forwarded_header, file.forwarded_header),
            geoip_db: or(self.geoip_db, file.geoip_db),
            public_url: or(self.public_url, file.public_url),
            docs_url: or(self.docs_url, file.docs_url),
            workers: or(self.workers, file.workers),
            cache_mib: or(self.cache_mib, file.cache_mib),
            edge_replica: or(self.edge_replica, file.edge_replica),
            snapshot_seconds: or(self.snapshot_seconds, file.snapshot_seconds),
            snapshot_mib: or(self.snapshot_mib, file.snapshot_mib),
            spool_mib: or(self.spool_mib, file.spool_mib),
            connections: or(self.connections, file.connections),
            connections_per_address: or(self.connections_per_address, file.connections_per_address),
            misses_per_address: or(self.misses_per_address, file.misses_per_address),
            misses_per_second: or(self.misses_per_second, file.misses_per_second),
            lookups_per_second: or(self.lookups_per_second, file.lookups_per_second),
            drain_seconds: or(self.drain_seconds, file.drain_seconds),
            log: or(self.log, file.log),
            log_format: or(self.log_format, file.log_format),
        })
    }
}
