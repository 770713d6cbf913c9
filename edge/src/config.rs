//! Configuration of an edge: name, folders, limits, listeners.

use std::{net::TcpListener, path::PathBuf, sync::Arc, time::Duration};

use shared::{
    client_address::TrustedProxies,
    contact::Contact,
    geo::{GeoIp, NoGeoIp},
};

use crate::EdgeKey;

/// Settings of one edge; only the first four have no default.
#[derive(Debug, Clone)]
pub struct EdgeConfig {
    /// Name of the edge, unique in the fleet and stable over restarts: part of every scan's identity.
    pub edge_id: Arc<str>,
    /// Folder of the scan spool and the boot number; created if it is missing.
    pub data_dir: PathBuf,
    /// Where management requests go: the APIs of control's replicas, `https://host:port`, or `http` in one
    /// process; without a path.
    pub api_urls: Vec<String>,
    /// The CA of their certificates, as a PEM file; default the roots of the system.
    pub api_ca: Option<PathBuf>,
    /// The docs page that `moreInfo` of an error points to, without a fragment.
    pub docs_url: String,
    /// Region of the edge, for people and metrics; default `local`.
    pub region: Arc<str>,
    /// Bytes that cached redirections may take; default 1 GiB, about a million links.
    ///
    /// Taken only as links are asked for; what does not fit is read again from the backing.
    pub cache_bytes: u64,
    /// Bytes that rendered codes may take; default 64 MiB, about 50,000 images.
    pub image_cache_bytes: u64,
    /// What shows control that a request comes through an edge; default nothing.
    pub control_token: Option<Arc<str>>,
    /// The key of the edge, which shows the same in a fleet; default none.
    pub key: Option<Arc<EdgeKey>>,
    /// Proxies before the edge that may name the client, for scans and limits; default none.
    ///
    /// Their own connections are bounded by the descriptors alone.
    pub trusted_proxies: TrustedProxies,
    /// A TLS proxy stands before every listener, so that clients speak https; default not.
    pub behind_tls_proxy: bool,
    /// Where people report abuse.
    pub contact: Option<Contact>,
    /// The answers over TLS bind browsers to https (`Strict-Transport-Security`); default so, but not with
    /// development certificates, which would bind `localhost`.
    pub strict_transport: bool,
    /// Geography of addresses; default none.
    pub geo: Arc<dyn GeoIp>,
    /// Saves the cache to the data folder, so that a start needs no peer. Off by default, because a single process
    /// contains its control.
    pub disk: Option<DiskLimits>,
    /// Plain redirects over HTTP/1.1 are answered before hyper sees them; default so. The answers are the same.
    pub fast_redirects: bool,
    /// Every link of every domain is held, up to 90 bytes each, beside those that are asked for; default not.
    ///
    /// Then neither a known nor an unknown id needs the backing, once all links were read from it.
    pub is_replica: bool,
    /// Certificates of short domains come from control, beside those that the edge is given; default not.
    pub takes_certificates: bool,
    /// Threads that serve connections, each with a runtime of its own; default 0, which serves them on the
    /// runtime of the caller.
    pub workers: usize,
    /// Limits of the listeners and of the scan spool.
    pub limits: Limits,
}

/// How what an edge holds is written to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLimits {
    /// Interval of saving: 60 s. A start without control serves the state of the last one.
    pub interval: Duration,
    /// Most bytes of the file: 512 MiB, about 1.5 million links; further entries are left out.
    pub bytes: u64,
    /// Bytes written a second: 16 MiB, a tenth of a slow disk; at the stop as fast as it goes.
    pub bytes_per_second: u64,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self { interval: Duration::from_secs(60), bytes: 512 << 20, bytes_per_second: 16 << 20 }
    }
}

