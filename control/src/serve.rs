//! `control serve`: one replica of the control plane, with ordered startup and shutdown.

mod database;

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use catalog::{domain::file::MAX_FILE_BYTES, store::blobs::Blobs};
use events::{
    egress::{EgressClient, SystemLookup},
    live::{self, BrokerListeners},
};
use kernel::service::capacity;
use oidc::{OidcSettings, Provider};
use platform::settings::proxy_warning;
use push::{
    edge_keys::EdgeKeys,
    publisher::{Publisher, PublisherConfig},
    publisher_stats::PublisherStats,
    replica::Replica,
};
use shared::geo::GeoIp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use self::database::refused_secrets;
pub use self::database::{check_schema, connect, connect_patiently, migrate, prepare};
use crate::{
    composition::{Parts, compose},
    config::{Config, ConfigError, FileStore},
    failure::Failure,
    geo::GeoDatabase,
    http::{self, ApiListeners, internal},
    run::Tasks,
    service::base_urls::{IsCertified, UrlSettings},
    state::ApiState,
    system::{SystemClock, SystemRandom, random_name, system_ticks},
    tls::Certificates,
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
    /// Edges.
    pub internal: SocketAddr,
    /// Edges over TLS.
    pub internal_tls: Option<SocketAddr>,
    /// `/live`, `/ready` and `/metrics`.
    pub admin: SocketAddr,
}

/// A replica that is up.
pub struct Running {
    /// Where it listens.
    pub addresses: Addresses,
    supervisor: JoinHandle<Result<(), Failure>>,
}

impl Running {
    /// Waits until everything has stopped, after the `shutdown` given to [`serve`] or a failure.
    ///
    /// # Errors
    /// A part failed while it ran or stopped.
    pub async fn wait(self) -> Result<(), Failure> {
        self.supervisor.await.unwrap_or_else(|error| Err(Failure::failed("the supervisor", error)))
    }

    /// Prints all addresses.
    ///
    /// # Errors
    /// The output is closed.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Addresses { api, api_tls, mqtt, mqtt_tls, internal, internal_tls, admin } = self.addresses;
        writeln!(out, "Waymark's control is up.")?;
        writeln!(out, "  API           http://{api}")?;
        if let Some(address) = api_tls {
            writeln!(out, "  API, TLS      https://{address}")?;
        }
        if let Some(address) = mqtt {
            writeln!(out, "  MQTT          mqtt://{address}")?;
        }
        if let Some(address) = mqtt_tls {
            writeln!(out, "  MQTT, TLS     mqtts://{address}")?;
        }
        writeln!(out, "  Internal      http://{internal}")?;
        if let Some(address) = internal_tls {
            writeln!(out, "  Internal, TLS https://{address}")?;
        }
        writeln!(out, "  Admin         http://{admin}")?;
        writeln!(out, "Ctrl-C stops it.")?;
        out.flush()
    }
}

/// Starts a replica; returns when all of it answers.
///
/// Settings are checked before; then ports are bound, then the database is opened.
///
/// # Errors
/// A port or a file cannot be used, the database refuses or cannot be used, or a part did not start.
pub async fn serve(config: Config, shutdown: CancellationToken) -> Result<Running, Failure> {
    let (sockets, addresses) = bind_all(&config)?;
    let certificates = config.tls_dir.as_deref().map(|folder| {
        Certificates::open(folder).map_err(|error| {
            ConfigError::new("WAYMARK_TLS_DIR", format!("{error}; each host needs <host>.pem and <host>.key"))
        })
    });
    let certificates = certificates.transpose()?;
    let geo = config.geoip_db.as_deref().map(|path| {
        GeoDatabase::open(path).map_err(|error| {
            ConfigError::new("WAYMARK_GEOIP_DB", format!("give a city database (.mmdb): {error}"))
        })
    });
    let geo = geo.transpose()?;
    let blobs = blobs(&config.files)?;
    let db = connect_patiently(&config.database_url, &shutdown).await?;
    if config.migrate {
        migrate(&db).await?;
    }
    let prepared = prepare(&db, "", &config.secret_key_file).await?;
    let urls = url_settings(&config, &addresses, certificates.as_ref());
    let name = || certificates.as_ref().and_then(Certificates::first_name);
    let public = urls.own_base(addresses.api, addresses.api_tls.map(|address| (address, name())));
    let warnings = [proxy_warning(config.behind_tls_proxy, &config.trusted_proxies), urls.warning()];
    for warning in warnings.into_iter().flatten() {
        tracing::warn!("{warning}");
    }
    let (app, writer_task) = compose(Parts {
        db,
        secrets: prepared.secrets,
        clock: Arc::new(SystemClock),
        ticks: system_ticks(),
        random: Arc::new(SystemRandom),
        blobs,
        geo_ip: geo.clone().map(|geo| Arc::new(geo) as Arc<dyn GeoIp>),
        trusted_proxies: config.trusted_proxies.clone(),
        egress: EgressClient::new(config.webhooks_loopback, Arc::new(SystemLookup::default()))
            .map_err(|error| Failure::failed("the client of webhooks", error))?,
        dns_server: config.dns_server,
        acme: config.acme.clone(),
        limits: config.limits.clone(),
        capacity: capacity::Capacity::new(config.capacity.clone()),
        jobs_kept: config.jobs_kept,
        printing: config.printing,
        edge_keys: EdgeKeys::default(),
        mail: config.mail.clone(),
        oidc: provider(config.oidc.clone())?,
        scans: config.scans.clone(),
        contact: config.contact,
        docs_url: format!("{public}/docs"),
        urls,
    })
    .await
    .map_err(|error| Failure::failed("the change log and the store of scans", error))?;
    let name = random_name().map_err(|error| Failure::failed("the name of this replica", error))?;
    let replica = Arc::new(Replica::new(&name));
    app.hub.join(replica.clone());
    let mut tasks = Tasks::start(&app, writer_task)?;
    tasks.spawn(replica.run(app.hub.clone(), tasks.stopping()));
    tasks.spawn(app.edge_keys.clone().follow(app.core.db.clone(), tasks.stopping()));
    let publisher = PublisherConfig {
        region: config.region.to_string(),
        owner: name,
        redis: config.redis.url.clone(),
        ca: config.redis.ca.clone(),
        shards: config.redis.shards,
    };
    let stats = PublisherStats::default();
    let publisher = Publisher::new(app.core.db.clone(), app.hub.clone(), publisher, stats.clone());
    tasks.spawn(publisher.run(tasks.stopping()));
    if let Some(geo) = geo {
        tasks.spawn(geo.follow(tasks.stopping()));
    }
    let servers = Servers::start(&app, &stats, sockets, certificates.as_ref())?;
    if let Some(certificates) = certificates {
        tasks.spawn(certificates.follow(tasks.stopping()));
    }
    Ok(Running { addresses, supervisor: tokio::spawn(servers.supervise(tasks, shutdown)) })
}

