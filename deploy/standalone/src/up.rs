//! The composition: control and one edge in one process, started and stopped in order.

mod parts;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
};

use control::{
    composition::{self, compose},
    failure::Failure,
    run::Tasks,
    secret_key_file,
    service::{
        base_urls::{IsCertified, UrlSettings},
        seed::{self, Seeded},
    },
    state::ApiState,
    system::{SystemClock, SystemRandom, random_name, system_ticks},
};
use edge::TlsCerts;
use kernel::{
    service::capacity,
    store::{Db, StoreError},
};
use platform::settings::proxy_warning;
use push::edge_keys::EdgeKeys;
use shared::{
    geo::GeoIp,
    short_url::{Scheme, ShortDomain},
};
use signin::service::links;
use tenants::domain::tenant::AccountChange;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::parts::{Files, Parts};
use crate::{
    config::{Config, ConfigError, Database, Tls},
    data_dir::{self, DataDir},
    dev_tls::{self, DevTls},
    serve, tools,
};

/// The addresses that are really bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The API.
    pub api: SocketAddr,
    /// The API over TLS.
    pub api_tls: Option<SocketAddr>,
    /// MQTT.
    pub mqtt: Option<SocketAddr>,
    /// MQTT over TLS.
    pub mqtt_tls: Option<SocketAddr>,
    /// Short URLs.
    pub edge: SocketAddr,
    /// Short URLs over TLS.
    pub edge_tls: Option<SocketAddr>,
    /// `/live`, `/ready` and `/metrics`.
    pub admin: SocketAddr,
}

/// Bound sockets, not yet served.
pub(crate) struct Sockets {
    pub(crate) api: TcpListener,
    pub(crate) api_tls: Option<TcpListener>,
    pub(crate) mqtt: Option<TcpListener>,
    pub(crate) mqtt_tls: Option<TcpListener>,
    pub(crate) edge: TcpListener,
    pub(crate) edge_tls: Option<TcpListener>,
    pub(crate) admin: TcpListener,
}

/// A process that is up.
pub struct Running {
    /// Where it listens.
    pub addresses: Addresses,
    /// Base of the API, without a path.
    pub api_url: String,
    /// Page of the docs.
    pub docs_url: String,
    /// What was found or made in the database.
    pub seeded: Seeded,
    /// The development CA, if there is one.
    pub dev_ca: Option<PathBuf>,
    /// Page of the console.
    pub console_url: String,
    /// The code that signs the first owner in once, for people at this machine.
    pub sign_in_code: Option<String>,
    app: Arc<ApiState>,
    supervisor: JoinHandle<Result<(), Failure>>,
}

impl Running {
    /// The control plane, for tests that look behind the API.
    #[must_use]
    pub fn app(&self) -> &Arc<ApiState> {
        &self.app
    }

    /// Waits until everything has stopped, after the `shutdown` given to [`up`] or a failure.
    ///
    /// # Errors
    /// A part failed while it ran or stopped.
    pub async fn wait(self) -> Result<(), Failure> {
        self.supervisor.await.unwrap_or_else(|error| Err(Failure::failed("the supervisor", error)))
    }
}

