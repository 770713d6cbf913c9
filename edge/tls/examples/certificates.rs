//! What certificates from control cost by their number: memory, CPU of a handshake on the side of the edge, look-ups by SNI.
//!
//! `cargo run --release -p edge_tls --example certificates`. Sizes take turns in each round; a figure is the median of the
//! rounds, with the least and the most. Keys are P-256, chains have two certificates, and no session is resumed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it prints figures, and a fault ends it")]

use std::{
    fs,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use edge_tls::TlsCerts;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, client::Resumption,
    crypto::ring,
};
use rustls_pki_types::{CertificateDer, ServerName};
use shared::wire::{
    certificates::DomainCertificate,
    stream::{Change, Event, Events},
};

const SIZES: [usize; 3] = [10, 1_000, 10_000];
const ROUNDS: usize = 7;
const HANDSHAKES: usize = 300;
const LOOKUPS: usize = 200_000;
/// From a name to the next: prime, so that all come before one comes again.
const STRIDE: usize = 7_919;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        let (der, pem) = (root.der().clone(), root.pem());
        Self { issuer: Issuer::new(params, key), root: der, pem }
    }

    fn issue(&self, host: &str) -> DomainCertificate {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let chain = format!("{}{}", params.signed_by(&key, &self.issuer).unwrap().pem(), self.pem);
        DomainCertificate {
            host: host.into(),
            chain: chain.into(),
            key: key.serialize_pem().into(),
            not_after: 0,
        }
    }

    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        config
    }
}

/// An edge with some names.
struct Names {
    certs: TlsCerts,
    server: Arc<ServerConfig>,
    names: Vec<String>,
    bytes: u64,
}

impl Names {
    fn new(count: usize, authority: &Authority) -> Self {
        let before = resident_bytes();
        let certs = TlsCerts::default().with_received(None);
        let names: Vec<String> = (0..count).map(|n| format!("brand-{n}.example")).collect();
        for (prev, name) in (0..).zip(&names) {
            let change = Change::Certificate(name.as_str().into(), Some(authority.issue(name).into()));
            let events = Events { prev, items: vec![Event { rev: prev + 1, change }], last: prev + 1 };
            assert!(certs.apply(&events).is_empty(), "{name} is refused");
        }
        let server = Arc::new(certs.server_config().unwrap());
        Self { certs, server, names, bytes: resident_bytes().saturating_sub(before) }
    }

    /// A name for each number, far from the one before.
    fn name(&self, n: usize) -> &str {
        self.names.get(n.wrapping_mul(STRIDE) % self.names.len()).unwrap()
    }

    fn handshake_us(&self, client: &Arc<ClientConfig>) -> f64 {
        let took: Duration = (0..HANDSHAKES).map(|n| handshake(&self.server, client, self.name(n))).sum();
        took.as_secs_f64() * 1e6 / HANDSHAKES as f64
    }

    fn lookup_ns(&self) -> f64 {
        let begun = Instant::now();
        for n in 0..LOOKUPS {
            assert!(black_box(self.certs.holds(black_box(self.name(n)))));
        }
        begun.elapsed().as_secs_f64() * 1e9 / LOOKUPS as f64
    }
}

/// What the side of the edge takes for a whole handshake.
fn handshake(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>, name: &str) -> Duration {
    let mut server = ServerConnection::new(server.clone()).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client.clone(), name).unwrap();
    let mut took = Duration::ZERO;
    while client.is_handshaking() || server.is_handshaking() {
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut asked).unwrap();
        }
        let begun = Instant::now();
        let mut rest = &asked[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
        }
        while server.wants_write() {
            server.write_tls(&mut answered).unwrap();
        }
        took += begun.elapsed();
        let mut rest = &answered[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    took
}

/// Memory of this process.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The median, with the least and the most.
fn shown(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let [least, median, most] =
        [0, figures.len() / 2, figures.len() - 1].map(|at| figures.get(at).copied().unwrap());
    format!("{median:.1} ({least:.1} to {most:.1})")
}

fn main() {
    let authority = Authority::new();
    let client = Arc::new(authority.client());
    let all: Vec<Names> = SIZES.iter().map(|count| Names::new(*count, &authority)).collect();
    let mut figures: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); all.len()];
    for _ in 0..ROUNDS {
        for (names, (handshakes, lookups)) in all.iter().zip(&mut figures) {
            handshakes.push(names.handshake_us(&client));
            lookups.push(names.lookup_ns());
        }
    }
    println!("| names | memory, KiB a name | handshake, µs | look-up by SNI, ns |\n|---|---|---|---|");
    for (names, (handshakes, lookups)) in all.iter().zip(figures) {
        let count = names.names.len();
        let each = names.bytes as f64 / 1_024.0 / count as f64;
        println!("| {count} | {each:.1} | {} | {} |", shown(handshakes), shown(lookups));
    }
}
