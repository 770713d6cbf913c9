//! The load generator's other protocols: HTTP/2 over connections that stay, and a new TLS connection each.
//!
//! hyper and rustls speak them, which takes more of the generator's core than [`crate::drive`] does: what a
//! server uses of its own core is the figure. Nothing is paced here.

use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Method, Request,
    body::Bytes,
    client::conn::http2,
    header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, LOCATION, USER_AGENT},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{
    answer::{Answer, parse},
    drive::{Outcome, PHONE, Plan, Script, Until},
    links::{Id, text},
};

/// Requests under way on one connection of HTTP/2.
const STREAMS: usize = 16;
/// After this an answer counts as missing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head and body of an answer.
const ANSWER_BYTES: usize = 16 << 10;

/// What several connections share on one thread.
struct Run<'a, S> {
    script: RefCell<(&'a mut S, Outcome)>,
    plan: &'a Plan<'a>,
    begun: Instant,
}

impl<'a, S: Script> Run<'a, S> {
    fn new(plan: &'a Plan<'a>, script: &'a mut S) -> Self {
        Self { script: RefCell::new((script, Outcome::default())), plan, begun: Instant::now() }
    }

    /// The next request, unless that was all.
    fn next(&self) -> Option<(Id, S::Ticket)> {
        let is_over = match self.plan.until {
            Until::After(time) => self.begun.elapsed() >= time,
            Until::Told(flag) => flag.load(std::sync::atomic::Ordering::Relaxed),
            Until::Done => false,
        };
        if is_over { None } else { self.script.borrow_mut().0.next() }
    }

    /// Takes an answer.
    fn take(&self, ticket: S::Ticket, since: Instant, answer: &Answer<'_>, bytes: usize) {
        let (script, outcome) = &mut *self.script.borrow_mut();
        outcome.answers += 1;
        outcome.redirects += u64::from(matches!(answer.status, 302 | 307));
        outcome.bytes += bytes as u64;
        outcome.hist.add(since.elapsed());
        if let Err(what) = script.check(ticket, answer) {
            outcome.wrong(what);
        }
    }

    fn fail(&self, error: &anyhow::Error) {
        self.script.borrow_mut().1.wrong(format!("{error:#}"));
    }

    fn end(self) -> Outcome {
        let (_, mut outcome) = self.script.into_inner();
        outcome.took = self.begun.elapsed();
        outcome
    }
}

/// Runs a script over HTTP/2 with prior knowledge: a sixteenth of the plan's connections, sixteen requests on each.
///
/// # Errors
/// No connection could be made; all else is counted in the outcome.
pub(crate) fn drive_h2<S: Script>(plan: &Plan<'_>, script: &mut S) -> Result<Outcome> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut senders = Vec::new();
        for _ in 0..plan.connections.div_ceil(STREAMS) {
            let stream = TcpStream::connect(plan.address).await.context("cannot connect")?;
            stream.set_nodelay(true)?;
            let io = TokioIo::new(stream);
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            // Ends with its last sender.
            tokio::spawn(connection);
            senders.push(sender);
        }
        let run = Run::new(plan, script);
        let lanes = (0..plan.connections).map(|lane| {
            let (sender, run) = (senders[lane % senders.len()].clone(), &run);
            async move {
                while let Some((id, ticket)) = run.next() {
                    let begun = Instant::now();
                    let asked = ask_h2(&sender, run.plan, &id);
                    match timeout(ANSWER_TIMEOUT, asked).await.context("no answer came").flatten() {
                        Ok((status, location, bytes)) => {
                            let answer = Answer { status, location: location.as_deref() };
                            run.take(ticket, begun, &answer, bytes);
                        }
                        Err(error) => return run.fail(&error),
                    }
                }
            }
        });
        join_all(lanes).await;
        Ok(run.end())
    })
}

type Sender = http2::SendRequest<Empty<Bytes>>;

/// Status, `Location` and bytes of the body of one answer.
async fn ask_h2(sender: &Sender, plan: &Plan<'_>, id: &Id) -> Result<(u16, Option<Vec<u8>>, usize)> {
    let mut request = Request::builder()
        .method(if plan.head { Method::HEAD } else { Method::GET })
        .uri(format!("http://{}/{}", plan.host(), text(id)));
    for (name, value) in phone() {
        request = request.header(name, value);
    }
    let answer = sender.clone().send_request(request.body(Empty::new())?).await?;
    let location = answer.headers().get(LOCATION).map(|location| location.as_bytes().to_vec());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, location, body.len()))
}

/// The same headers as over HTTP/1.1.
fn phone() -> impl Iterator<Item = (hyper::header::HeaderName, &'static str)> {
    PHONE.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let name = [USER_AGENT, ACCEPT, ACCEPT_LANGUAGE, ACCEPT_ENCODING]
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(name))?;
        Some((name, value))
    })
}

/// Runs a script over TLS: a new connection with a full handshake for each request.
///
/// A latency counts from the start of the connection to the end of the answer.
///
/// # Errors
/// The plan's host is no name; all else is counted in the outcome.
pub(crate) fn drive_tls<S: Script>(
    plan: &Plan<'_>,
    client: &Arc<ClientConfig>,
    script: &mut S,
) -> Result<Outcome> {
    let (name, connector) = (ServerName::try_from(plan.host())?, TlsConnector::from(client.clone()));
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let run = Run::new(plan, script);
        let lanes = (0..plan.connections).map(|_| {
            let (run, name, connector) = (&run, &name, &connector);
            async move {
                let mut bytes = Vec::with_capacity(ANSWER_BYTES);
                while let Some((id, ticket)) = run.next() {
                    let begun = Instant::now();
                    let asked = ask_tls(connector, name, run.plan, &id, &mut bytes);
                    let asked = timeout(ANSWER_TIMEOUT, asked).await.context("no answer came").flatten();
                    let head = asked.and_then(|()| parse(&bytes).map_err(anyhow::Error::msg));
                    match head.and_then(|head| head.context("half an answer")) {
                        Ok(head) => run.take(ticket, begun, &head.answer, bytes.len()),
                        Err(error) => return run.fail(&error),
                    }
                }
            }
        });
        join_all(lanes).await;
        Ok(run.end())
    })
}

async fn ask_tls(
    connector: &TlsConnector,
    name: &ServerName<'static>,
    plan: &Plan<'_>,
    id: &Id,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let stream = TcpStream::connect(plan.address).await?;
    stream.set_nodelay(true)?;
    let mut stream = connector.connect(name.clone(), stream).await.context("handshake")?;
    let request = format!("GET /{} HTTP/1.1\r\nHost: {}\r\n{PHONE}\r\n", text(id), plan.host());
    stream.write_all(request.as_bytes()).await?;
    // What the socket did not take at once, as when the task has had its share of the runtime, waits for this.
    stream.flush().await?;
    bytes.clear();
    while bytes.len() < ANSWER_BYTES {
        anyhow::ensure!(stream.read_buf(bytes).await? > 0, "the connection was closed");
        if let Some(head) = parse(bytes).map_err(anyhow::Error::msg)?
            && bytes.len() >= head.length + head.content_length
        {
            // The server may be quicker.
            let _ = stream.shutdown().await;
            return Ok(());
        }
    }
    anyhow::bail!("too long an answer")
}
