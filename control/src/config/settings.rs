//! Settings as text, merged from flags, environment and a TOML file, in this order.

use std::path::PathBuf;

use platform::settings::{Log, Network, with_file};
use serde::{Deserialize, Serialize};

use super::{AcmeTexts, ConfigError, FileStore, ScanServer, ScanTexts, scans};
use crate::secret_key_file;

/// Limits of the API, of every program that serves it.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Requests of one key a second, with bursts of twice as many; 0 is no limit; each replica counts by
    /// itself [default: 2000]
    #[arg(long, env = "WAYMARK_REQUESTS_PER_KEY", value_name = "COUNT")]
    pub requests_per_key: Option<String>,

    /// Requests of one address without a known key a second, with bursts of ten times as many; 0 is no
    /// limit [default: 5]
    #[arg(long, env = "WAYMARK_REFUSALS_PER_ADDRESS", value_name = "COUNT")]
    pub refusals_per_address: Option<String>,

    /// Logins, registrations and codes of one address a minute, and 8 times as many of its /24 or /48; 0 is no
    /// limit [default: 30]
    #[arg(long, env = "WAYMARK_LOGINS_PER_ADDRESS", value_name = "COUNT")]
    pub logins_per_address: Option<String>,

    /// Most connections of the API; those without a known key and those with public keys have parts of them
    /// [default: a quarter of the descriptor limit, at most 1024]
    #[arg(long, env = "WAYMARK_API_CONNECTIONS", value_name = "COUNT")]
    pub api_connections: Option<String>,

    /// The same of MQTT [default: a quarter of the descriptor limit, at most 16384]
    #[arg(long, env = "WAYMARK_MQTT_CONNECTIONS", value_name = "COUNT")]
    pub mqtt_connections: Option<String>,

    /// Most connections to the API and to MQTT of one address that showed no secret key [default: 100]
    #[arg(long, env = "WAYMARK_API_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    pub api_connections_per_address: Option<String>,

    /// Most connections of one key to the API, and to MQTT [default: a quarter of the listener's]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_KEY", value_name = "COUNT")]
    pub connections_per_key: Option<String>,

    /// Most connections of one account to the API, and to MQTT [default: three quarters of the listener's]
    #[arg(long, env = "WAYMARK_CONNECTIONS_PER_ACCOUNT", value_name = "COUNT")]
    pub connections_per_account: Option<String>,

    /// Longest time for the headers of a request to the API [default: 5]
    #[arg(long, env = "WAYMARK_HEADER_SECONDS", value_name = "SECONDS")]
    pub header_seconds: Option<String>,

    /// Most uploads of files at once, with 10 MiB each; an account has half of them, a key or an address a quarter
    /// [default: 32]
    #[arg(long, env = "WAYMARK_UPLOADS", value_name = "COUNT")]
    pub uploads: Option<String>,

    /// Bytes a second that an upload has to bring, over half a minute [default: 8192]
    #[arg(long, env = "WAYMARK_UPLOAD_BYTES_PER_SECOND", value_name = "BYTES")]
    pub upload_bytes_per_second: Option<String>,

    /// Days for which jobs and their logs are kept once they have ended; 0 is for ever [default: 30]
    #[arg(long, env = "WAYMARK_JOBS_KEPT_DAYS", value_name = "DAYS")]
    pub jobs_kept_days: Option<String>,

    /// Most codes of a print order [default: 1000000]
    #[arg(long, env = "WAYMARK_PRINT_CODES", value_name = "COUNT")]
    pub print_codes: Option<String>,

    /// Days for which files of print orders are kept; 0 is for ever [default: 30]
    #[arg(long, env = "WAYMARK_PRINT_FILES_DAYS", value_name = "DAYS")]
    pub print_files_days: Option<String>,
}

/// Mail, of every program that serves the API.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct MailTexts {
    /// Server that mail is sent by: smtps://user:password@host:465, or smtp://user:password@host:587, which needs
    /// STARTTLS; without TLS only on this machine, as smtp://localhost:25?tls=off [default: none, no mail is sent]
    #[arg(long, env = "WAYMARK_SMTP_URL", value_name = "URL", hide_env_values = true)]
    pub smtp_url: Option<String>,

    /// Authority that signed the certificate of the mail server, as a PEM file [default: those of the system]
    #[arg(long, env = "WAYMARK_SMTP_CA", value_name = "FILE")]
    pub smtp_ca: Option<String>,

    /// Sender of mails, such as noreply@example.com or "Name <noreply@example.com>"; WAYMARK_SMTP_URL needs one
    /// [default: none]
    #[arg(long, env = "WAYMARK_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,

    /// Mails of one account an hour; 0 is no limit [default: 2000]
    #[arg(long, env = "WAYMARK_MAILS_PER_ACCOUNT", value_name = "COUNT")]
    pub mails_per_account: Option<String>,
}