/// The provider of identities, which is not asked for anything yet.
///
/// # Errors
/// Its client cannot be set up.
pub fn provider(settings: Option<OidcSettings>) -> Result<Option<Arc<Provider>>, Failure> {
    let made =
        |settings| Provider::new(settings, Arc::new(SystemClock), Arc::new(SystemRandom)).map(Arc::new);
    let provider = settings.map(made).transpose();
    provider.map_err(|error| Failure::failed("the client of the provider of identities", error))
}

fn url_settings(config: &Config, addresses: &Addresses, certificates: Option<&Certificates>) -> UrlSettings {
    let is_certified = certificates
        .cloned()
        .map(|certificates| -> IsCertified { Arc::new(move |name: &str| certificates.holds(name)) });
    UrlSettings {
        public_url: config.public_url.clone(),
        behind_tls_proxy: config.behind_tls_proxy,
        listeners: std::iter::once(addresses.api).chain(addresses.api_tls).collect(),
        is_certified,
        development: false,
    }
}

/// Bound sockets, not yet served.
struct Sockets {
    api: TcpListener,
    api_tls: Option<TcpListener>,
    mqtt: Option<TcpListener>,
    mqtt_tls: Option<TcpListener>,
    internal: TcpListener,
    internal_tls: Option<TcpListener>,
    admin: TcpListener,
}

/// The listeners at work, each with its own stop.
struct Servers {
    internal: (JoinHandle<io::Result<()>>, CancellationToken),
    api: (JoinHandle<io::Result<()>>, CancellationToken),
    broker: (JoinHandle<io::Result<()>>, CancellationToken),
    admin: (JoinHandle<io::Result<()>>, CancellationToken),
}

impl Servers {
    fn start(
        app: &Arc<ApiState>,
        stats: &PublisherStats,
        sockets: Sockets,
        certificates: Option<&Certificates>,
    ) -> Result<Self, Failure> {
        let Sockets { api, api_tls, mqtt, mqtt_tls, internal, internal_tls, admin } = sockets;
        let listeners = |plain, tls: Option<TcpListener>, protocols: &[&[u8]]| {
            let tls = match tls.zip(certificates) {
                None => None,
                Some((listener, certificates)) => {
                    let config = certificates
                        .server_config(protocols)
                        .map_err(|error| ConfigError::new("WAYMARK_TLS_DIR", error.to_string()))?;
                    Some((listener, Arc::new(config)))
                }
            };
            Ok::<_, ConfigError>(ApiListeners { plain: vec![plain], tls })
        };
        let api = listeners(api, api_tls, &[b"h2", b"http/1.1"])?;
        let tls_of = |tls: Option<TcpListener>| match tls.zip(certificates) {
            None => Ok(None),
            Some((listener, certificates)) => certificates
                .server_config(&[])
                .map(|config| Some((listener, Arc::new(config))))
                .map_err(|error| ConfigError::new("WAYMARK_TLS_DIR", error.to_string())),
        };
        let broker = BrokerListeners { plain: mqtt, tls: tls_of(mqtt_tls)? };
        // The upgrade to the stream is of HTTP/1.1.
        let internal = listeners(internal, internal_tls, &[b"http/1.1"])?;
        let [stop_api, stop_internal, stop_admin, stop_broker] =
            std::array::from_fn(|_| CancellationToken::new());
        let shown = http::Admin::new(app.clone(), Some(stats), certificates);
        let answer = move |method: &::http::Method, path: &str| shown.answer(method, path);
        Ok(Self {
            internal: (
                tokio::spawn(internal::run(internal, app.clone(), stop_internal.clone())),
                stop_internal,
            ),
            api: (tokio::spawn(http::run(api, app.clone(), stop_api.clone())), stop_api),
            broker: (tokio::spawn(live::run(broker, app.broker.clone(), stop_broker.clone())), stop_broker),
            admin: (tokio::spawn(http::run_admin(admin, answer, stop_admin.clone())), stop_admin),
        })
    }

