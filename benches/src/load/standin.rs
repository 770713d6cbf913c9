//! What stands in for control beside edges that are measured: its protocol, and nothing behind it.
//!
//! The real one keeps scans in a database, which would share the two cores with the load generator and the
//! server. This one tells the domains, gives pages of links, sends changes, counts the acknowledgements, and
//! takes scans without keeping them: what an edge does for all of that is measured, what control does is not.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use shared::{
    short_id::GENERATED_ALPHABET,
    short_url::{Scheme, ShortDomain},
    wire::{
        frame::{Decoder, encode},
        internal::{LINKS_PATH, LOOKUP_PATH, SCANS_PATH, STREAM_PATH, STREAM_UPGRADE},
        links::{LinksPage, MAX_LINKS},
        scan::{ScanAnswer, ScanBatch, ScanReceipt},
        spooled::{SPOOLED, read_all, split_frame},
        stream::{
            Change, Epoch, Event, Events, Fill, HEARTBEAT_MS, Hello, Rev, Start, ToControl, ToEdge, Welcome,
        },
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};

use crate::links::{HOST, Links};

/// The revision of every link at the start.
pub(crate) const BASE: Rev = 1;
/// Runs of events that wait for an edge; one that falls behind further is an error.
const WAITING: usize = 8_192;

/// The one short domain; its account has no rules, but may have some, as every tenant.
pub(crate) fn domains() -> Result<Vec<ShortDomain>> {
    let account = Some("U0000000000000000000000a".parse().context("an account")?);
    Ok(vec![ShortDomain { account, ..ShortDomain::new(Scheme::Https, HOST)? }])
}

/// The stand-in; ends when dropped.
#[derive(Debug)]
pub(crate) struct StandIn {
    /// Where edges reach it.
    pub(crate) address: SocketAddr,
    control: Arc<Control>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Control {
    links: Links,
    epoch: Epoch,
    domains: Vec<ShortDomain>,
    state: Mutex<State>,
    acked: Mutex<HashMap<Arc<str>, Rev>>,
    acks: Condvar,
    /// Where the scans of an edge and boot stand.
    scans: Mutex<HashMap<(Arc<str>, u64), u64>>,
    /// Scans of each link, if they are counted: a record that is sent again counts once, as with control.
    counts: Option<Mutex<Vec<u32>>>,
}

#[derive(Debug)]
struct State {
    head: Rev,
    streams: Vec<mpsc::Sender<Arc<Events>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StandIn {
    /// Listens on a free port.
    pub(crate) fn start(links: &Links) -> Result<Self> {
        Self::new(links, None)
    }

    /// Counts the scans of each link, too.
    pub(crate) fn keeping(links: &Links) -> Result<Self> {
        Self::new(links, Some(Mutex::new(vec![0; links.count()])))
    }

    fn new(links: &Links, counts: Option<Mutex<Vec<u32>>>) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control {
            links: *links,
            epoch: format!("measured-{}", links.count()).into(),
            domains: domains()?,
            state: Mutex::new(State { head: BASE, streams: Vec::new() }),
            acked: Mutex::default(),
            acks: Condvar::new(),
            scans: Mutex::default(),
            counts,
        });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = control.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, served) => {}
                    // Dropped or told: both end it.
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, control, stop: Some(stop), thread: Some(thread) })
    }

    /// The history.
    pub(crate) fn epoch(&self) -> &Epoch {
        &self.control.epoch
    }

    /// Commits changes as one run; gives its last revision.
    ///
    /// # Errors
    /// An edge does not keep up.
    pub(crate) fn commit(&self, changes: impl IntoIterator<Item = Change>) -> Result<Rev> {
        let mut state = lock(&self.control.state);
        let prev = state.head;
        let items: Vec<Event> =
            (prev + 1..).zip(changes).map(|(rev, change)| Event { rev, change }).collect();
        let last = prev + items.len() as Rev;
        let events = Arc::new(Events { prev, items, last });
        state.head = last;
        state.streams.retain(|stream| !stream.is_closed());
        let is_full = |stream: &mpsc::Sender<Arc<Events>>| stream.try_send(events.clone()).is_err();
        ensure!(!state.streams.iter().any(is_full), "an edge does not keep up with the changes");
        Ok(last)
    }

    /// Waits until an edge has acknowledged a revision.
    pub(crate) fn wait_acked(&self, edge: &str, rev: Rev, patience: Duration) -> Result<()> {
        let lags = |acked: &mut HashMap<Arc<str>, Rev>| acked.get(edge).is_none_or(|acked| *acked < rev);
        let waited = self.control.acks.wait_timeout_while(lock(&self.control.acked), patience, lags);
        match waited {
            Ok((_, result)) if result.timed_out() => {
                bail!("{edge} did not acknowledge {rev} in {patience:?}")
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The scans of each link; empty where they are not counted.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.control.counts.as_ref().map(|counts| lock(counts).clone()).unwrap_or_default()
    }

    /// Scans of an edge that were taken, over all its boots.
    pub(crate) fn scans(&self, edge: &str) -> u64 {
        lock(&self.control.scans).iter().filter(|((name, _), _)| &**name == edge).map(|(_, next)| next).sum()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends at once; a panic of it was told.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, control: Arc<Control>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Small frames are not held back.
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve(stream, control.clone()));
    }
}

