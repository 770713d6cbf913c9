//! One thread with its own runtime per core: a request stays on the core where it was accepted.
//!
//! Each worker accepts from sockets of its own (`SO_REUSEPORT`: the kernel distributes connections), or from one shared
//! socket where there is only one, as from a service manager.

use std::{collections::BTreeMap, io, net::TcpListener, sync::Arc, thread};

use tokio::{runtime::Builder, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::{EdgeError, backing::Backing, server::Server};

/// A bound socket, and the TLS acceptor of its connections.
pub(crate) type Socket = (TcpListener, Option<TlsAcceptor>);

/// Serves `sockets` on `count` threads until the server's shutdown, and until all requests are answered.
///
/// # Errors
/// A socket cannot be shared, or a thread not be started; nothing was served then.
pub(crate) async fn serve<B: Backing>(
    server: &Arc<Server<B>>,
    sockets: Vec<Socket>,
    count: usize,
) -> Result<(), EdgeError> {
    let mut threads = Vec::new();
    // All runtimes first: a failure must not leave half of the workers serving.
    let runtimes: Vec<_> = (0..count)
        .map(|_| Builder::new_current_thread().enable_all().build())
        .collect::<io::Result<_>>()
        .map_err(EdgeError::Listener)?;
    for (share, runtime) in spread(sockets, count).map_err(EdgeError::Listener)?.into_iter().zip(runtimes) {
        let server = server.clone();
        let name = format!("edge-{}", threads.len());
        let work = move || runtime.block_on(work(server, share));
        threads.push(thread::Builder::new().name(name).spawn(work).map_err(EdgeError::Listener)?);
    }
    let joined =
        tokio::task::spawn_blocking(move || threads.into_iter().try_for_each(thread::JoinHandle::join));
    if !matches!(joined.await, Ok(Ok(()))) {
        tracing::error!("a worker panicked");
    }
    Ok(())
}

async fn work<B: Backing>(server: Arc<Server<B>>, share: Vec<Socket>) {
    let mut accepting = JoinSet::new();
    for (listener, tls) in share {
        let adopted =
            listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
        match adopted {
            Ok(listener) => drop(accepting.spawn(server.clone().accept(listener, tls))),
            Err(error) => tracing::error!(%error, "a worker cannot use its socket"),
        }
    }
    while accepting.join_next().await.is_some() {}
    // Connections of this runtime end with it: it stays until there are none anywhere.
    server.drained().await;
}

/// The sockets of each worker: one per address if there are enough, else shared ones.
fn spread(sockets: Vec<Socket>, count: usize) -> io::Result<Vec<Vec<Socket>>> {
    let mut by_address = BTreeMap::<_, Vec<Socket>>::new();
    for socket in sockets {
        by_address.entry(socket.0.local_addr()?).or_default().push(socket);
    }
    let mut shares: Vec<Vec<Socket>> = (0..count).map(|_| Vec::new()).collect();
    for group in by_address.into_values() {
        let length = group.len();
        // Clones for the workers that would have none.
        for (share, worker) in shares.iter_mut().zip(0..).skip(length) {
            let (listener, tls) = &group[worker % length];
            share.push((listener.try_clone()?, tls.clone()));
        }
        for (worker, socket) in group.into_iter().enumerate() {
            shares[worker % count].push(socket);
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(sockets: Vec<Socket>, count: usize) -> Vec<usize> {
        spread(sockets, count).unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn every_worker_has_a_socket_and_no_socket_is_forgotten() {
        let bind = || (TcpListener::bind("127.0.0.1:0").unwrap(), None);
        assert_eq!(lengths(vec![bind()], 3), [1, 1, 1]);
        assert_eq!(lengths(vec![bind(), bind()], 2), [2, 2], "two addresses");
        let one = bind();
        let same: Vec<Socket> = (0..3).map(|_| (one.0.try_clone().unwrap(), None)).collect();
        assert_eq!(lengths(same, 2), [2, 1], "more sockets of one address than workers");
    }
}
