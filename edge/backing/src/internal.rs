//! Client of control's internal listener: single reads that bypass the view, pages of links, and scans.

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use shared::{
    redirect::RedirectKey,
    wire::{
        internal::{DIGITAL_LINK_PATH, LIMITS_PATH, LINKS_PATH, LOOKUP_PATH, SCANS_PATH, UNKNOWN_PATH},
        limits::LimitReport,
        links::LinksPage,
        scan::{ScanAnswer, ScanBatch, ScanReceipt},
        spooled::{SPOOLED, SpooledScans},
        stream::Fill,
        unknown::UnknownReport,
    },
};
use tokio::{sync::Semaphore, time::timeout};

use crate::BackingError;
use crate::{
    edge_key::EdgeKey,
    error::EdgeError,
    origins::{Origin, Origins},
    trust,
};

/// How long connecting may take, with TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// `Content-Type` of bodies other than [`SPOOLED`].
const JSON: &str = "application/json";
/// Idle connections are kept this long.
const IDLE: Duration = Duration::from_secs(30);
/// Most bytes of an answer: a page of a thousand links, each with a target and a name as long as they may be.
const ANSWER_BYTES: usize = 8 << 20;
/// How long control may take for a look-up: one read by a primary key.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(800);
/// The same while every replica is silent, so that requests do not wait long for an unlikely answer.
const LOOKUP_TIMEOUT_SILENT: Duration = Duration::from_millis(200);
/// A look-up without an answer after this time is also sent to the next replica: many times what a busy replica
/// needs.
const HEDGE_AFTER: Duration = Duration::from_millis(50);
/// How long control may take for a page of links.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long control may take for a batch of scans: as long as the statement that stores them.
const SCANS_TIMEOUT: Duration = Duration::from_secs(6);
/// Concurrent look-ups: a control that hangs must not accumulate the misses of an edge.
const LOOKUPS_AT_ONCE: usize = 64;

/// A pooled client of all replicas.
#[derive(Debug)]
pub(super) struct ControlClient {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    origins: Origins,
    key: Arc<EdgeKey>,
    lookups: Lookups,
    /// Whether the last receipt came from a control that accepts the spool format.
    takes_spooled: AtomicBool,
}

#[derive(Debug)]
struct Lookups {
    rate: DefaultDirectRateLimiter,
    at_once: Semaphore,
}