async fn serve(stream: TcpStream, control: Arc<Control>) {
    let service = service_fn(move |request| {
        let control = control.clone();
        async move {
            // What the edge says of it stands in its log.
            let refused = |error| plain(StatusCode::BAD_REQUEST, format!("{error:#}"));
            Ok::<_, Infallible>(control.answer(request).await.unwrap_or_else(refused))
        }
    });
    // Ends as the edge likes.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

fn plain(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}

fn json(value: &impl Serialize) -> Result<Response<Full<Bytes>>> {
    Ok(Response::new(serde_json::to_vec(value)?.into()))
}

impl Control {
    async fn answer(self: Arc<Self>, mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        let query = request.uri().query().unwrap_or_default();
        let last = query.rsplit_once('=').map(|(_, last)| last.to_owned()).unwrap_or_default();
        match request.uri().path() {
            STREAM_PATH => {
                let upgrade = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    if let Ok(upgraded) = upgrade.await {
                        // Ends as a broken stream does.
                        let _ = self.follow(TokioIo::new(upgraded)).await;
                    }
                });
                let mut response = plain(StatusCode::SWITCHING_PROTOCOLS, String::new());
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                response.headers_mut().insert(UPGRADE, HeaderValue::from_static(STREAM_UPGRADE));
                Ok(response)
            }
            LINKS_PATH => json(&self.page(&last)?),
            LOOKUP_PATH => json(&self.lookup(&last)?),
            SCANS_PATH => {
                let query = query.to_owned();
                let is_spooled = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == SPOOLED);
                let body = request.into_body().collect().await?.to_bytes();
                json(&self.take_scans(&query, is_spooled, &body)?)
            }
            _ => Ok(plain(StatusCode::NOT_FOUND, String::new())),
        }
    }

    fn page(&self, after: &str) -> Result<LinksPage> {
        let start = if after.is_empty() { 0 } else { position(&self.links, after) + 1 };
        let end = self.links.count().min(start + MAX_LINKS as usize);
        let links = (start..end)
            .map(|index| Ok((self.links.key(index).folded, BASE, Arc::new(self.links.record(index, None)?))));
        Ok(LinksPage {
            epoch: self.epoch.clone(),
            at_rev: BASE,
            more: end < self.links.count(),
            links: links.collect::<Result<_>>()?,
        })
    }

    fn lookup(&self, folded: &str) -> Result<Fill> {
        let index = position(&self.links, folded);
        let is_known = index < self.links.count() && *self.links.key(index).folded == *folded;
        let value = if is_known { Some((BASE, Arc::new(self.links.record(index, None)?))) } else { None };
        Ok(Fill { epoch: self.epoch.clone(), complete: true, watermark: BASE, value })
    }

    /// Takes a batch, as its records lay on the disk of the edge, or as JSON.
    fn take_scans(&self, query: &str, is_spooled: bool, body: &[u8]) -> Result<ScanAnswer> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Batch {
            edge: Arc<str>,
            boot: u64,
            first_seq: u64,
            records: Vec<IgnoredAny>,
        }
        let (edge, boot, first, end) = if is_spooled {
            let parts = query.split('&').filter_map(|part| Some(part.split_once('=')?.1));
            let [edge, boot, first_seq] = parts.collect::<Vec<_>>()[..] else { bail!("{query}") };
            let (mut count, mut rest) = (0, body);
            while let Some((_, behind)) = split_frame(rest) {
                (count, rest) = (count + 1, behind);
            }
            ensure!(rest.is_empty(), "a damaged record");
            let first = first_seq.parse::<u64>()?;
            (edge.replace("%2D", "-").into(), boot.parse()?, first, first + count)
        } else {
            let Batch { edge, boot, first_seq, records } = serde_json::from_slice(body)?;
            (edge, boot, first_seq, first_seq + records.len() as u64)
        };
        let mut scans = lock(&self.scans);
        let next = scans.entry((edge, boot)).or_default();
        if let Some(counts) = &self.counts {
            let records = match is_spooled {
                true => read_all(body).context("a damaged record")?,
                false => serde_json::from_slice::<ScanBatch>(body)?.records,
            };
            let mut counts = lock(counts);
            for (_, record) in (first..).zip(records).filter(|(seq, _)| seq >= next) {
                let count = counts.get_mut(position(&self.links, &record.folded)).context("no such link")?;
                *count += 1;
            }
        }
        *next = (*next).max(end);
        Ok(ScanAnswer { receipt: ScanReceipt { next_seq: *next }, takes_spooled: true })
    }

    async fn follow(&self, mut io: impl AsyncReadExt + AsyncWriteExt + Unpin) -> Result<()> {
        let mut decoder = Decoder::<ToControl>::default();
        let mut beat = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
        let (mut stream, mut edge, mut cursor, mut beats) = (None, Arc::<str>::from(""), 0, 0);
        loop {
            let mut out = Vec::new();
            while let Some(message) = decoder.decode()? {
                match message {
                    ToControl::Hello(hello) => {
                        edge = hello.edge_id.clone();
                        let (welcome, events) = self.welcome(&hello);
                        (cursor, stream) = (welcome.head, Some(events));
                        out.extend_from_slice(&encode(&ToEdge::Welcome(welcome))?);
                    }
                    ToControl::Ack { applied, rejected } => {
                        ensure!(rejected.is_empty(), "refused: {rejected:?}");
                        lock(&self.acked).insert(edge.clone(), applied);
                        self.acks.notify_all();
                    }
                    ToControl::Resync { reason, .. } => bail!("{edge} asks to restart the stream: {reason}"),
                }
            }
            io.write_all(&out).await?;
            let events = async {
                match &mut stream {
                    Some(events) => mpsc::Receiver::recv(events).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                read = io.read_buf(&mut decoder.buffer) => {
                    ensure!(read? > 0, "the edge left");
                    continue;
                }
                run = events => {
                    let run = run.context("the measurement is over")?;
                    cursor = run.last;
                    ToEdge::Events(run)
                }
                _ = beat.tick(), if cursor > 0 => {
                    beats += 1;
                    ToEdge::Heartbeat { seq: beats, head: cursor }
                }
            };
            io.write_all(&encode(&message)?).await?;
            io.flush().await?;
        }
    }

    fn welcome(&self, hello: &Hello) -> (Welcome, mpsc::Receiver<Arc<Events>>) {
        let mut state = lock(&self.state);
        let head = state.head;
        let resumes = hello.epoch.as_ref() == Some(&self.epoch) && hello.applied == head;
        let (sender, receiver) = mpsc::channel(WAITING);
        state.streams.push(sender);
        let welcome = Welcome {
            epoch: self.epoch.clone(),
            head,
            compacted: 0,
            start: if resumes { Start::Resume } else { Start::Snapshot { at_rev: head } },
            domains: self.domains.clone(),
            rules: Vec::new(),
            withheld: Some(Vec::new()),
            kept: Vec::new(),
            kept_certificates: None,
            certificates: Vec::new(),
            challenges: Vec::new(),
        };
        (welcome, receiver)
    }
}

/// Where among the links a known short id stands; some other place for another text.
fn position(links: &Links, folded: &str) -> usize {
    let letter = |byte: u8| GENERATED_ALPHABET.binary_search(&byte).unwrap_or(0) as u64;
    let value = folded.bytes().fold(0_u64, |value, byte| value.wrapping_mul(31).wrapping_add(letter(byte)));
    links.place(value)
}
