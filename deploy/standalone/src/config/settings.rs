//! Settings as people write them: flags, then environment, then a TOML file; all of it still text.

use platform::settings::{Log, Network};
use serde::{Deserialize, Serialize};

use control::config::{AcmeTexts, LimitSettings, MailTexts, OidcTexts, ScanTexts};

/// Every setting of `waymark up`; flags win over variables, and both over the TOML file.
///
/// A key of the TOML file is the variable without `WAYMARK_`, in lower case: `api_listen = "…"`.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// TOML file with any of these settings [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<String>,

    /// Folder of the database, the scan spool and the development CA; made when missing
    /// [default: ./data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<String>,

    /// Where the API listens without TLS [default: 127.0.0.1:8080]
    #[arg(long, env = "WAYMARK_API_LISTEN", value_name = "ADDR:PORT")]
    pub api_listen: Option<String>,

    /// Where short URLs are served without TLS [default: 127.0.0.1:8081]
    #[arg(long, env = "WAYMARK_EDGE_LISTEN", value_name = "ADDR:PORT")]
    pub edge_listen: Option<String>,

    /// Where short URLs are served over TLS [default: off; 127.0.0.1:8443 with --dev-tls]
    #[arg(long, env = "WAYMARK_EDGE_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub edge_tls_listen: Option<String>,

    /// Whether the edge serves the certificates of short domains that are got by ACME, beside those of WAYMARK_TLS_DIR,
    /// which win; then its TLS listener needs no folder [default: off; on with WAYMARK_ACME_DIRECTORY]
    #[arg(long, env = "WAYMARK_EDGE_ACME", value_name = "on|off")]
    pub edge_acme: Option<String>,

    /// Where MQTT is spoken without TLS, such as 127.0.0.1:1883; over WebSockets it is at /mqtt of the API
    /// [default: off]
    #[arg(long, env = "WAYMARK_MQTT_LISTEN", value_name = "ADDR:PORT|off")]
    pub mqtt_listen: Option<String>,

    /// Where MQTT is spoken with TLS, such as 0.0.0.0:8883 [default: off]
    #[arg(long, env = "WAYMARK_MQTT_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub mqtt_tls_listen: Option<String>,

    /// Where /live, /ready and /metrics are [default: 127.0.0.1:8082]
    #[arg(long, env = "WAYMARK_ADMIN_LISTEN", value_name = "ADDR:PORT")]
    pub admin_listen: Option<String>,

    /// Base of the API as clients reach it, with scheme and host: those of every URL that
    /// answers hold [default: the host that a request names if it is known, else WAYMARK_API_LISTEN]
    #[arg(long, env = "WAYMARK_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Hosts of short URLs, separated by commas, as tn.gg or http://127.0.0.1:8081; without a scheme
    /// they are https, save for loopback addresses without TLS [default: the edge's own address]
    #[arg(long, env = "WAYMARK_SHORT_DOMAINS", value_name = "HOST,…")]
    pub short_domains: Option<String>,

    /// A key of 80 characters A-Z a-z 0-9 that the first operator shall have, for tests and automation
    /// [default: a random one, shown at the first start]
    #[arg(long, env = "WAYMARK_OPERATOR_KEY", value_name = "KEY", hide_env_values = true)]
    pub operator_key: Option<String>,

    /// Where the API listens with TLS [default: off; 127.0.0.1:8444 with --dev-tls]
    #[arg(long, env = "WAYMARK_API_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub api_tls_listen: Option<String>,

    /// Certificates, and proxies in front.
    #[command(flatten)]
    #[serde(flatten)]
    pub network: Network,

    /// Make a local CA at DATA_DIR/dev-tls/ca.pem and certificates for the short domains [default: false]
    #[arg(
        long,
        env = "WAYMARK_DEV_TLS",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub dev_tls: Option<String>,

    /// Serve short URLs at this machine's address in its network, with --dev-tls, so that a phone can scan them:
    /// at ADDRESS, or at the one found; its codes are for development only [default: off]
    #[arg(
        long,
        env = "WAYMARK_LAN",
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    pub lan: Option<String>,

    /// Let redirections of the first account lead to loopback, link-local and private addresses, or no longer
    /// [default: as it was; not at first]
    #[arg(long, env = "WAYMARK_PRIVATE_TARGETS", value_name = "BOOL")]
    pub private_targets: Option<String>,

    /// Let webhooks lead to loopback, also without TLS: for receivers on this machine [default: false]
    #[arg(long, env = "WAYMARK_WEBHOOKS_LOOPBACK", value_name = "BOOL")]
    pub webhooks_loopback: Option<String>,

    /// The DNS server that is asked for the TXT records by which accounts prove domains, as 192.0.2.53:53 [default: those of
    /// the system]
    #[arg(long, env = "WAYMARK_DNS_SERVER", value_name = "ADDR:PORT")]
    pub dns_server: Option<String>,

    /// Certificates of short domains.
    #[command(flatten)]
    #[serde(flatten)]
    pub acme: AcmeTexts,

    /// Limits of the API.
    #[command(flatten)]
    #[serde(flatten)]
    pub limits: LimitSettings,

    /// Mail.
    #[command(flatten)]
    #[serde(flatten)]
    pub mail: MailTexts,

    /// The provider by which operators sign in.
    #[command(flatten)]
    #[serde(flatten)]
    pub oidc: OidcTexts,

    /// Most connections of the edge [default: half of the descriptor limit less 512; API and MQTT have the rest]
    #[arg(long, env = "WAYMARK_CONNECTIONS", value_name = "COUNT")]
    pub connections: Option<String>,

    /// Most connections of one address to the edge [default: 200]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    pub connections_per_address: Option<String>,

    /// Which links the edge holds: off for those that are asked for, full for all of them, up to 90 bytes each, so
    /// that neither a known nor an unknown id needs the database once all were read [default: off]
    #[arg(long, env = "WAYMARK_EDGE_REPLICA", value_name = "off|full")]
    pub edge_replica: Option<String>,

    /// Whether plain redirects are answered by the fast reader, before the HTTP library sees them; the answers are the
    /// same either way [default: on]
    #[arg(long, env = "WAYMARK_FAST_REDIRECTS", value_name = "on|off")]
    pub fast_redirects: Option<String>,

    /// City database in MaxMind's form (.mmdb) that tells where scans happen; a replaced file is taken
    /// within seconds [default: none]
    #[arg(long, env = "WAYMARK_GEOIP_DB", value_name = "FILE")]
    pub geoip_db: Option<String>,

    /// Path of a SQLite file, or postgres://… [default: DATA_DIR/waymark.db]
    #[arg(long, env = "DATABASE_URL", value_name = "PATH|URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// The server of scans.
    #[command(flatten)]
    #[serde(flatten)]
    pub scans: ScanTexts,

    /// File of the keys that encrypt the secrets in the database: one a line, the first one encrypts, the others
    /// still decrypt; nobody but its owner may read it [default: DATA_DIR/secret.key, made at the first start]
    #[arg(long, env = "WAYMARK_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<String>,

    /// Where the content of files is kept: a folder, or s3://bucket/prefix with the usual AWS_… variables
    /// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT) [default: DATA_DIR/files]
    #[arg(long, env = "WAYMARK_FILES_URL", value_name = "DIR|URL")]
    pub files_url: Option<String>,

    /// Refused here: `control` and `edge` as processes of their own use Redis [default: none]
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub redis_url: Option<String>,

    /// The log.
    #[command(flatten)]
    #[serde(flatten)]
    pub logging: Log,

    /// Base URL of a collector that gets spans of the API's requests, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "WAYMARK_OTLP_URL", value_name = "URL", hide_env_values = true)]
    pub otlp_url: Option<String>,
}
