//! The sockets of an edge: inherited from the service manager, else bound here.
//!
//! systemd passes sockets by `LISTEN_FDS`. The `FileDescriptorName=` (`LISTEN_FDNAMES`) of each says what it is:
//! `edge`, `edge-tls` or `admin`; sockets with other names are assigned in this order. An inherited socket overrides
//! the setting. A plain public one must be on loopback like any other. Each worker has its own socket (`SO_REUSEPORT`),
//! except where one was inherited: that one is shared.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use listenfd::ListenFd;
use platform::settings::ConfigError;
use tokio::net::TcpSocket;

use super::{Config, Failure};
use crate::config::Listeners;

/// Names of the sockets, in order, with their settings.
const NAMES: [(&str, &str); 3] = [
    ("edge", "WAYMARK_EDGE_LISTEN"),
    ("edge-tls", "WAYMARK_EDGE_TLS_LISTEN"),
    ("admin", "WAYMARK_ADMIN_LISTEN"),
];

/// Connections that wait in the kernel for each socket; the system's own limit is below or at that.
const BACKLOG: u32 = 4_096;

/// Takes or binds every socket; needs a runtime.
pub(super) fn open(config: &Config) -> Result<Listeners, Failure> {
    let mut given = take()?;
    let settings = [config.edge_listen, config.edge_tls_listen, config.admin_listen];
    // The admin listener is served by one.
    let counts = [config.edge.workers, config.edge.workers, 1];
    let mut listeners = Vec::new();
    for (((given, (_, key)), address), count) in given.iter_mut().zip(NAMES).zip(settings).zip(counts) {
        listeners.push(match (given.take(), address) {
            (Some(listener), _) => vec![listener],
            (None, Some(address)) => bind(key, address, count)?,
            (None, None) => Vec::new(),
        });
    }
    let [plain, tls, admin] = <[Vec<TcpListener>; 3]>::try_from(listeners)
        .map_err(|_| Failure::Failed("the sockets were not opened".to_owned()))?;
    for (listeners, (_, key)) in [(&plain, NAMES[0]), (&admin, NAMES[2])] {
        if let Some(address) = listeners.first().and_then(|listener| listener.local_addr().ok()) {
            config.check_plain(key, address)?;
        }
    }
    if plain.is_empty() && tls.is_empty() {
        let reason = "there is no listener: give an address here or at WAYMARK_EDGE_TLS_LISTEN";
        return Err(ConfigError::new("WAYMARK_EDGE_LISTEN", reason).into());
    }
    config.check_certificates(!tls.is_empty())?;
    Ok(Listeners { plain, tls, admin: admin.into_iter().next() })
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

/// Binds one socket, or several of the same address that the kernel spreads connections over.
fn bind(key: &'static str, address: SocketAddr, count: usize) -> Result<Vec<TcpListener>, ConfigError> {
    let refused = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{address} is in use: stop what listens there, or give another port")
            }
            _ => format!("cannot listen on {address}: {error}; give an address of this machine"),
        };
        ConfigError::new(key, reason)
    };
    // Bind exclusively first: with `SO_REUSEPORT` the port could be shared unnoticed with another process of this
    // user.
    let alone = TcpListener::bind(address).map_err(refused)?;
    if count == 1 {
        return Ok(vec![alone]);
    }
    let address = alone.local_addr().map_err(refused)?;
    drop(alone);
    (0..count).map(|_| share(address).map_err(refused)).collect()
}

fn share(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As the standard library does it for one socket.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn workers_share_a_port_that_nobody_else_can_take() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listeners = bind("K", any, 3).unwrap();
        let address = listeners[0].local_addr().unwrap();
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
        for count in [1, 3] {
            let refused = bind("K", address, count).unwrap_err();
            assert!(refused.reason.contains("is in use"), "{refused}");
        }
        drop(listeners);
        assert_eq!(bind("K", address, 1).unwrap().len(), 1);
    }
}