// The URL of the server may hold a password.
impl std::fmt::Debug for MailTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailTexts").field("mail_from", &self.mail_from).finish_non_exhaustive()
    }
}

/// The provider by which operators sign in, of every program that serves the API.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct OidcTexts {
    /// Issuer of the provider of OpenID Connect by which operators sign in: its URL, as its metadata have it
    /// [default: none]
    #[arg(long, env = "WAYMARK_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// Id of this server at the provider; WAYMARK_OIDC_ISSUER needs one [default: none]
    #[arg(long, env = "WAYMARK_OIDC_CLIENT_ID", value_name = "ID")]
    pub oidc_client_id: Option<String>,

    /// File of the secret that goes with this id, which nobody but its owner may read; WAYMARK_OIDC_ISSUER needs one
    /// [default: none]
    #[arg(long, env = "WAYMARK_OIDC_CLIENT_SECRET_FILE", value_name = "FILE")]
    pub oidc_client_secret_file: Option<String>,

    /// Authority that signed the certificate of the provider, as a PEM file [default: those of the system]
    #[arg(long, env = "WAYMARK_OIDC_CA", value_name = "FILE")]
    pub oidc_ca: Option<String>,

    /// Claim that the ID token of whoever signs in must have, such as hd=example.com [default: none]
    #[arg(long, env = "WAYMARK_OIDC_REQUIRED_CLAIM", value_name = "NAME=VALUE")]
    pub oidc_required_claim: Option<String>,
}

/// Every setting of `control serve`; flags win over variables, and both over the TOML file.
///
/// A key of the TOML file is the variable without `WAYMARK_`, in lower case: `api_listen = "…"`.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// TOML file with any of these settings [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<String>,

    /// Postgres, as postgres://user@host/database; all replicas share it (required)
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// Redis of the region, to which this replica may publish the view: redis://user:password@host:6379/0,
    /// redis+sentinel://host:26379,host:26379/service or redis+cluster://host:6379,host:6379, each with
    /// rediss for TLS (required)
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub redis_url: Option<String>,

    /// Authority that signed the certificates of Redis, as a PEM file [default: those of the system]
    #[arg(long, env = "WAYMARK_REDIS_CA", value_name = "FILE")]
    pub redis_ca: Option<String>,

    /// Shards of the view in Redis, 1 to 256: 1, or 16 on a cluster; fixed at set-up [default: 1]
    #[arg(long, env = "WAYMARK_REDIS_SHARDS", value_name = "COUNT")]
    pub redis_shards: Option<String>,

    /// Name of the region whose Redis this is [default: main]
    #[arg(long, env = "WAYMARK_REGION", value_name = "NAME")]
    pub region: Option<String>,

    /// Bring the schema up to date at the start; off where `control migrate` does it [default: true]
    #[arg(long, env = "WAYMARK_MIGRATE", value_name = "BOOL")]
    pub migrate: Option<String>,

    /// File of the keys that encrypt the secrets in the database, the same for every replica and worker: one a
    /// line, the first one encrypts, the others still decrypt; nobody but its owner may read it. `control secrets
    /// new-key` makes it (required)
    #[arg(long, env = "WAYMARK_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<String>,

    /// Where the API listens without TLS [default: 127.0.0.1:8080]
    #[arg(long, env = "WAYMARK_API_LISTEN", value_name = "ADDR:PORT")]
    pub api_listen: Option<String>,

    /// Where the API listens with TLS [default: off]
    #[arg(long, env = "WAYMARK_API_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub api_tls_listen: Option<String>,

    /// Where edges connect without TLS [default: 127.0.0.1:8083]
    #[arg(long, env = "WAYMARK_INTERNAL_LISTEN", value_name = "ADDR:PORT")]
    pub internal_listen: Option<String>,

    /// Where edges connect with TLS [default: off]
    #[arg(long, env = "WAYMARK_INTERNAL_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub internal_tls_listen: Option<String>,

    /// Where MQTT is spoken without TLS, such as 127.0.0.1:1883; over WebSockets it is at /mqtt of the API
    /// [default: off]
    #[arg(long, env = "WAYMARK_MQTT_LISTEN", value_name = "ADDR:PORT|off")]
    pub mqtt_listen: Option<String>,

    /// Where MQTT is spoken with TLS, such as 0.0.0.0:8883 [default: off]
    #[arg(long, env = "WAYMARK_MQTT_TLS_LISTEN", value_name = "ADDR:PORT|off")]
    pub mqtt_tls_listen: Option<String>,

    /// Let webhooks lead to loopback, also without TLS: for tests on one machine [default: false]
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

    /// Where /live, /ready and /metrics are [default: 127.0.0.1:8082]
    #[arg(long, env = "WAYMARK_ADMIN_LISTEN", value_name = "ADDR:PORT")]
    pub admin_listen: Option<String>,

    /// Base of the API as clients reach it, with scheme and host: those of every URL that
    /// answers hold [default: the host that a request names if it is known, else WAYMARK_API_LISTEN]
    #[arg(long, env = "WAYMARK_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Certificates, and proxies in front.
    #[command(flatten)]
    #[serde(flatten)]
    pub network: Network,

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

    /// The server of scans.
    #[command(flatten)]
    #[serde(flatten)]
    pub scans: ScanTexts,

    /// City database in MaxMind's form (.mmdb) that tells where scans happen; a replaced file is taken
    /// within seconds [default: none]
    #[arg(long, env = "WAYMARK_GEOIP_DB", value_name = "FILE")]
    pub geoip_db: Option<String>,

    /// Where the content of files is kept, shared by all replicas: s3://bucket/prefix with the usual AWS_…
    /// variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT), or a folder that all
    /// mount (required)
    #[arg(long, env = "WAYMARK_FILES_URL", value_name = "DIR|URL")]
    pub files_url: Option<String>,

    /// The log.
    #[command(flatten)]
    #[serde(flatten)]
    pub logging: Log,

    /// Base URL of a collector that gets spans of the API's requests, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "WAYMARK_OTLP_URL", value_name = "URL", hide_env_values = true)]
    pub otlp_url: Option<String>,
}