/// Starts everything; returns when all of it answers.
///
/// Settings are checked first, then the data folder is taken, then ports are bound, then the database is
/// opened: a start that is refused leaves nothing behind but an empty folder.
///
/// # Errors
/// A setting cannot be used, the database cannot be opened, or a part did not start.
pub async fn up(config: Config, shutdown: CancellationToken) -> Result<Running, Failure> {
    config.check()?;
    let key_file = config.secret_key_path();
    if config.secret_key_file.is_some() || key_file.exists() {
        secret_key_file::read(&key_file)?;
    }
    // Twice is no fault: tests start several processes' worth in one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut data_dir = DataDir::open(&config.data_dir)?;
    if let Database::Sqlite(path) = &config.database {
        data_dir.hold_database(path)?;
    }
    let (sockets, addresses) = bind(&config)?;
    let domains = short_domains(&config, &addresses)?;
    let tls = prepare_tls(&config, &data_dir, &domains)?;
    let certificates = tls.as_ref().map(|tls| serve::certificates(&config, &tls.certificates)).transpose()?;
    let files = Files { certificates, geo: serve::geo_database(&config)? };
    let blobs = control::serve::blobs(&config.files)?;
    let (db, history) = open_database(&config, &shutdown).await?;
    let (clock, random) = (SystemClock, SystemRandom);
    make_key_file(&config, &db).await?;
    let prepared = control::serve::prepare(&db, &history, &key_file).await?;
    let key = config.operator_key.as_deref();
    let seeded = seed::seed(&db, &clock, &random, key, &domains, config.lan.is_some())
        .await
        .map_err(|error| refused_seed(&config, error))?;
    if let Some(private) = config.private_targets {
        let change = AccountChange { private_targets: Some(private), ..AccountChange::default() };
        seed::change_account(&db, &clock, Some(seeded.account), change)
            .await
            .map_err(|error| Failure::failed("the account cannot be changed", error))?;
    }
    warn_of_schemes(&domains, &seeded.domains);
    let api_url = format!("http://{}", reachable(addresses.api));
    let urls = url_settings(&config, &addresses, files.certificates.as_ref());
    let own_base = urls.own_base(addresses.api, None);
    let (docs_url, console_url) = (format!("{own_base}/docs"), format!("{own_base}/console/"));
    let sign_in_code = links::make(&db, (&clock, &random), webconsole::is_built() && is_at_home(&config))
        .await
        .map_err(|error| Failure::failed("no link to sign in can be made", error))?;
    let warnings = [proxy_warning(config.behind_tls_proxy, &config.trusted_proxies), urls.warning()];
    for warning in warnings.into_iter().flatten() {
        tracing::warn!("{warning}");
    }
    // Of this start alone: the edge is in the same process.
    let edge_key = format!("{}{}", random_token()?, random_token()?);
    let (app, writer_task) = compose(composition::Parts {
        db,
        secrets: prepared.secrets,
        clock: Arc::new(clock),
        ticks: system_ticks(),
        random: Arc::new(random),
        blobs,
        geo_ip: files.geo.clone().map(|geo| Arc::new(geo) as Arc<dyn GeoIp>),
        trusted_proxies: config.trusted_proxies.clone(),
        egress: events::egress::EgressClient::new(
            config.webhooks_loopback,
            Arc::new(events::egress::SystemLookup::default()),
        )
        .map_err(|error| Failure::failed("the client of webhooks", error))?,
        dns_server: config.dns_server,
        acme: config.acme.clone(),
        limits: config.limits.clone(),
        capacity: capacity::Capacity::new(config.capacity.clone()),
        jobs_kept: config.jobs_kept,
        printing: config.printing,
        edge_keys: EdgeKeys::with_own(&edge_key, "local"),
        mail: config.mail.clone(),
        oidc: control::serve::provider(config.oidc.clone())?,
        scans: config.scans.clone(),
        contact: config.contact.clone(),
        docs_url: docs_url.clone(),
        urls,
    })
    .await
    .map_err(|error| Failure::failed("the change log and the store of scans", error))?;
    let tasks = Tasks::start(&app, writer_task)?;
    let parts = Parts::start(&config, &data_dir, &app, tasks, &edge_key, sockets, &addresses, files).await?;
    let supervisor = tokio::spawn(parts.supervise(data_dir, shutdown));
    let dev_ca = (config.tls == Tls::Dev).then(|| tls.map(|tls| tls.ca)).flatten();
    Ok(Running { addresses, api_url, docs_url, seeded, dev_ca, console_url, sign_in_code, app, supervisor })
}

/// Whether only programs of this machine reach the API, so that what is printed is for whoever sits at it.
fn is_at_home(config: &Config) -> bool {
    let mut listeners = std::iter::once(config.api_listen).chain(config.api_tls_listen);
    let is_local = listeners.all(|address| address.ip().is_loopback());
    // Requests that a trusted proxy of this machine passes on are those of others.
    let has_proxy = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]
        .into_iter()
        .any(|address| config.trusted_proxies.trust(address));
    is_local && !has_proxy && !config.behind_tls_proxy && config.public_url.is_none()
}