    /// Waits for the stop, or for a part that ends by itself; then stops the rest in order.
    ///
    /// Edges are sent to other replicas first, and open requests finished; then the writer stops, and the
    /// change stream and the database last.
    async fn supervise(mut self, mut tasks: Tasks, shutdown: CancellationToken) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut ended = None;
        tokio::select! {
            () = shutdown.cancelled() => {}
            end = &mut self.internal.0 => (ended, result) = (Some("internal"), unasked("the internal listener", end)),
            end = &mut self.api.0 => (ended, result) = (Some("api"), unasked("the API", end)),
            end = &mut self.broker.0 => (ended, result) = (Some("broker"), unasked("the broker", end)),
            end = &mut self.admin.0 => (ended, result) = (Some("admin"), unasked("the admin listener", end)),
            failure = tasks.failed() => result = Err(failure),
        }
        // Without systemd there is no receiver.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        tracing::info!("stopping: edges are sent away, requests are finished");
        self.internal.1.cancel();
        self.broker.1.cancel();
        self.api.1.cancel();
        if ended != Some("internal") {
            result = result.and(joined("the internal listener", self.internal.0.await));
        }
        if ended != Some("broker") {
            result = result.and(joined("the broker", self.broker.0.await));
        }
        if ended != Some("api") {
            result = result.and(joined("the API", self.api.0.await));
        }
        self.admin.1.cancel();
        if ended != Some("admin") {
            result = result.and(joined("the admin listener", self.admin.0.await));
        }
        result = result.and(tasks.stop().await);
        tracing::info!("stopped");
        result
    }
}

fn joined(part: &str, ended: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), Failure> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::failed(part, error)),
        Err(error) => Err(Failure::failed(part, error)),
    }
}

/// A part that ended without a request to stop.
fn unasked(part: &str, ended: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), Failure> {
    joined(part, ended).and_then(|()| Err(Failure::Failed(format!("{part} ended unasked"))))
}

fn bind_all(config: &Config) -> Result<(Sockets, Addresses), Failure> {
    let maybe = |key: &'static str, address: Option<SocketAddr>| {
        address.map(|address| bind(key, address)).transpose().map(Option::unzip)
    };
    let (api, api_at) = bind("WAYMARK_API_LISTEN", config.api_listen)?;
    let (api_tls, api_tls_at) = maybe("WAYMARK_API_TLS_LISTEN", config.api_tls_listen)?;
    let (mqtt, mqtt_at) = maybe("WAYMARK_MQTT_LISTEN", config.mqtt_listen)?;
    let (mqtt_tls, mqtt_tls_at) = maybe("WAYMARK_MQTT_TLS_LISTEN", config.mqtt_tls_listen)?;
    let (internal, internal_at) = bind("WAYMARK_INTERNAL_LISTEN", config.internal_listen)?;
    let (internal_tls, internal_tls_at) = maybe("WAYMARK_INTERNAL_TLS_LISTEN", config.internal_tls_listen)?;
    let (admin, admin_at) = bind("WAYMARK_ADMIN_LISTEN", config.admin_listen)?;
    Ok((
        Sockets { api, api_tls, mqtt, mqtt_tls, internal, internal_tls, admin },
        Addresses {
            api: api_at,
            api_tls: api_tls_at,
            mqtt: mqtt_at,
            mqtt_tls: mqtt_tls_at,
            internal: internal_at,
            internal_tls: internal_tls_at,
            admin: admin_at,
        },
    ))
}

/// Binds a port.
///
/// # Errors
/// It is in use, or the address is not of this machine; `key` is the setting that names it.
pub fn bind(key: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        Ok((listener, local))
    });
    bound.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{address} is in use: stop what listens there, or give another port")
            }
            _ => format!("cannot listen on {address}: {error}; give an address of this machine"),
        };
        ConfigError::new(key, reason).into()
    })
}

/// The store of the content of files.
///
/// # Errors
/// The folder or bucket cannot be used.
pub fn blobs(files: &FileStore) -> Result<Blobs, ConfigError> {
    let opened = match files {
        FileStore::Folder(folder) => Blobs::in_folder(folder, MAX_FILE_BYTES),
        FileStore::Bucket(url) => Blobs::in_bucket(url, MAX_FILE_BYTES),
    };
    opened.map_err(|error| ConfigError::new("WAYMARK_FILES_URL", format!("it cannot be used: {error}")))
}
