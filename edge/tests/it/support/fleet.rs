//! The fleet around an edge: a real Redis with the view, control's internal listener over TLS.

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use bytes::{Bytes, BytesMut};
use edge::{
    EdgeKey,
    backing::{Backing, BackingError, Changes, Network, NetworkConfig},
};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use shared::{
    redirect::RedirectKey,
    wire::{
        frame::{Decoder, Message},
        internal::{DIGITAL_LINK_PATH, LOOKUP_PATH, SCANS_PATH, STREAM_PATH, STREAM_UPGRADE},
        scan::{ScanAnswer, ScanBatch},
        spooled::{SPOOLED, read_all},
        stream::{Rev, ToControl, ToEdge},
        view::{self, Meta, Record, Setup},
    },
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Control, DEADLINE};

/// The password of the user who may only read.
const PASSWORD: &str = "re@d";

/// A Redis of the test's own; ended when dropped.
pub(crate) struct Redis {
    pub(crate) port: u16,
    child: Child,
    _folder: TempDir,
}

impl Redis {
    /// Starts an empty server with a user `edge` who may do nothing but `MGET`.
    pub(crate) async fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::start_on(port).await
    }

    pub(crate) async fn start_on(port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--dir", folder.path().to_str().unwrap()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let redis = Self { port, child, _folder: folder };
        let set_user = redis::cmd("ACL")
            .arg("SETUSER")
            .arg("edge")
            .arg(&["reset", "on", &format!(">{PASSWORD}"), "~*", "+mget"][..])
            .to_owned();
        let end = std::time::Instant::now() + DEADLINE;
        while redis.ask(&set_user).await.is_err() {
            assert!(std::time::Instant::now() < end, "Redis does not come up");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        redis
    }

    async fn ask(&self, command: &redis::Cmd) -> redis::RedisResult<()> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        command.query_async(&mut connection).await
    }

    /// Runs a command as the administrator.
    pub(crate) async fn run(&self, words: &[&str]) {
        let mut command = redis::Cmd::new();
        command.arg(words);
        self.ask(&command).await.unwrap();
    }

    /// The URL with the user who may only read.
    pub(crate) fn url(&self) -> String {
        format!("redis://edge:re%40d@127.0.0.1:{}", self.port)
    }

    /// Writes the state of control at a revision as the view.
    pub(crate) async fn publish(&self, control: &Control, rev: Rev, shards: u16) {
        let (epoch, records, domains, rules) = control.everything(rev);
        let mut command = redis::cmd("MSET");
        for (key, (rev, value)) in records {
            let shard = view::shard_of(&key, shards);
            command.arg(view::record_key(shard, &key));
            command.arg(serde_json::to_vec(&Record { rev, value }).unwrap());
        }
        for shard in 0..shards {
            let meta = Meta { epoch: epoch.clone(), term: 1, watermark: rev, complete: true, shards };
            command.arg(view::meta_key(shard)).arg(meta.to_string());
        }
        let setup = Setup { domains, rules, withheld: Some(control.withheld(rev)) };
        command.arg(view::setup_key()).arg(serde_json::to_vec(&setup).unwrap());
        self.run(&["FLUSHALL"]).await;
        self.ask(&command).await.unwrap();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Control's internal listener before the control in memory.
#[derive(Clone)]
pub(crate) struct Internal {
    pub(crate) address: SocketAddr,
    control: Control,
    keys: Arc<Mutex<Vec<String>>>,
    tls: tokio_rustls::TlsAcceptor,
}

/// Files of an edge in a fleet.
pub(crate) struct Files {
    _folder: TempDir,
    pub(crate) key: PathBuf,
    pub(crate) ca: PathBuf,
}

impl Internal {
    /// Listens on a free port, with a certificate of a CA of its own, and knows the key `KEY1`.
    pub(crate) async fn start(control: &Control) -> (Self, Files) {
        let folder = tempfile::tempdir().unwrap();
        let (key, ca) = (folder.path().join("edge.key"), folder.path().join("ca.pem"));
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&ca, certified.cert.pem()).unwrap();
        std::fs::write(&key, "KEY1\n").unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let secret =
            rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], secret)
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let internal = Self {
            address: listener.local_addr().unwrap(),
            control: control.clone(),
            keys: Arc::new(Mutex::new(vec!["KEY1".to_owned()])),
            tls: tokio_rustls::TlsAcceptor::from(Arc::new(config)),
        };
        tokio::spawn(internal.clone().accept(listener));
        (internal, Files { _folder: folder, key, ca })
    }

    /// Lets exactly these keys in, and ends streams as control does when a key is revoked.
    pub(crate) fn allow(&self, keys: &[&str]) {
        *self.keys.lock().unwrap() = keys.iter().map(|key| (*key).to_owned()).collect();
        self.control.break_streams();
    }

    async fn accept(self, listener: tokio::net::TcpListener) {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let internal = self.clone();
            tokio::spawn(async move {
                let Ok(tls) = internal.tls.clone().accept(tcp).await else { return };
                let service = service_fn(move |request| {
                    let internal = internal.clone();
                    async move { Ok::<_, Infallible>(internal.answer(request).await) }
                });
                // Ends as the edge likes.
                let _ =
                    http1::Builder::new().serve_connection(TokioIo::new(tls), service).with_upgrades().await;
            });
        }
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response<Full<Bytes>> {
        let key = request.headers()[header::AUTHORIZATION].to_str().unwrap().trim_start_matches("Bearer ");
        if !self.keys.lock().unwrap().iter().any(|known| known == key) {
            return status(StatusCode::UNAUTHORIZED);
        }
        match request.uri().path() {
            STREAM_PATH => {
                assert_eq!(request.headers()[header::UPGRADE], STREAM_UPGRADE);
                let upgrade = hyper::upgrade::on(&mut request);
                let control = self.control.clone();
                tokio::spawn(async move {
                    let mut io = TokioIo::new(upgrade.await.unwrap());
                    // Ends as a broken stream does.
                    let _ = follow(&control, &mut io).await;
                });
                let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
                response.headers_mut().insert(header::CONNECTION, "upgrade".parse().unwrap());
                response.headers_mut().insert(header::UPGRADE, STREAM_UPGRADE.parse().unwrap());
                response
            }
            path @ (LOOKUP_PATH | DIGITAL_LINK_PATH) => {
                let query = request.uri().query().unwrap().replace("%2E", ".");
                let (domain, short_id) = query.trim_start_matches("domain=").split_once("&shortId=").unwrap();
                let key = RedirectKey::new(domain, short_id);
                if path == DIGITAL_LINK_PATH {
                    return json(self.control.digital_link(&key).await);
                }
                json(self.control.lookup(&key).await)
            }
            SCANS_PATH => {
                let is_spooled = request.headers()[header::CONTENT_TYPE] == SPOOLED;
                let query = request.uri().query().unwrap_or_default().to_owned();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let takes_spooled = self.control.takes_spooled();
                if is_spooled && !takes_spooled {
                    // The version before finds no JSON.
                    return status(StatusCode::BAD_REQUEST);
                }
                let batch = if is_spooled {
                    let mut parts = query.split('&').map(|part| part.split_once('=').unwrap().1);
                    let mut next = || parts.next().unwrap();
                    let (edge, boot, first_seq) = (next(), next(), next());
                    ScanBatch {
                        edge: edge.replace("%2D", "-").into(),
                        boot: boot.parse().unwrap(),
                        first_seq: first_seq.parse().unwrap(),
                        records: read_all(&body).unwrap(),
                    }
                } else {
                    serde_json::from_slice(&body).unwrap()
                };
                let receipt = self.control.take_scans(&batch);
                if receipt.is_ok() {
                    self.control.note_form(is_spooled);
                }
                json(receipt.map(|receipt| ScanAnswer { receipt, takes_spooled }))
            }
            _ => status(StatusCode::NOT_FOUND),
        }
    }
}

