//! Forwards management requests to control unchanged.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{
        CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
    request,
};
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, Error, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use shared::{client_address::EDGE_TOKEN, problem::Code};

use crate::{
    EdgeError, EdgeKey,
    backing::{connector, origins::Origins},
    config::EdgeConfig,
    connection::{Client, InFlight},
    response::Body,
};

/// How many times the largest body is still read of one that is larger: else the client, which writes, sees a
/// broken connection instead of the answer.
const DRAINS: usize = 8;
/// How long reading that may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a read may take at one replica while there are others: longer than any statement of the database.
const READ_TIMEOUT: Duration = Duration::from_secs(8);

/// Most bytes of an answer that is read here.
const ANSWER_BYTES: usize = 16 << 10;

/// A request's body; or one of the edge's own, or none.
pub(crate) type Sent = Either<Watched, Full<Bytes>>;

/// A body on its way to control, and whether all of it was taken.
pub(crate) type Upload = (Sent, Arc<AtomicBool>);

/// A request's body that notes when all of it was taken.
pub(crate) struct Watched {
    body: Limited<Incoming>,
    is_whole: Arc<AtomicBool>,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_whole.store(true, Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The way to control.
#[derive(Debug)]
pub(crate) struct Proxy {
    client: HttpClient<HttpsConnector<HttpConnector>, Sent>,
    replicas: Origins,
    body_bytes: usize,
    timeout: Duration,
    token: Option<HeaderValue>,
    key: Option<Arc<EdgeKey>>,
}

impl Proxy {
    /// Builds the client without connecting.
    ///
    /// # Errors
    /// A URL of control's API is invalid, or the CA file cannot be used.
    pub(crate) fn new(config: &EdgeConfig) -> Result<Self, EdgeError> {
        let replicas = Origins::new("api_urls", &config.api_urls, false)?;
        let connector = connector(config.api_ca.as_deref(), replicas.need_tls())?;
        let client = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        let limits = &config.limits;
        let token = config.control_token.as_deref().map(HeaderValue::from_str).transpose();
        let token = token.map_err(|_| EdgeError::Config {
            key: "control_token",
            reason: "must have visible characters only".to_owned(),
        })?;
        Ok(Self {
            client,
            replicas,
            body_bytes: limits.proxy_body_bytes,
            timeout: limits.proxy_timeout,
            token,
            key: config.key.clone(),
        })
    }

    /// Passes a request on, under another path if one is given, and streams the answer back.
    ///
    /// # Errors
    /// The code to answer with: control is unreachable or too slow, or the body is too large.
    pub(crate) async fn pass(
        &self,
        request: Request<Incoming>,
        path: Option<String>,
        client: Client,
        id: &HeaderValue,
        in_flight: InFlight,
    ) -> Result<Response<Body>, Code> {
        let (mut parts, body) = request.into_parts();
        let is_empty = body.is_end_stream();
        let body = stream(&parts.headers, body, self.body_bytes).await?;
        // Control finds the short domain by the host that the client named.
        let host = match parts.uri.authority() {
            Some(authority) => {
                HeaderValue::from_str(authority.as_str()).map_err(|_| Code::MisdirectedHost)?
            }
            None => parts.headers.get(HOST).cloned().ok_or(Code::MisdirectedHost)?,
        };
        let path = match &path {
            Some(path) => path.as_str(),
            None => parts.uri.path_and_query().map_or("/", |path| path.as_str()),
        };
        let path = path.to_owned();
        parts.version = http::Version::HTTP_11;
        parts.extensions.clear();
        cut_hop_by_hop(&mut parts.headers);
        parts.headers.remove(EXPECT);
        parts.headers.insert(HOST, host);
        self.sign(&mut parts.headers, client, id);
        let body = Some(body).filter(|_| !is_empty);
        let ends = Instant::now() + self.timeout;
        tokio::time::timeout(self.timeout, in_flight.wait_to_begin()).await.map_err(|_| Code::Timeout)?;
        let response = self.send(&parts, &path, body, ends).await?;
        let (mut parts, body) = response.into_parts();
        cut_hop_by_hop(&mut parts.headers);
        parts.version = http::Version::HTTP_11;
        Ok(Response::from_parts(parts, Body::Passed { body, _in_flight: in_flight }))
    }

    /// Sends a request to the replica in use; one without a body goes to the next when it cannot connect, and one that
    /// only reads also when this one is silent.
    async fn send(
        &self,
        parts: &request::Parts,
        path: &str,
        mut body: Option<Upload>,
        ends: Instant,
    ) -> Result<Response<Incoming>, Code> {
        let replicas = self.replicas.in_turn();
        for (replica, left) in replicas.iter().zip((0..replicas.len()).rev()) {
            let mut parts = parts.clone();
            parts.uri = Uri::builder()
                .scheme(replica.scheme.clone())
                .authority(replica.authority.clone())
                .path_and_query(path)
                .build()
                .map_err(|_| Code::NoSuchPath)?;
            let has_body = body.is_some();
            let nothing = || (Either::Right(Full::default()), Arc::default());
            let (sent, is_whole) = body.take().unwrap_or_else(nothing);
            // What may be asked twice goes to the next replica when this one is silent.
            let may_repeat = !has_body && left > 0 && parts.method.is_safe();
            let patience = ends.saturating_duration_since(Instant::now());
            let patience = if may_repeat { patience.min(READ_TIMEOUT) } else { patience };
            let sending = self.client.request(Request::from_parts(parts, sent));
            let answered = match tokio::time::timeout(patience, sending).await {
                Ok(answered) => answered,
                // While the body is uploaded the client may be the slow side: that says nothing about control.
                Err(_) if has_body && !is_whole.load(Relaxed) => return Err(Code::Timeout),
                Err(_) => {
                    self.replicas.avoid(replica);
                    if may_repeat {
                        continue;
                    }
                    return Err(Code::Timeout);
                }
            };
            match answered {
                Ok(response) => return Ok(response),
                Err(error) if is_too_large(&error) => return Err(Code::TooLarge),
                // The client broke off, or framed its body badly; control is well.
                Err(error) if is_bad_body(&error) => return Err(Code::Invalid),
                Err(error) => {
                    tracing::warn!(%error, replica = %replica.authority, "control did not answer");
                    if !Error::is_connect(&error) {
                        return Err(Code::ControlUnreachable);
                    }
                    // The next request goes elsewhere, and this one too if nothing of it is gone.
                    self.replicas.leave(replica);
                    if has_body {
                        return Err(Code::ControlUnreachable);
                    }
                }
            }
        }
        Err(Code::ControlUnreachable)
    }

    /// Sends a body of this type for a client, and reads the answer.
    ///
    /// # Errors
    /// Control is unreachable or too slow, or its answer is too long.
    pub(crate) async fn post(
        &self,
        (host, path): (&str, &str),
        (kind, body): (HeaderValue, Upload),
        client: Client,
        id: &HeaderValue,
    ) -> Result<(StatusCode, Bytes), Code> {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = Method::POST;
        parts.headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| Code::MisdirectedHost)?);
        parts.headers.insert(CONTENT_TYPE, kind);
        self.sign(&mut parts.headers, client, id);
        let response = self.send(&parts, path, Some(body), Instant::now() + self.timeout).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect();
        let body = tokio::time::timeout(self.timeout, body).await.map_err(|_| Code::Timeout)?;
        Ok((status, body.map_err(|_| Code::ControlUnreachable)?.to_bytes()))
    }

