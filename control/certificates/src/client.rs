//! The client that asks the authority.
//!
//! The directory is a setting of the platform operator, who may have it in a private network: so addresses are not restricted as
//! those of webhooks are. Redirects are not followed, no proxy of the environment is used, every URL has TLS, and answers are
//! read up to a limit.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::BodyExt as _;
use instant_acme::{
    Account, AccountCredentials, BodyWrapper, BytesResponse, Error, HttpClient, NewAccount, Problem,
};
use reqwest::{Certificate, Client, redirect::Policy};
use serde_json::Value;
use shared::time::UnixMillis;

use crate::{
    domain::certificate::{Fault, FaultKind},
    settings::AcmeSettings,
};

/// Longest time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time for one answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest answer: many times a chain.
const MAX_ANSWER_BYTES: usize = 256 << 10;

/// Most characters of a text of the authority that are kept.
const MAX_TEXT: usize = 500;

/// The authority of a process.
pub struct Authority {
    settings: AcmeSettings,
    client: Client,
}

impl Authority {
    /// A client that trusts the root of the settings alone, or those of the system.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(settings: AcmeSettings) -> Result<Self, String> {
        let builder = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .https_only(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // Orders are rare: a connection that the authority closed meanwhile would break one.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("Waymark/", env!("CARGO_PKG_VERSION")));
        let builder = match settings.trust() {
            Some(pem) => {
                builder.tls_certs_only(Certificate::from_pem_bundle(pem).map_err(|error| error.to_string())?)
            }
            None => builder,
        };
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { settings, client })
    }

    /// The URL of its directory.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.settings.directory()
    }

    /// A conversation of its own, which remembers the last answer.
    pub(crate) fn talk(&self) -> Talk {
        Talk { client: self.client.clone(), last: Arc::default() }
    }

    /// The time at the authority; `None`: it does not answer, or its answers have no time.
    pub(crate) async fn time(&self) -> Option<UnixMillis> {
        time_of(self.client.get(self.directory()).send().await.ok()?.headers())
    }

    /// Makes an account of this service, which agrees to the terms of the authority; gives its credentials in JSON.
    ///
    /// # Errors
    /// The authority makes none.
    pub(crate) async fn register(&self) -> Result<String, Fault> {
        let talk = self.talk();
        let contact: Vec<&str> = self.settings.contact().into_iter().collect();
        let account =
            NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let builder = Account::builder_with_http(Box::new(talk.clone()));
        let made = builder.create(&account, self.directory().to_owned(), None).await;
        let (_, credentials) = made.map_err(|error| talk.fault(error))?;
        serde_json::to_string(&credentials).map_err(|error| talk.fault(error.into()))
    }

    /// The account of this service by its credentials in JSON.
    ///
    /// # Errors
    /// The authority does not answer.
    pub(crate) async fn account(&self, credentials: &str, talk: &Talk) -> Result<Account, Fault> {
        let no_account = |_: serde_json::Error| Fault {
            kind: FaultKind::NoAccount,
            text: "the credentials at the authority cannot be read".to_owned(),
            wait_ms: None,
        };
        let credentials: AccountCredentials = serde_json::from_str(credentials).map_err(no_account)?;
        let builder = Account::builder_with_http(Box::new(talk.clone()));
        builder.from_credentials(credentials).await.map_err(|error| talk.fault(error))
    }

    /// Whether the authority accepts no request of an account any more (RFC 8555 section 7.3.6). It says so in the words in which it
    /// refuses one order, too: so it is asked for what every account may do.
    pub(crate) async fn is_lost(&self, account: &Account) -> bool {
        let contact: Vec<&str> = self.settings.contact().into_iter().collect();
        match account.update_contacts(&contact).await {
            Err(Error::Api(problem)) => is_of_account(&problem),
            Ok(()) | Err(_) => false,
        }
    }
}

/// The last answer of the authority.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    refusal: Option<Refusal>,
    time: Option<UnixMillis>,
}

/// An answer by which the authority refused.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    status: u16,
    wait_ms: Option<i64>,
}

/// A conversation with the authority.
#[derive(Clone)]
pub(crate) struct Talk {
    client: Client,
    last: Arc<Mutex<Last>>,
}