impl EdgeConfig {
    /// Settings with the documented defaults for everything else.
    #[must_use]
    pub fn new(edge_id: &str, data_dir: PathBuf, api_url: &str, docs_url: &str) -> Self {
        Self {
            edge_id: edge_id.into(),
            data_dir,
            api_urls: vec![api_url.to_owned()],
            api_ca: None,
            docs_url: docs_url.to_owned(),
            region: "local".into(),
            cache_bytes: 1 << 30,
            image_cache_bytes: 64 << 20,
            control_token: None,
            key: None,
            trusted_proxies: TrustedProxies::default(),
            behind_tls_proxy: false,
            contact: None,
            strict_transport: true,
            geo: Arc::new(NoGeoIp),
            disk: None,
            fast_redirects: true,
            is_replica: false,
            takes_certificates: false,
            workers: 0,
            limits: Limits::default(),
        }
    }
}

/// Limits on what a client can make an edge do.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Request line and headers together: 16 KiB; browsers send under 2 KiB, and cookies need the rest.
    pub header_bytes: usize,
    /// Path and query: 2 KiB, as much as a target may have.
    pub uri_bytes: usize,
    /// Header lines of a request: 64.
    pub headers: usize,
    /// Streams of one HTTP/2 connection: 100, what RFC 9113 gives as the least useful number.
    pub h2_streams: u32,
    /// Connections in all; `None` takes the descriptor limit less a reserve of 512 for files and control.
    pub connections: Option<usize>,
    /// Connections of one client address (IPv6: one /64): 200, a large office behind one address.
    ///
    /// Loopback is exempt: local proxies and load tests come from there.
    pub connections_per_address: u32,
    /// From accept to the end of the first request's headers: 5 s, two lost packets on a phone.
    pub header_timeout: Duration,
    /// A TLS handshake: 5 s.
    pub handshake_timeout: Duration,
    /// Least time a connection may stay without a request: 60 s; it ends at most 30 s later.
    ///
    /// A connection whose requests make no progress for twice this time is closed: its client does not read.
    pub idle_timeout: Duration,
    /// How long requests under way may take when the edge stops: 30 s.
    pub drain_timeout: Duration,
    /// Body of a management request: 2 MiB, twice control's own limit so that control words the refusal.
    pub proxy_body_bytes: usize,
    /// How long control may take to answer a management request: 30 s.
    pub proxy_timeout: Duration,
    /// Misses a second for one client address (IPv6: one /64): 50, bursts of four times as many.
    ///
    /// Programs of this machine are exempt from both limits on misses, unless they come through a proxy.
    pub misses_per_address: u32,
    /// Misses a second over all clients: 5,000, bursts of twice as many; a botnet shares its guesses.
    pub misses_per_second: u32,
    /// Images waiting for the renderers: 256, at 0.1 ms each 26 ms of work for one core.
    pub render_queue: usize,
    /// Bytes of scans on disk before new ones are dropped and counted: 2 GiB, about 9 million.
    pub spool_bytes: u64,
    /// Bytes of one spool file: 64 MiB.
    pub segment_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 16 << 10,
            uri_bytes: shared::forwarding::MAX_URI,
            headers: 64,
            h2_streams: 100,
            connections: None,
            connections_per_address: 200,
            header_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
            proxy_body_bytes: 2 << 20,
            proxy_timeout: Duration::from_secs(30),
            misses_per_address: 50,
            misses_per_second: 5_000,
            render_queue: 256,
            spool_bytes: 2 << 30,
            segment_bytes: 64 << 20,
        }
    }
}

/// Bound sockets that the edge serves; the composition binds them, so that tests can take port 0.
#[derive(Debug, Default)]
pub struct Listeners {
    /// HTTP/1.1, and HTTP/2 with prior knowledge, without TLS; several of one address are spread over workers.
    pub plain: Vec<TcpListener>,
    /// HTTP/1.1 and HTTP/2 over TLS, chosen by ALPN.
    pub tls: Vec<TcpListener>,
    /// `/live`, `/ready` and `/metrics`.
    pub admin: Option<TcpListener>,
}