async fn follow(
    control: &Control,
    io: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin),
) -> Result<(), BackingError> {
    let gone = || BackingError::Unreachable("the edge left".into());
    let mut decoder = Decoder::<ToControl>::default();
    let mut stream = None;
    loop {
        while let Some(message) = decoder.decode().unwrap() {
            match (message, &mut stream) {
                (ToControl::Hello(hello), None) => stream = Some(control.changes(hello).await?),
                (message, Some(stream)) => stream.send(message).await?,
                (message, None) => panic!("no hello: {message:?}"),
            }
        }
        let outgoing = async {
            match &mut stream {
                Some(stream) => stream.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = io.read_buf(&mut decoder.buffer) => {
                if read.map_err(|_| gone())? == 0 {
                    return Err(gone());
                }
            }
            message = outgoing => {
                let mut out = BytesMut::new();
                ToEdge::encode(&message?, &mut out).unwrap();
                io.write_all(&out).await.map_err(|_| gone())?;
                io.flush().await.map_err(|_| gone())?;
            }
        }
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn json<T: Serialize>(answer: Result<T, BackingError>) -> Response<Full<Bytes>> {
    match answer {
        Ok(answer) => Response::new(serde_json::to_vec(&answer).unwrap().into()),
        Err(_) => status(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// The backing of an edge before these servers.
pub(crate) fn network(urls: &[String], files: &Files, redis: &str, shards: u16) -> (Network, Arc<EdgeKey>) {
    let key = Arc::new(EdgeKey::open(Path::new(&files.key)).unwrap());
    let config = NetworkConfig {
        control_urls: urls.to_vec(),
        control_ca: Some(files.ca.clone()),
        key: key.clone(),
        redis: redis.parse().unwrap(),
        redis_ca: None,
        shards,
        lookups_per_second: 500.try_into().unwrap(),
    };
    (Network::new(&config).unwrap(), key)
}