fn random_token() -> Result<String, Failure> {
    random_name().map_err(|error| Failure::failed("the key of the edge", error))
}

fn bind(config: &Config) -> Result<(Sockets, Addresses), Failure> {
    let one = control::serve::bind;
    let maybe = |key: &'static str, address: Option<SocketAddr>| {
        address.map(|address| one(key, address)).transpose().map(Option::unzip)
    };
    let (api, api_at) = one("WAYMARK_API_LISTEN", config.api_listen)?;
    let (api_tls, api_tls_at) = maybe("WAYMARK_API_TLS_LISTEN", config.api_tls_listen)?;
    let (mqtt, mqtt_at) = maybe("WAYMARK_MQTT_LISTEN", config.mqtt_listen)?;
    let (mqtt_tls, mqtt_tls_at) = maybe("WAYMARK_MQTT_TLS_LISTEN", config.mqtt_tls_listen)?;
    let (edge, edge_at) = one("WAYMARK_EDGE_LISTEN", config.edge_listen)?;
    let (edge_tls, edge_tls_at) = maybe("WAYMARK_EDGE_TLS_LISTEN", config.edge_tls_listen)?;
    let (admin, admin_at) = one("WAYMARK_ADMIN_LISTEN", config.admin_listen)?;
    Ok((
        Sockets { api, api_tls, mqtt, mqtt_tls, edge, edge_tls, admin },
        Addresses {
            api: api_at,
            api_tls: api_tls_at,
            mqtt: mqtt_at,
            mqtt_tls: mqtt_tls_at,
            edge: edge_at,
            edge_tls: edge_tls_at,
            admin: admin_at,
        },
    ))
}

fn url_settings(config: &Config, addresses: &Addresses, certificates: Option<&TlsCerts>) -> UrlSettings {
    let is_certified = certificates
        .cloned()
        .map(|certificates| -> IsCertified { Arc::new(move |name: &str| certificates.holds(name)) });
    UrlSettings {
        public_url: config.public_url.clone(),
        behind_tls_proxy: config.behind_tls_proxy,
        listeners: std::iter::once(addresses.api).chain(addresses.api_tls).collect(),
        is_certified,
        development: config.tls == Tls::Dev,
    }
}

/// The short domains that the settings mean; without any, the address under which the edge is reached.
fn short_domains(config: &Config, addresses: &Addresses) -> Result<Vec<ShortDomain>, Failure> {
    let bad = |error| ConfigError::new("WAYMARK_SHORT_DOMAINS", format!("{error}"));
    if config.short_domains.is_empty() {
        let (scheme, address) = match (addresses.edge_tls, config.lan) {
            // A listener on every address is reached at that of the network.
            (Some(address), Some(ip)) => (Scheme::Https, SocketAddr::new(ip, address.port())),
            (Some(address), None) => (Scheme::Https, reachable(address)),
            (None, _) => (Scheme::Http, reachable(addresses.edge)),
        };
        return Ok(vec![ShortDomain::new(scheme, &address.to_string()).map_err(bad)?]);
    }
    config
        .short_domains
        .iter()
        .map(|domain| {
            let scheme = domain.scheme.unwrap_or_else(|| config.scheme_of(&domain.host));
            Ok(ShortDomain::new(scheme, &domain.host).map_err(bad)?)
        })
        .collect()
}

/// The address that a client on this machine uses for a listener on every address.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

fn prepare_tls(
    config: &Config,
    data_dir: &DataDir,
    domains: &[ShortDomain],
) -> Result<Option<DevTls>, Failure> {
    match &config.tls {
        Tls::Off => Ok(None),
        Tls::Dir(folder) => Ok(Some(DevTls { ca: PathBuf::new(), certificates: folder.clone() })),
        Tls::Dev => {
            let hosts = domains.iter().map(|domain| domain.host.as_str());
            let tls = dev_tls::prepare(data_dir.path(), hosts, std::time::SystemTime::now())
                .map_err(|error| ConfigError::new("WAYMARK_DEV_TLS", error.to_string()))?;
            Ok(Some(tls))
        }
    }
}

