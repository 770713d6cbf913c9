//! The sockets of an edge: from the service manager, else bound here.
//!
//! systemd hands over sockets by `LISTEN_FDS`; `FileDescriptorName=` (`LISTEN_FDNAMES`) of each says what it is:
//! `edge`, `edge-tls` or `admin`. Sockets of other names are taken in this order. One that was handed over
//! takes the place of the setting; a plain public one must be on loopback like any other.

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

use super::{Config, ConfigError, Failure};
use crate::config::Listeners;

/// Names of the sockets, in order, with their settings.
const NAMES: [(&str, &str); 3] = [
    ("edge", "WAYMARK_EDGE_LISTEN"),
    ("edge-tls", "WAYMARK_EDGE_TLS_LISTEN"),
    ("admin", "WAYMARK_ADMIN_LISTEN"),
];

/// Takes or binds every socket.
pub(super) fn open(config: &Config) -> Result<Listeners, Failure> {
    let mut given = take()?;
    let settings = [config.edge_listen, config.edge_tls_listen, config.admin_listen];
    let mut listeners = Vec::new();
    for ((given, (_, key)), address) in given.iter_mut().zip(NAMES).zip(settings) {
        listeners.push(match (given.take(), address) {
            (Some(listener), _) => Some(listener),
            (None, Some(address)) => Some(bind(key, address)?),
            (None, None) => None,
        });
    }
    let [plain, tls, admin] = <[Option<TcpListener>; 3]>::try_from(listeners)
        .map_err(|_| Failure::Failed("the sockets were not opened".to_owned()))?;
    for (listener, (_, key)) in [(&plain, NAMES[0]), (&admin, NAMES[2])] {
        if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
            config.check_plain(key, address)?;
        }
    }
    if plain.is_none() && tls.is_none() {
        let reason = "there is no listener: give an address here or at WAYMARK_EDGE_TLS_LISTEN";
        return Err(ConfigError::new("WAYMARK_EDGE_LISTEN", reason).into());
    }
    if tls.is_some() && config.certificates.is_none() {
        let reason = "a TLS listener needs certificates: set WAYMARK_TLS_DIR";
        return Err(ConfigError::new("WAYMARK_EDGE_TLS_LISTEN", reason).into());
    }
    Ok(Listeners { plain: plain.into_iter().collect(), tls: tls.into_iter().collect(), admin })
}

fn take() -> Result<[Option<TcpListener>; 3], Failure> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut handed = ListenFd::from_env();
    let failed = |error: std::io::Error| Failure::Failed(format!("a socket that was handed over: {error}"));
    let (mut given, mut unnamed): ([Option<TcpListener>; 3], _) = ([None, None, None], Vec::new());
    let names: Vec<&str> = names.split(':').collect();
    for index in 0..handed.len() {
        let Some(listener) = handed.take_tcp_listener(index).map_err(failed)? else { continue };
        let place = NAMES.iter().position(|(name, _)| names.get(index) == Some(name));
        match place.and_then(|place| given.get_mut(place)) {
            Some(place) => *place = Some(listener),
            None => unnamed.push(listener),
        }
    }
    for (place, listener) in given.iter_mut().filter(|place| place.is_none()).zip(unnamed) {
        *place = Some(listener);
    }
    Ok(given)
}

fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, ConfigError> {
    TcpListener::bind(address).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                format!("{address} is in use: stop what listens there, or give another port")
            }
            _ => format!("cannot listen on {address}: {error}; give an address of this machine"),
        };
        ConfigError::new(key, reason)
    })
}