impl ControlClient {
    /// Prepares the client; nothing is connected yet.
    ///
    /// # Errors
    /// The CA file cannot be used.
    pub(super) fn new(
        origins: Origins,
        ca: Option<&Path>,
        key: Arc<EdgeKey>,
        lookups_per_second: NonZeroU32,
    ) -> Result<Self, EdgeError> {
        let at_once = Semaphore::new(LOOKUPS_AT_ONCE);
        let rate = RateLimiter::direct(Quota::per_second(lookups_per_second));
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector(ca, origins.need_tls())?);
        let lookups = Lookups { rate, at_once };
        Ok(Self { http, origins, key, lookups, takes_spooled: AtomicBool::new(false) })
    }

    /// Reads one key where it is written.
    ///
    /// # Errors
    /// Nothing answered, or there were too many.
    pub(super) async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.read_key(LOOKUP_PATH, key).await
    }

    /// Reads the Digital Link of a link; it counts as a look-up.
    ///
    /// # Errors
    /// Nothing answered, there were too many, or control does not know it.
    pub(super) async fn digital_link(
        &self,
        key: &RedirectKey,
    ) -> Result<Result<String, String>, BackingError> {
        self.read_key(DIGITAL_LINK_PATH, key).await
    }

    async fn read_key<T: DeserializeOwned>(&self, path: &str, key: &RedirectKey) -> Result<T, BackingError> {
        let spent = || BackingError::Unreachable("too many look-ups".to_owned());
        let _seat = self.lookups.at_once.try_acquire().map_err(|_| spent())?;
        self.lookups.rate.check().map_err(|_| spent())?;
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let path = format!("{path}?domain={}&shortId={}", encode(&*key.domain), encode(&*key.folded));
        self.hedged(&path).await
    }

    /// Asks the replica in use, and the next one too where there is no answer a moment later; the first answer counts.
    async fn hedged<T: DeserializeOwned>(&self, path: &str) -> Result<T, BackingError> {
        let replicas = self.origins.in_turn();
        let limit = if self.origins.are_all_avoided() { LOOKUP_TIMEOUT_SILENT } else { LOOKUP_TIMEOUT };
        let ask = |origin| self.ask_one(origin, &Method::GET, path, (JSON, Bytes::new()), limit);
        let mut others = replicas.iter();
        let mut asked = FuturesUnordered::new();
        asked.extend(others.next().map(ask));
        let mut last = BackingError::Unreachable("no replica is left".to_owned());
        loop {
            let next = async {
                tokio::time::sleep(HEDGE_AFTER).await;
                if others.len() == 0 {
                    std::future::pending().await
                }
            };
            tokio::select! {
                answer = asked.next() => match answer {
                    Some(Ok(found)) => {
                        // Later requests need not wait for the slower replicas.
                        for slower in replicas.iter().take(replicas.len() - others.len() - 1) {
                            self.origins.leave(slower);
                        }
                        return Ok(found);
                    }
                    Some(Err(error @ BackingError::Refused(_))) => return Err(error),
                    Some(Err(error)) => {
                        last = error;
                        asked.extend(others.next().map(ask));
                    }
                    None => return Err(last),
                },
                () = next => asked.extend(others.next().map(ask)),
            }
        }
    }

    /// Reads a page of a domain's links.
    ///
    /// # Errors
    /// Nothing answered, or there were too many readers.
    pub(super) async fn page(&self, domain: &str, after: &str) -> Result<LinksPage, BackingError> {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let path = format!("{LINKS_PATH}?domain={}&after={}", encode(domain), encode(after));
        self.ask(Method::GET, &path, (JSON, Bytes::new()), PAGE_TIMEOUT).await
    }

    /// Delivers scans: in spool format, or as JSON if control does not announce that it accepts that, or refuses it.
    /// A replica of the previous version, or one that knows fewer kinds of records, does.
    ///
    /// # Errors
    /// Nothing answered, neither side can read the first of them, or control will never accept them.
    pub(super) async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        let batch = if self.takes_spooled.load(Relaxed) { None } else { scans.read() };
        if let Some(batch) = batch {
            return self.record_as_json(&batch).await;
        }
        let edge = utf8_percent_encode(&scans.edge, NON_ALPHANUMERIC);
        let path = format!("{SCANS_PATH}?edge={edge}&boot={}&firstSeq={}", scans.boot, scans.first_seq);
        let reason = match self.ask(Method::POST, &path, (SPOOLED, scans.frames.clone()), SCANS_TIMEOUT).await
        {
            Err(BackingError::Refused(reason)) => reason,
            answered => return answered.map(|ScanAnswer { receipt, .. }| receipt),
        };
        tracing::debug!(reason, "scans are handed over as JSON");
        self.takes_spooled.store(false, Relaxed);
        match scans.read() {
            Some(batch) => self.record_as_json(&batch).await,
            None => Err(BackingError::Unreachable(format!(
                "the next scan cannot be read here, nor there: {reason}"
            ))),
        }
    }

    async fn record_as_json(&self, batch: &ScanBatch) -> Result<ScanReceipt, BackingError> {
        let body = serde_json::to_vec(batch).map_err(|error| BackingError::Refused(error.to_string()))?;
        let answer: ScanAnswer =
            self.ask(Method::POST, SCANS_PATH, (JSON, body.into()), SCANS_TIMEOUT).await?;
        self.takes_spooled.store(answer.takes_spooled, Relaxed);
        Ok(answer.receipt)
    }

    /// Delivers a report about unknown ids.
    ///
    /// # Errors
    /// Nothing answered, or control knows no such reports.
    pub(super) async fn record_unknown(&self, report: &UnknownReport) -> Result<(), BackingError> {
        self.post_report(UNKNOWN_PATH, report).await
    }

    /// Delivers counts of links with a limit.
    ///
    /// # Errors
    /// Nothing answered, or control knows no such reports.
    pub(super) async fn record_limits(&self, report: &LimitReport) -> Result<(), BackingError> {
        self.post_report(LIMITS_PATH, report).await
    }

    /// Sends what is answered by an empty object.
    async fn post_report(&self, path: &str, report: &impl Serialize) -> Result<(), BackingError> {
        let body = serde_json::to_vec(report).map_err(|error| BackingError::Refused(error.to_string()))?;
        self.ask::<IgnoredAny>(Method::POST, path, (JSON, body.into()), SCANS_TIMEOUT).await.map(|_| ())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: (&'static str, Bytes),
        limit: Duration,
    ) -> Result<T, BackingError> {
        self.ask_one(&self.origins.current(), &method, path, body, limit).await
    }

    /// Sends a request to one replica. A replica that fails or is silent for longer than `limit` is left, so that the
    /// next request goes elsewhere, however long the caller is willing to wait.
    async fn ask_one<T: DeserializeOwned>(
        &self,
        origin: &Origin,
        method: &Method,
        path: &str,
        body: (&'static str, Bytes),
        limit: Duration,
    ) -> Result<T, BackingError> {
        let mut reason = String::new();
        // A key that was exchanged a moment ago: one more attempt with the new one.
        for _ in 0..2 {
            let answered = timeout(limit, self.once(origin, method, path, body.clone())).await;
            let (status, answer) = match answered {
                Ok(Ok(answered)) => answered,
                Err(_) => {
                    self.origins.avoid(origin);
                    let reason = format!("{} did not answer in time", origin.authority);
                    return Err(BackingError::Unreachable(reason));
                }
                Ok(Err(error)) => {
                    self.origins.leave(origin);
                    return Err(BackingError::Unreachable(format!("{}: {error}", origin.authority)));
                }
            };
            match status {
                StatusCode::OK => {
                    return serde_json::from_slice(&answer).map_err(|error| {
                        BackingError::Unreachable(format!("{path} is not understood: {error}"))
                    });
                }
                StatusCode::BAD_REQUEST
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNPROCESSABLE_ENTITY => {
                    let said = String::from_utf8_lossy(&answer).into_owned();
                    return Err(BackingError::Refused(format!("{status}: {said}")));
                }
                // For JSON, only another server would answer this, and no scan is dropped because of it.
                StatusCode::UNSUPPORTED_MEDIA_TYPE if body.0 == SPOOLED => {
                    return Err(BackingError::Refused(status.to_string()));
                }
                _ => reason = format!("{} answers {status}", origin.authority),
            }
            if status.is_server_error() {
                self.origins.leave(origin);
            }
            let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if !is_denied || !self.key.reload() {
                break;
            }
        }
        Err(BackingError::Unreachable(reason))
    }

    async fn once(
        &self,
        origin: &Origin,
        method: &Method,
        path: &str,
        (kind, body): (&'static str, Bytes),
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let uri = Uri::builder()
            .scheme(origin.scheme.clone())
            .authority(origin.authority.clone())
            .path_and_query(path)
            .build()?;
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(AUTHORIZATION, self.key.authorization())
            .header(CONTENT_TYPE, HeaderValue::from_static(kind))
            .body(Full::new(body))?;
        let response = self.http.request(request).await?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_BYTES).collect().await?;
        Ok((status, answer.to_bytes()))
    }
}

/// A connector for control, with TLS if the URL says so.
///
/// # Errors
/// The CA file cannot be used, or the system has no roots.
pub fn connector(ca: Option<&Path>, needs_tls: bool) -> Result<HttpsConnector<HttpConnector>, EdgeError> {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_tls_config(trust::client_config(ca, needs_tls)?);
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}