async fn open_database(config: &Config, shutdown: &CancellationToken) -> Result<(Db, String), Failure> {
    let (db, history) = match &config.database {
        Database::Postgres(url) => (control::serve::connect_patiently(url, shutdown).await?, String::new()),
        Database::Sqlite(_) => connect(&config.database).await?,
    };
    control::serve::migrate(&db).await?;
    Ok((db, history))
}

/// Makes the key file in the data folder at the first start, but never for a database that is encrypted already.
async fn make_key_file(config: &Config, db: &Db) -> Result<(), Failure> {
    let path = config.secret_key_path();
    if config.secret_key_file.is_some() || path.exists() {
        return Ok(());
    }
    let failed = |error: StoreError| Failure::failed("the database cannot be read", error);
    let keys = ::secrets::find_keys(&mut db.read().await.map_err(failed)?).await.map_err(failed)?;
    if !keys.is_empty() {
        return Err(ConfigError::new(secret_key_file::SETTING, tools::secrets::lacks(&path, &keys)).into());
    }
    let id = secret_key_file::add_key(&path)?;
    tracing::info!(path = %path.display(), key = %id, "the key file was made: keep a copy of it apart from backups");
    Ok(())
}

/// Opens a database as it is, and gives the id of its history.
///
/// # Errors
/// The file cannot be used, or nothing answers at the URL.
pub(crate) async fn connect(database: &Database) -> Result<(Db, String), Failure> {
    match database {
        Database::Sqlite(path) => {
            let bad = |error: &dyn std::fmt::Display| {
                ConfigError::new("DATABASE_URL", format!("{} cannot be used: {error}", path.display()))
            };
            let history = data_dir::history_id(path).map_err(|error| bad(&error))?;
            data_dir::make_private(path).map_err(|error| bad(&error))?;
            Ok((Db::open_sqlite(path).await.map_err(|error| bad(&error))?, history))
        }
        // The server has a history id of its own; this one is not used.
        Database::Postgres(url) => Ok((control::serve::connect(url).await?, String::new())),
    }
}

fn refused_seed(config: &Config, error: kernel::error::ServiceError) -> Failure {
    match error {
        kernel::error::ServiceError::Store(StoreError::Unique(what)) if what.contains("short_domains") => {
            ConfigError::new("WAYMARK_SHORT_DOMAINS", "a short domain belongs to another account").into()
        }
        kernel::error::ServiceError::Store(StoreError::Unique(_)) if config.operator_key.is_some() => {
            ConfigError::new("WAYMARK_OPERATOR_KEY", "this key was revoked: give another, or none").into()
        }
        error => Failure::failed("the first account cannot be made", error),
    }
}

/// The scheme of a domain is in every printed code: it stays what it was when the domain was added.
fn warn_of_schemes(asked: &[ShortDomain], stored: &[ShortDomain]) {
    for domain in asked {
        let kept = stored.iter().find(|kept| kept.host == domain.host && kept.scheme != domain.scheme);
        if let Some(kept) = kept {
            tracing::warn!(
                domain = %kept.host,
                scheme = kept.scheme.as_str(),
                "the short domain keeps the scheme it was added with, since its codes are printed"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_printed_only_where_nobody_else_reaches_the_api() {
        let home = || Config::on_free_ports(PathBuf::from("data"));
        assert!(is_at_home(&home()));
        for away in [
            Config { api_listen: SocketAddr::from(([0, 0, 0, 0], 8080)), ..home() },
            Config { api_tls_listen: Some(SocketAddr::from(([192, 0, 2, 1], 8443))), ..home() },
            Config { behind_tls_proxy: true, ..home() },
            Config { trusted_proxies: "127.0.0.0/8".parse().unwrap(), ..home() },
            Config { public_url: "https://api.example.com".parse().ok(), ..home() },
        ] {
            assert!(!is_at_home(&away), "{away:?}");
        }
    }
}