impl Talk {
    /// What an error means for an order.
    pub(crate) fn fault(&self, error: Error) -> Fault {
        let refusal = self.last().refusal;
        let wait_ms = refusal.and_then(|refusal| refusal.wait_ms);
        let status = refusal.map_or(0, |refusal| refusal.status);
        let (kind, text) = match &error {
            Error::Api(problem) => (kind_of(problem, status), text_of(problem)),
            _ if status == 429 => (FaultKind::Limited, "it is asked too often".to_owned()),
            Error::Timeout(_) => (FaultKind::Unavailable, "it has not finished in time".to_owned()),
            Error::Json(_) if status == 0 => (FaultKind::Unavailable, "its answer cannot be read".to_owned()),
            Error::Json(_) => (kind_by_status(status), format!("it answers with {status}")),
            error => {
                tracing::warn!(%error, "the certificate authority does not answer");
                (FaultKind::Unavailable, "it gives no answer".to_owned())
            }
        };
        Fault { kind, text: format!("The certificate authority: {text}"), wait_ms }
    }

    /// The time at the authority when it answered last; `None`: it has not answered, or its answer had none.
    pub(crate) fn time(&self) -> Option<UnixMillis> {
        self.last().time
    }

    /// Whether it refused last because of who asked.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.last().refusal.is_some_and(|refusal| matches!(refusal.status, 401 | 403))
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let other = |error: reqwest::Error| Error::Other(Box::new(error));
        let (parts, body) = request.into_parts();
        let is_directory = parts.method == Method::GET;
        // It cannot fail.
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let asked =
            self.client.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
        let mut answer = asked.send().await.map_err(other)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(other)? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(Error::Str("an answer of a bounded length"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let (status, wait) = (answer.status(), wait_seconds(answer.headers()));
        let wait_ms = wait.map(|seconds| i64::from(seconds) * 1_000);
        let refusal = (status.is_client_error() || status.is_server_error())
            .then(|| Refusal { status: status.as_u16(), wait_ms });
        *self.last() = Last { refusal, time: time_of(answer.headers()) };
        if is_directory && !can_be_followed(&bytes) {
            return Err(Error::Str("a directory with a URL for nonces"));
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = answer.headers().clone();
        // The library would compare a date with the clock of this machine, and panics at a number of seconds that it cannot hold.
        response.headers_mut().remove(header::RETRY_AFTER);
        if let Some(seconds) = wait {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        let (parts, ()) = response.into_parts();
        Ok(BytesResponse { parts, body: Box::new(Bytes::from(bytes)) })
    }
}

impl HttpClient for Talk {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().ask(request))
    }
}

/// The seconds of `Retry-After`, by the clock of the authority where it is a date; `None`: there is none, or it is beyond all
/// sense.
fn wait_seconds(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(header::RETRY_AFTER)?;
    if let Ok(seconds) = value.to_str().ok()?.trim().parse() {
        return Some(seconds);
    }
    let wait_ms = read_date(value)?.0.saturating_sub(time_of(headers)?.0);
    u32::try_from(wait_ms.max(0) / 1_000).ok()
}

/// The time at the authority: when it made an answer (`Date`), and how long that was kept on its way (`Age`).
fn time_of(headers: &HeaderMap) -> Option<UnixMillis> {
    let age = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.trim().parse::<u32>().ok());
    let made = read_date(headers.get(header::DATE)?)?;
    Some(UnixMillis(made.0.saturating_add(i64::from(age.unwrap_or(0)) * 1_000)))
}

fn read_date(value: &HeaderValue) -> Option<UnixMillis> {
    let at = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
    i64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis()).ok().map(UnixMillis)
}

/// Whether the library can use a directory: it panics at a URL for nonces that is none. It refuses what lacks one by itself.
fn can_be_followed(directory: &[u8]) -> bool {
    let read = serde_json::from_slice::<Value>(directory).unwrap_or_default();
    let url = read.get("newNonce").and_then(Value::as_str);
    url.is_none_or(|url| url.parse::<Uri>().is_ok())
}

/// Whether an answer to a request about an account says that there is none, or that it was deactivated or revoked.
fn is_of_account(problem: &Problem) -> bool {
    matches!(error_of(problem), "unauthorized" | "accountDoesNotExist")
}

/// The kind of a problem without its namespace.
fn error_of(problem: &Problem) -> &str {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind)
}

