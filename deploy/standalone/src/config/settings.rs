//! Settings as people write them: flags, then environment, then a TOML file; all of it still text.

use serde::Deserialize;
use shared::settings::{first_of, text, toml};

use super::ConfigError;

/// Every setting of `waymark up`; flags win over variables, and both over the TOML file.
///
/// A key of the TOML file is the variable without `WAYMARK_`, in lower case: `api_listen = "…"`.
#[derive(Debug, Default, Clone, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// TOML file with any of these settings [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<String>,

    /// Folder of the database, the scan spool and the development CA; made when missing
    /// [default: ./data]
    #[arg(long, env = "WAYMARK_DATA_DIR", value_name = "DIR")]
    #[serde(deserialize_with = "text")]
    pub data_dir: Option<String>,

    /// Where the API listens without TLS [default: 127.0.0.1:8080]
    #[arg(long, env = "WAYMARK_API_LISTEN", value_name = "ADDR:PORT")]
    #[serde(deserialize_with = "text")]
    pub api_listen: Option<String>,

    /// Where short URLs are served without TLS [default: 127.0.0.1:8081]
    #[arg(long, env = "WAYMARK_EDGE_LISTEN", value_name = "ADDR:PORT")]
    #[serde(deserialize_with = "text")]
    pub edge_listen: Option<String>,

    /// Where short URLs are served over TLS [default: off; 127.0.0.1:8443 with --dev-tls]
    #[arg(long, env = "WAYMARK_EDGE_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub edge_tls_listen: Option<String>,

    /// Where MQTT is spoken without TLS, such as 127.0.0.1:1883; over WebSockets it is at /mqtt of the API
    /// [default: off]
    #[arg(long, env = "WAYMARK_MQTT_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub mqtt_listen: Option<String>,

    /// Where MQTT is spoken with TLS, such as 0.0.0.0:8883 [default: off]
    #[arg(long, env = "WAYMARK_MQTT_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub mqtt_tls_listen: Option<String>,

    /// Where /live, /ready and /metrics are [default: 127.0.0.1:8082]
    #[arg(long, env = "WAYMARK_ADMIN_LISTEN", value_name = "ADDR:PORT")]
    #[serde(deserialize_with = "text")]
    pub admin_listen: Option<String>,

    /// Base of the API as clients reach it, with scheme and host: those of every URL that
    /// answers hold [default: the host that a request names if it is known, else WAYMARK_API_LISTEN]
    #[arg(long, env = "WAYMARK_PUBLIC_URL", value_name = "URL")]
    #[serde(deserialize_with = "text")]
    pub public_url: Option<String>,

    /// Hosts of short URLs, separated by commas, as tn.gg or http://127.0.0.1:8081; without a scheme
    /// they are https, save for loopback addresses without TLS [default: the edge's own address]
    #[arg(long, env = "WAYMARK_SHORT_DOMAINS", value_name = "HOST,…")]
    #[serde(deserialize_with = "text")]
    pub short_domains: Option<String>,

    /// A key of 80 characters A-Z a-z 0-9 that the first operator shall have, for tests and automation
    /// [default: a random one, shown at the first start]
    #[arg(long, env = "WAYMARK_OPERATOR_KEY", value_name = "KEY", hide_env_values = true)]
    #[serde(deserialize_with = "text")]
    pub operator_key: Option<String>,

    /// Where the API listens with TLS [default: off; 127.0.0.1:8444 with --dev-tls]
    #[arg(long, env = "WAYMARK_API_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "text")]
    pub api_tls_listen: Option<String>,

    /// Folder of certificates, HOST.pem and HOST.key for each host [default: none]
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

    /// Make a local CA at DATA_DIR/dev-tls/ca.pem and certificates for the short domains [default: false]
    #[arg(
        long,
        env = "WAYMARK_DEV_TLS",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    #[serde(deserialize_with = "text")]
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
    #[serde(deserialize_with = "text")]
    pub lan: Option<String>,

    /// Let redirections of the first account lead to loopback, link-local and private addresses, or no longer
    /// [default: as it was; not at first]
    #[arg(long, env = "WAYMARK_PRIVATE_TARGETS", value_name = "BOOL")]
    #[serde(deserialize_with = "text")]
    pub private_targets: Option<String>,

    /// Let webhooks lead to loopback, also without TLS: for receivers on this machine [default: false]
    #[arg(long, env = "WAYMARK_WEBHOOKS_LOOPBACK", value_name = "BOOL")]
    #[serde(deserialize_with = "text")]
    pub webhooks_loopback: Option<String>,

    /// Proxies that may name the client, as addresses or networks separated by
    /// commas, such as 127.0.0.1,10.0.0.0/8; for scans, actions and limits [default: none]
    #[arg(long, env = "WAYMARK_TRUSTED_PROXIES", value_name = "CIDR,…")]
    #[serde(deserialize_with = "text")]
    pub trusted_proxies: Option<String>,

    /// The one header in which trusted proxies name the client: X-Forwarded-For or Forwarded; the other one is
    /// not looked at [default: X-Forwarded-For]
    #[arg(long, env = "WAYMARK_FORWARDED_HEADER", value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    pub forwarded_header: Option<String>,

    /// Requests of one key a second, with bursts of twice as many; 0 is no limit [default: 2000]
    #[arg(long, env = "WAYMARK_REQUESTS_PER_KEY", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub requests_per_key: Option<String>,

    /// Requests of one address without a known key a second, with bursts of ten times as many; 0 is no
    /// limit [default: 5]
    #[arg(long, env = "WAYMARK_REFUSALS_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub refusals_per_address: Option<String>,

    /// Logins, registrations and activations of one address a minute; 0 is no limit [default: 30]
    #[arg(long, env = "WAYMARK_LOGINS_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub logins_per_address: Option<String>,

    /// Most connections of the API; those without a known key and those with public keys have parts of them
    /// [default: a quarter of the descriptor limit, at most 1024]
    #[arg(long, env = "WAYMARK_API_CONNECTIONS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub api_connections: Option<String>,

    /// The same of MQTT [default: a quarter of the descriptor limit, at most 16384]
    #[arg(long, env = "WAYMARK_MQTT_CONNECTIONS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub mqtt_connections: Option<String>,

    /// Most connections to the API and to MQTT of one address that showed no secret key [default: 100]
    #[arg(long, env = "WAYMARK_API_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub api_connections_per_address: Option<String>,

    /// Most connections of one key to the API, and to MQTT [default: a quarter of the listener's]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_KEY", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections_per_key: Option<String>,

    /// Most connections of one account to the API, and to MQTT [default: three quarters of the listener's]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ACCOUNT", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections_per_account: Option<String>,

    /// Most connections of the edge [default: half of the descriptor limit less 512; API and MQTT have the rest]
    #[arg(long, env = "WAYMARK_CONNECTIONS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections: Option<String>,

    /// Most connections of one address to the edge [default: 200]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub connections_per_address: Option<String>,

    /// Longest time for the headers of a request to the API [default: 5]
    #[arg(long, env = "WAYMARK_HEADER_SECONDS", value_name = "SECONDS")]
    #[serde(deserialize_with = "text")]
    pub header_seconds: Option<String>,

    /// Most uploads of files at once, with 10 MiB each; an account has half of them, a key or an address a quarter
    /// [default: 32]
    #[arg(long, env = "WAYMARK_UPLOADS", value_name = "COUNT")]
    #[serde(deserialize_with = "text")]
    pub uploads: Option<String>,

    /// Bytes a second that an upload has to bring, over half a minute [default: 8192]
    #[arg(long, env = "WAYMARK_UPLOAD_BYTES_PER_SECOND", value_name = "BYTES")]
    #[serde(deserialize_with = "text")]
    pub upload_bytes_per_second: Option<String>,

    /// Days for which jobs and their logs are kept once they have ended; 0 is for ever [default: 30]
    #[arg(long, env = "WAYMARK_JOBS_KEPT_DAYS", value_name = "DAYS")]
    #[serde(deserialize_with = "text")]
    pub jobs_kept_days: Option<String>,

    /// Which links the edge holds: off for those that are asked for, full for all of them, up to 90 bytes each, so
    /// that neither a known nor an unknown id needs the database once all were read [default: off]
    #[arg(long, env = "WAYMARK_EDGE_REPLICA", value_name = "off|full")]
    #[serde(deserialize_with = "text")]
    pub edge_replica: Option<String>,

    /// City database in MaxMind's form (.mmdb) that tells where scans happen; a replaced file is taken
    /// within seconds [default: none]
    #[arg(long, env = "WAYMARK_GEOIP_DB", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub geoip_db: Option<String>,

    /// Path of a SQLite file, or postgres://… [default: DATA_DIR/waymark.db]
    #[arg(long, env = "DATABASE_URL", value_name = "PATH|URL", hide_env_values = true)]
    #[serde(deserialize_with = "text")]
    pub database_url: Option<String>,

    /// File of the keys that encrypt the secrets in the database: one a line, the first one encrypts, the others
    /// still decrypt; nobody but its owner may read it [default: DATA_DIR/secret.key, made at the first start]
    #[arg(long, env = "WAYMARK_SECRET_KEY_FILE", value_name = "FILE")]
    #[serde(deserialize_with = "text")]
    pub secret_key_file: Option<String>,

    /// Where the content of files is kept: a folder, or s3://bucket/prefix with the usual AWS_… variables
    /// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT) [default: DATA_DIR/files]
    #[arg(long, env = "WAYMARK_FILES_URL", value_name = "DIR|URL")]
    #[serde(deserialize_with = "text")]
    pub files_url: Option<String>,

    /// Refused here: `control` and `edge` as processes of their own use Redis [default: none]
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    #[serde(deserialize_with = "text")]
    pub redis_url: Option<String>,

    /// What to log, as error, warn, info, debug, trace or a filter such as info,edge=debug
    /// [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    #[serde(deserialize_with = "text")]
    pub log: Option<String>,

    /// Form of the log: text or json [default: text]
    #[arg(long, env = "WAYMARK_LOG_FORMAT", value_name = "FORMAT")]
    #[serde(deserialize_with = "text")]
    pub log_format: Option<String>,

    /// Base URL of a collector that gets spans of the API's requests, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "WAYMARK_OTLP_URL", value_name = "URL", hide_env_values = true)]
    #[serde(deserialize_with = "text")]
    pub otlp_url: Option<String>,
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
            data_dir: or(self.data_dir, file.data_dir),
            api_listen: or(self.api_listen, file.api_listen),
            edge_listen: or(self.edge_listen, file.edge_listen),
            edge_tls_listen: or(self.edge_tls_listen, file.edge_tls_listen),
            admin_listen: or(self.admin_listen, file.admin_listen),
            public_url: or(self.public_url, file.public_url),
            short_domains: or(self.short_domains, file.short_domains),
            operator_key: or(self.operator_key, file.operator_key),
            api_tls_listen: or(self.api_tls_listen, file.api_tls_listen),
            mqtt_listen: or(self.mqtt_listen, file.mqtt_listen),
            mqtt_tls_listen: or(self.mqtt_tls_listen, file.mqtt_tls_listen),
            tls_dir: or(self.tls_dir, file.tls_dir),
            behind_tls_proxy: or(self.behind_tls_proxy, file.behind_tls_proxy),
            dev_tls: or(self.dev_tls, file.dev_tls),
            lan: or(self.lan, file.lan),
            private_targets: or(self.private_targets, file.private_targets),
            webhooks_loopback: or(self.webhooks_loopback, file.webhooks_loopback),
            trusted_proxies: or(self.trusted_proxies, file.trusted_proxies),
            forwarded_header: or(self.forwarded_header, file.forwarded_header),
            requests_per_key: or(self.requests_per_key, file.requests_per_key),
            refusals_per_address: or(self.refusals_per_address, file.refusals_per_address),
            logins_per_address: or(self.logins_per_address, file.logins_per_address),
            api_connections: or(self.api_connections, file.api_connections),
            mqtt_connections: or(self.mqtt_connections, file.mqtt_connections),
            api_connections_per_address: or(
                self.api_connections_per_address,
                file.api_connections_per_address,
            ),
            connections_per_key: or(self.connections_per_key, file.connections_per_key),
            connections_per_account: or(self.connections_per_account, file.connections_per_account),
            connections: or(self.connections, file.connections),
            connections_per_address: or(self.connections_per_address, file.connections_per_address),
            header_seconds: or(self.header_seconds, file.header_seconds),
            uploads: or(self.uploads, file.uploads),
            upload_bytes_per_second: or(self.upload_bytes_per_second, file.upload_bytes_per_second),
            jobs_kept_days: or(self.jobs_kept_days, file.jobs_kept_days),
            edge_replica: or(self.edge_replica, file.edge_replica),
            geoip_db: or(self.geoip_db, file.geoip_db),
            database_url: or(self.database_url, file.database_url),
            secret_key_file: or(self.secret_key_file, file.secret_key_file),
            files_url: or(self.files_url, file.files_url),
            redis_url: or(self.redis_url, file.redis_url),
            log: or(self.log, file.log),
            log_format: or(self.log_format, file.log_format),
            otlp_url: or(self.otlp_url, file.otlp_url),
        })
    }
}
