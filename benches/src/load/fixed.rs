//! hyper and nothing else: one thread, one fixed answer. What ours costs above it is ours.

use std::{
    convert::Infallible,
    io::ErrorKind,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Result;
use http_body_util::Empty;
use hyper::{
    Response,
    body::Bytes,
    header::{HeaderValue, LOCATION},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{
    certificate::Certificate,
    peers::{HYPER, Other, Place, Ports},
};
use crate::{links::text, scripts::Answers, waymark::free_addresses};

/// How long an address may stay taken.
const PATIENCE: Duration = Duration::from_secs(20);

/// What this program is told when it is to be that server; not for people.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FixedArgs {
    /// Where HTTP/1.1, HTTP/2 and TLS are spoken
    #[arg(long, hide = true, value_delimiter = ',')]
    pub(crate) serve_fixed: Vec<SocketAddr>,
    /// Where everybody is led
    #[arg(long, hide = true, default_value = "")]
    target: String,
    /// The certificate
    #[arg(long, hide = true, default_value = "")]
    chain: String,
    /// Its key
    #[arg(long, hide = true, default_value = "")]
    key: String,
}

/// This program in its other role; nothing is started.
pub(crate) fn prepare(place: &Place<'_>) -> Result<Other> {
    let [plain, h2, tls] = free_addresses()?;
    let arguments = [
        "load".to_owned(),
        format!("--serve-fixed={plain},{h2},{tls}"),
        format!("--target={}", text(&place.links.target(0))),
        format!("--chain={}", place.certificate.chain().display()),
        format!("--key={}", place.certificate.key().display()),
    ];
    Ok(Other {
        name: HYPER,
        ports: Ports { plain, h2, tls: Some(tls) },
        answers: Answers::Fixed(307),
        program: std::env::current_exe()?,
        arguments: arguments.to_vec(),
        log: place.folder.join("hyper.log"),
        has_worker: false,
    })
}

/// Serves until the process is ended.
///
/// # Errors
/// A socket or the certificate cannot be used.
pub(crate) fn serve(args: &FixedArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let location = HeaderValue::from_str(&args.target)?;
    let tls = TlsAcceptor::from(Certificate::server(args.chain.as_ref(), args.key.as_ref())?);
    runtime.block_on(async {
        let mut listeners = Vec::new();
        for address in &args.serve_fixed {
            listeners.push(bind(*address).await?);
        }
        let [plain, h2, secure] = <[TcpListener; 3]>::try_from(listeners)
            .map_err(|_| anyhow::anyhow!("three addresses are needed"))?;
        loop {
            let (accepted, how) = tokio::select! {
                accepted = plain.accept() => (accepted, How::Http1),
                accepted = h2.accept() => (accepted, How::Http2),
                accepted = secure.accept() => (accepted, How::Tls(tls.clone())),
            };
            let (stream, _) = accepted?;
            stream.set_nodelay(true)?;
            tokio::spawn(connection(stream, how, location.clone()));
        }
    })
}

/// Listens there. The address was free a moment ago, but an outgoing connection may hold its port for some time.
async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            result => return result,
        }
    }
}

enum How {
    Http1,
    Http2,
    Tls(TlsAcceptor),
}

async fn connection(stream: TcpStream, how: How, location: HeaderValue) {
    let answer = service_fn(move |_| {
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = hyper::StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().insert(LOCATION, location.clone());
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // Ends as the client likes.
    match how {
        How::Http1 => {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        }
        How::Http2 => {
            let serving = http2::Builder::new(TokioExecutor::new());
            let _ = serving.serve_connection(TokioIo::new(stream), answer).await;
        }
        How::Tls(acceptor) => {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        }
    }
}
