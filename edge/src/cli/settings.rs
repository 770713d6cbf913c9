//! Settings as text, merged from flags, environment and a TOML file, in this order.

use platform::settings::{Log, Network};
use serde::{Deserialize, Serialize};

/// Every setting of `edge`; flags win over variables, and both over the TOML file.
///
/// A key of the TOML file is the variable without `WAYMARK_`, in lower case: `edge_listen = "…"`.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// TOML file with any of these settings [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<String>,

    /// Name of this edge, unique in the fleet and the same at every start: letters, digits and . _ -; its key is
    /// of this name (required)
    #[arg(long, env = "WAYMARK_EDGE_ID", value_name = "NAME")]
    pub edge_id: Option<String>,

    /// Name of the region whose Redis this is [default: main]
    #[arg(long, env = "WAYMARK_REGION", value_name = "NAME")]
    pub region: Option<String>,

    /// Folder of the scan spool and of what the edge holds; made when missing [default: ./edge-data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<String>,

    /// Internal listeners of control's replicas, as https://host:port, with commas; http only on loopback
    /// (required)
    #[arg(long, env = "WAYMARK_CONTROL_URLS", value_name = "URL,…")]
    pub control_urls: Option<String>,

    /// APIs of control's replicas, for management requests, as https://host:port, with commas; http only on
    /// loopback (required)
    #[arg(long, env = "WAYMARK_API_URLS", value_name = "URL,…")]
    pub api_urls: Option<String>,

    /// CA of control's certificates, PEM [default: the roots of this system]
    #[arg(long, env = "WAYMARK_CONTROL_CA", value_name = "FILE")]
    pub control_ca: Option<String>,

    /// File with the key of this edge, from `control edge-keys create`; a replaced one is taken without a restart
    /// (required)
    #[arg(long, env = "WAYMARK_EDGE_KEY_FILE", value_name = "FILE")]
    pub edge_key_file: Option<String>,

    /// Redis of the region: redis://user:password@host:6379, redis+sentinel://host,host/service or
    /// redis+cluster://host,host; rediss for TLS; the user needs MGET alone (required)
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub redis_url: Option<String>,

    /// CA of Redis's certificates, PEM [default: the roots of this system]
    #[arg(long, env = "WAYMARK_REDIS_CA", value_name = "FILE")]
    pub redis_ca: Option<String>,

    /// Shards of the view in Redis, as control has it [default: 1]
    #[arg(long, env = "WAYMARK_REDIS_SHARDS", value_name = "COUNT")]
    pub redis_shards: Option<String>,

    /// Where short URLs are served without TLS [default: 127.0.0.1:8081]
    #[arg(long, env = "WAYMARK_EDGE_LISTEN", value_name = "ADDR:PORT|off")]
    pub edge_listen: Option<String>,

    /// Where short URLs are served over TLS [default: off]
    #[arg(long, env = "WAYMARK_EDGE_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub edge_tls_listen: Option<String>,

    /// Where /live, /ready and /metrics are [default: 127.0.0.1:8084]
    #[arg(long, env = "WAYMARK_ADMIN_LISTEN", value_name = "ADDR:PORT|off")]
    pub admin_listen: Option<String>,

    /// Certificates, and proxies in front.
    #[command(flatten)]
    #[serde(flatten)]
    pub network: Network,

    /// City database in MaxMind's form (.mmdb), for rules; a replaced file is taken within seconds [default: none]
    #[arg(long, env = "WAYMARK_GEOIP_DB", value_name = "FILE")]
    pub geoip_db: Option<String>,

    /// Base of the API as clients reach it: scheme, host and port [default: the first of WAYMARK_API_URLS]
    #[arg(long, env = "WAYMARK_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Page of the docs that errors point to [default: /docs of WAYMARK_PUBLIC_URL]
    #[arg(long, env = "WAYMARK_DOCS_URL", value_name = "URL")]
    pub docs_url: Option<String>,

    /// Threads that serve, each with sockets of its own [default: one for each core]
    #[arg(long, env = "WAYMARK_EDGE_WORKERS", value_name = "COUNT")]
    pub workers: Option<String>,

    /// Whether the certificates of short domains come from control, which gets them by ACME, beside those of
    /// WAYMARK_TLS_DIR, which win; then a TLS listener needs no folder [default: off]
    #[arg(long, env = "WAYMARK_EDGE_ACME", value_name = "on|off")]
    pub edge_acme: Option<String>,

    /// Memory for links, 1 KiB each [default: 1024]
    #[arg(long, env = "WAYMARK_CACHE_MIB", value_name = "MIB")]
    pub cache_mib: Option<String>,

    /// Links to hold: off for those that are asked for, full for every link, 90 bytes each beside the former; then no
    /// id needs Redis once all links were read from control [default: off]
    #[arg(long, env = "WAYMARK_EDGE_REPLICA", value_name = "off|full")]
    pub edge_replica: Option<String>,

    /// Whether plain redirects are answered by the fast reader, before the HTTP library sees them; the answers are the
    /// same either way [default: on]
    #[arg(long, env = "WAYMARK_FAST_REDIRECTS", value_name = "on|off")]
    pub fast_redirects: Option<String>,

    /// Time between two times that what is held is written to disk; 0 is never [default: 60]
    #[arg(long, env = "WAYMARK_SNAPSHOT_SECONDS", value_name = "SECONDS")]
    pub snapshot_seconds: Option<String>,

    /// Most disk for what is held [default: 512]
    #[arg(long, env = "WAYMARK_SNAPSHOT_MIB", value_name = "MIB")]
    pub snapshot_mib: Option<String>,

    /// Most disk for scans that control has not taken yet [default: 2048]
    #[arg(long, env = "WAYMARK_SPOOL_MIB", value_name = "MIB")]
    pub spool_mib: Option<String>,

    /// Most connections [default: the descriptor limit less 512]
    #[arg(long, env = "WAYMARK_CONNECTIONS", value_name = "COUNT")]
    pub connections: Option<String>,

    /// Most connections of one address [default: 200]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    pub connections_per_address: Option<String>,

    /// Unknown ids a second that one address may ask for, with bursts of four times as many [default: 50]
    #[arg(long, env = "WAYMARK_MISSES_PER_ADDRESS", value_name = "COUNT")]
    pub misses_per_address: Option<String>,

    /// The same over all addresses, with bursts of twice as many [default: 5000]
    #[arg(long, env = "WAYMARK_MISSES_PER_SECOND", value_name = "COUNT")]
    pub misses_per_second: Option<String>,

    /// Single reads a second at control, for what Redis cannot answer [default: 500]
    #[arg(long, env = "WAYMARK_LOOKUPS_PER_SECOND", value_name = "COUNT")]
    pub lookups_per_second: Option<String>,

    /// How long open requests may take at the stop [default: 30]
    #[arg(long, env = "WAYMARK_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<String>,

    /// The log.
    #[command(flatten)]
    #[serde(flatten)]
    pub logging: Log,
}