impl Settings {
    /// Adds what the TOML file says, where neither flag nor variable says anything.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has a key that is unknown.
    pub(super) fn with_file(&self) -> Result<Self, ConfigError> {
        with_file(self, self.config.as_deref())
    }
}

/// A database of either engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// The URL of Postgres.
    Postgres(String),
}

/// Where the database is: what the commands besides `serve` need.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct Place {
    /// TOML file of `control serve` [default: none]
    #[arg(long, env = "WAYMARK_CONFIG", value_name = "FILE")]
    pub config: Option<String>,
    /// Postgres, as postgres://user@host/database (required)
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// The server of scans.
    #[command(flatten)]
    pub scans: ScanTexts,
}

/// The key file, for the commands that use secrets.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct SecretKeyFile {
    /// File of the keys that encrypt the secrets in the database: as of `control serve` (required)
    #[arg(long, env = "WAYMARK_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<String>,
}

impl Place {
    /// The key file: as said here, else as the file says.
    ///
    /// # Errors
    /// Nothing is said, or the file cannot be read.
    pub fn secret_key_file(&self, here: SecretKeyFile) -> Result<PathBuf, ConfigError> {
        let SecretKeyFile { secret_key_file } = here;
        let settings = Settings { config: self.config.clone(), secret_key_file, ..Settings::default() };
        secret_key_file::required(settings.with_file()?.secret_key_file)
    }

    /// The URL of the database.
    ///
    /// # Errors
    /// It is not Postgres, or the file cannot be read.
    pub fn database_url(self) -> Result<String, ConfigError> {
        let settings =
            Settings { config: self.config, database_url: self.database_url, ..Settings::default() };
        super::database_url(settings.with_file()?.database_url)
    }

    /// The database of a command that works on both engines: Postgres, or the SQLite file of `waymark up`.
    ///
    /// # Errors
    /// It is neither, the SQLite file does not exist, or the settings cannot be read.
    pub fn database(self) -> Result<Database, ConfigError> {
        let settings =
            Settings { config: self.config, database_url: self.database_url, ..Settings::default() };
        let text = settings.with_file()?.database_url;
        let path = text.as_deref().and_then(|text| {
            let path =
                text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
            (!path.is_empty() && !path.contains("://")).then(|| PathBuf::from(path))
        });
        match path {
            None => super::database_url(text).map(Database::Postgres),
            Some(path) if path.is_file() => Ok(Database::Sqlite(path)),
            // Not repeated: a URL that was cut off may hold a password.
            Some(_) => Err(ConfigError::new(
                "DATABASE_URL",
                "there is no such file: give the path of a SQLite database, or postgres://user@host/database",
            )),
        }
    }

    /// The server of scans, if there is one.
    ///
    /// # Errors
    /// It cannot be used, or the file cannot be read.
    pub fn scans(&self) -> Result<Option<ScanServer>, ConfigError> {
        let (config, texts) = (self.config.clone(), self.scans.clone());
        let settings = Settings { config, scans: texts, ..Settings::default() };
        scans::scans(&settings.with_file()?.scans)
    }

    /// Where the content of files is: as said here, else as the file says.
    ///
    /// # Errors
    /// Nothing is said, it cannot be used, or the file cannot be read.
    pub fn files(&self, here: Option<String>) -> Result<FileStore, ConfigError> {
        let settings = Settings { config: self.config.clone(), files_url: here, ..Settings::default() };
        super::files(settings.with_file()?.files_url.as_deref())
    }
}
