//! Clients: hyper over plain and TLS sockets, and bytes as they are.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use edge::{Connector, backing::Backing};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::{
    client::conn::{http1, http2},
    rt::{Read, Write},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::DEADLINE;

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// A header's text; empty when it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    /// Asserts a problem body with this code, and returns its faults.
    pub(crate) fn problem(&self, code: u32) -> Vec<String> {
        let json = self.json();
        assert_eq!(
            (json["status"].as_u64(), json["code"].as_u64()),
            (Some(self.status.into()), Some(code.into()))
        );
        assert_eq!(json["moreInfo"], format!("https://docs.test/docs#error-{code}"));
        let errors = json["errors"].as_array().unwrap();
        assert!(!errors.is_empty());
        errors.iter().map(|error| error.as_str().unwrap().to_owned()).collect()
    }
}

/// One request on a connection of its own, HTTP/1.1.
pub(crate) async fn request(
    at: SocketAddr,
    method: &str,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    exchange(at, build(method, path, &[&[("host", host)], headers].concat(), "")).await
}

/// Any request on a connection of its own, HTTP/1.1.
pub(crate) async fn exchange(at: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let io = TokioIo::new(TcpStream::connect(at).await.unwrap());
    send_h1(io, request).await
}

/// A request with a body.
pub(crate) fn build(method: &str, uri: &str, headers: &[(&str, &str)], body: &str) -> Request<Full<Bytes>> {
    let mut builder = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::from(body.to_owned())).unwrap()
}

async fn send_h1(io: impl Read + Write + Unpin + Send + 'static, request: Request<Full<Bytes>>) -> Answer {
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    collect(sender.send_request(request)).await
}

async fn collect(
    response: impl Future<Output = hyper::Result<http::Response<hyper::body::Incoming>>>,
) -> Answer {
    let response = tokio::time::timeout(DEADLINE, response).await.expect("an answer comes").unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// Requests on one HTTP/2 connection with prior knowledge.
pub(crate) async fn h2_prior_knowledge(at: SocketAddr, requests: Vec<Request<Full<Bytes>>>) -> Vec<Answer> {
    let io = TokioIo::new(TcpStream::connect(at).await.unwrap());
    send_h2(io, requests).await
}

async fn send_h2(
    io: impl Read + Write + Unpin + Send + 'static,
    requests: Vec<Request<Full<Bytes>>>,
) -> Vec<Answer> {
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for request in requests {
        answers.push(collect(sender.send_request(request)).await);
    }
    answers
}

/// A `GET` over TLS; returns the certificate that was shown, and the answer. Speaks what ALPN chose.
pub(crate) async fn over_tls(
    at: SocketAddr,
    sni: &str,
    alpn: &str,
    root: &CertificateDer<'static>,
    path: &str,
) -> Result<(CertificateDer<'static>, Answer), std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let stream = TcpStream::connect(at).await?;
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
    let io = TokioIo::new(stream);
    let answer = if alpn == "h2" {
        let request = build("GET", &format!("https://{sni}{path}"), &[], "");
        send_h2(io, vec![request]).await.remove(0)
    } else {
        send_h1(io, build("GET", path, &[("host", sni)], "")).await
    };
    Ok((shown, answer))
}

/// Sends bytes and reads until the edge closes.
pub(crate) async fn raw(at: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A reset after the answer is an end as well.
    let _ = tokio::time::timeout(DEADLINE, read).await.expect("the edge closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a request by a connection in memory, and leaves once the answer has begun: an image that another thread drew for it is
/// at hand from then on.
pub(crate) async fn answered<B: Backing>(connector: &Connector<B>, peer: SocketAddr, request: &[u8]) {
    let (mut near, far) = tokio::io::duplex(64 << 10);
    let ask = async move {
        near.write_all(request).await.unwrap();
        tokio::time::timeout(DEADLINE, near.read_u8()).await.unwrap().unwrap();
    };
    tokio::join!(connector.serve(far, peer), ask);
}