    /// Adds the client's address, and the edge's key that makes it trusted.
    fn sign(&self, headers: &mut HeaderMap, client: Client, id: &HeaderValue) {
        let proto = if client.is_tls { "https" } else { "http" };
        if let Ok(ip) = HeaderValue::from_str(&client.ip.to_canonical().to_string()) {
            headers.insert(HeaderName::from_static("x-forwarded-for"), ip);
        }
        headers.insert(HeaderName::from_static("x-forwarded-proto"), HeaderValue::from_static(proto));
        headers.remove("forwarded");
        match self.key.as_ref().map(|key| key.token()).or_else(|| self.token.clone()) {
            Some(token) => headers.insert(HeaderName::from_static(EDGE_TOKEN), token),
            None => headers.remove(EDGE_TOKEN),
        };
        headers.insert(HeaderName::from_static("x-request-id"), id.clone());
    }
}

/// A body of the edge's own.
pub(crate) fn whole(body: Bytes) -> Upload {
    (Either::Right(Full::new(body)), Arc::new(AtomicBool::new(true)))
}

/// The body of a request, passed on as it comes, at most so many bytes of it.
///
/// # Errors
/// [`Code::TooLarge`] for one that says that it is longer; it is read away.
pub(crate) async fn stream(headers: &HeaderMap, body: Incoming, most: usize) -> Result<Upload, Code> {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > most as u64) {
        // A client that waits for `100 Continue` has sent nothing yet, and should not begin.
        if !headers.contains_key(EXPECT) {
            drain(body, DRAINS * most).await;
        }
        return Err(Code::TooLarge);
    }
    let is_whole = Arc::new(AtomicBool::new(false));
    let body = Limited::new(body, most);
    Ok((Either::Left(Watched { body, is_whole: is_whole.clone() }), is_whole))
}

/// Reads a body away, up to a number of bytes and for a bounded time.
async fn drain(body: Incoming, bytes: usize) {
    let mut body = Limited::new(body, bytes);
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // A longer body breaks the connection.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, all).await;
}

/// Removes hop-by-hop headers, and those that `Connection` names (RFC 9110, 7.6.1).
fn cut_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain([CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE]) {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"] {
        headers.remove(name);
    }
}

/// Whether it was the request's own body that failed.
fn is_bad_body(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_user)
}

fn is_too_large(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<LengthLimitError>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_headers_are_cut() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("authorization", "KEY"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        cut_hop_by_hop(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["authorization"]);
    }
}