fn kind_of(problem: &Problem, status: u16) -> FaultKind {
    match error_of(problem) {
        "rateLimited" => FaultKind::Limited,
        "accountDoesNotExist" => FaultKind::NoAccount,
        "serverInternal" | "badNonce" => FaultKind::Unavailable,
        // The error within an order or a challenge: the answer that held it was none.
        _ if status == 0 => FaultKind::Refused,
        _ => kind_by_status(status),
    }
}

/// Whose fault an answer without a problem is. An order that is not there any more must not be asked for again.
fn kind_by_status(status: u16) -> FaultKind {
    match status {
        429 => FaultKind::Limited,
        400..=499 => FaultKind::Refused,
        _ => FaultKind::Unavailable,
    }
}

/// The text of a problem, for people: it is of somebody else.
pub(crate) fn text_of(problem: &Problem) -> String {
    let own = problem.detail.as_deref().or(problem.r#type.as_deref());
    let of_names = problem.subproblems.iter().filter_map(|one| one.detail.as_deref());
    let text = own.into_iter().chain(of_names).collect::<Vec<_>>().join("; ");
    let text: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_TEXT).collect();
    if text.is_empty() { "it refuses, without a reason".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_show_whose_fault_it_is() {
        for (kind, status, expected) in [
            ("urn:ietf:params:acme:error:rateLimited", 429, FaultKind::Limited),
            ("urn:ietf:params:acme:error:rateLimited", 0, FaultKind::Limited),
            ("urn:ietf:params:acme:error:accountDoesNotExist", 400, FaultKind::NoAccount),
            ("urn:ietf:params:acme:error:serverInternal", 500, FaultKind::Unavailable),
            ("urn:ietf:params:acme:error:unauthorized", 403, FaultKind::Refused),
            ("urn:ietf:params:acme:error:connection", 0, FaultKind::Refused),
            ("about:blank", 429, FaultKind::Limited),
            ("about:blank", 503, FaultKind::Unavailable),
            ("about:blank", 404, FaultKind::Refused),
        ] {
            let problem: Problem = serde_json::from_value(serde_json::json!({"type": kind})).unwrap();
            assert_eq!(kind_of(&problem, status), expected, "{kind} {status}");
            let is_lost = kind.ends_with(":unauthorized") || kind.ends_with(":accountDoesNotExist");
            assert_eq!(is_of_account(&problem), is_lost, "{kind}");
        }
    }

    #[test]
    fn an_authority_that_answers_rubbish_stops_no_process() {
        for (text, expected) in [
            ("120", Some(120)),
            ("4294967295", Some(u32::MAX)),
            ("Thu, 01 Jan 1970 00:00:57 GMT", Some(10)),
            ("Thu, 01 Jan 1970 00:00:07 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None),
            ("18446744073709551615", None),
            ("-1", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::from_iter([
                (header::DATE, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:40 GMT")),
                (header::AGE, HeaderValue::from_static("7")),
                (header::RETRY_AFTER, HeaderValue::from_static(text)),
            ]);
            assert_eq!(wait_seconds(&headers), expected, "{text:?}");
            assert_eq!(time_of(&headers), Some(UnixMillis(47_000)));
            headers.remove(header::DATE);
            let is_number = text.parse::<u32>().is_ok();
            assert_eq!(wait_seconds(&headers), expected.filter(|_| is_number), "{text:?}, without a clock");
        }
        for (directory, fits) in [
            (r#"{"newNonce": "https://acme.example/nonce"}"#, true),
            (r#"{"newNonce": ""}"#, false),
            (r#"{"newNonce": "a b"}"#, false),
            // The library refuses these.
            (r#"{"newNonce": 7}"#, true),
            ("[]", true),
            ("<html>", true),
        ] {
            assert_eq!(can_be_followed(directory.as_bytes()), fits, "{directory}");
        }
    }

    #[test]
    fn texts_of_an_authority_are_bounded() {
        let problem = serde_json::json!({"detail": format!("a\nb{}", "c".repeat(2 * MAX_TEXT))});
        let text = text_of(&serde_json::from_value(problem).unwrap());
        assert!(text.starts_with("a b") && text.chars().count() == MAX_TEXT, "{text}");
        assert_eq!(
            text_of(&serde_json::from_value(serde_json::json!({})).unwrap()),
            "it refuses, without a reason"
        );
    }
}
