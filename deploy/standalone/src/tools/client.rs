//! The API client of the tools: keys, the operator's CA, patience, and paging.

use std::{fs, net::IpAddr, path::Path, time::Duration};

use reqwest::{
    Certificate, Response, StatusCode, Url,
    header::{
        AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
        LINK, LOCATION,
    },
};
use serde::{Deserialize, de::DeserializeOwned};

use super::patience::Patience;
use crate::{config::ConfigError, failure::Failure};

mod download;

/// A connection that takes longer will not come.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A whole request: the service answers within 10 s or says that it cannot.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The upload of a file: as long as the service waits for it.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Where the API is and who calls.
#[derive(Debug, Clone, clap::Args)]
pub struct ApiArgs {
    /// Base of the API
    #[arg(long, env = "WAYMARK_API_URL", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub api: String,
    /// Operator key of 80 characters
    #[arg(long, env = "WAYMARK_OPERATOR_KEY", value_name = "KEY", hide_env_values = true)]
    pub key: Option<String>,
    /// PEM file of the one CA to trust, such as DATA_DIR/dev-tls/ca.pem [default: those of the system]
    #[arg(long, env = "WAYMARK_CA", value_name = "FILE")]
    pub ca: Option<String>,
}

/// Why a request was not answered as it should be.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The service refused; a repeat would be refused too.
    #[error("{status}: {text}")]
    Refused {
        /// The status code.
        status: StatusCode,
        /// What the service says.
        text: String,
    },
    /// Nothing answered, or not as the API does, however often it was tried.
    #[error("{0}")]
    Unreachable(String),
}

/// A client of one API.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    patience: Patience,
}

impl Client {
    /// A client with the operator's key on every request.
    ///
    /// # Errors
    /// The URL, the key or the CA cannot be used.
    pub fn new(args: &ApiArgs) -> Result<Self, Failure> {
        let base = base_url("WAYMARK_API_URL", &args.api)?;
        let Some(key) = args.key.as_deref().filter(|key| kernel::domain::access::is_key(key)) else {
            let reason = "give the operator key of 80 characters A-Z a-z 0-9 (--key)";
            return Err(ConfigError::new("WAYMARK_OPERATOR_KEY", reason).into());
        };
        let mut value = HeaderValue::from_str(key)
            .map_err(|error| ConfigError::new("WAYMARK_OPERATOR_KEY", error.to_string()))?;
        value.set_sensitive(true);
        // What the service does not know is a fault of the tool, or of a service of another release.
        let strict = (HeaderName::from_static("prefer"), HeaderValue::from_static("handling=strict"));
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value), strict]);
        let http = http_client(&base, args.ca.as_deref(), &headers)?;
        Ok(Self { http, base, patience: Patience::long() })
    }

    /// The same, for answers that somebody waits for: it gives up after some seconds.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { patience: Patience::brief(), ..self }
    }

    /// The base of the API.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn read<T: DeserializeOwned>(&self, url: &Url) -> Result<T, RequestError> {
        self.read_tagged(url).await.map(|(document, _)| document)
    }

    /// Reads a JSON document and its `ETag`.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn read_tagged<T: DeserializeOwned>(
        &self,
        url: &Url,
    ) -> Result<(T, Option<HeaderValue>), RequestError> {
        let response =
            self.patience.send(|| self.http.get(url.clone()).header("accept", "application/json")).await?;
        let tag = response.headers().get(ETAG).cloned();
        Ok((json(response).await?, tag))
    }

    /// Reads one page of a list, and the URL of the next page if there is one.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn read_page<T: DeserializeOwned>(&self, url: &Url) -> Result<(T, Option<Url>), RequestError> {
        let response =
            self.patience.send(|| self.http.get(url.clone()).header("accept", "application/json")).await?;
        let next = response.headers().get(LINK).and_then(|link| next_page(&self.base, link.to_str().ok()?));
        Ok((json(response).await?, next))
    }

    /// Posts a JSON document that is carried out once, however often it is sent.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn post_once<T: DeserializeOwned>(
        &self,
        url: &Url,
        idempotency_key: &str,
        body: bytes::Bytes,
    ) -> Result<T, RequestError> {
        let request = || {
            self.http
                .post(url.clone())
                .header("accept", "application/json")
                .header(CONTENT_TYPE, "application/json")
                .header("idempotency-key", idempotency_key)
                .body(body.clone())
        };
        json(self.patience.send(request).await?).await
    }

    /// Posts a JSON document that is carried out once and later; gives where its progress can be read.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn submit(
        &self,
        url: &Url,
        idempotency_key: &str,
        body: bytes::Bytes,
    ) -> Result<Url, RequestError> {
        let request = || {
            self.http
                .post(url.clone())
                .header(CONTENT_TYPE, "application/json")
                .header("idempotency-key", idempotency_key)
                .body(body.clone())
        };
        let response = self.patience.send(request).await?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        location
            .and_then(|text| self.on_base(text))
            .ok_or_else(|| RequestError::Unreachable("the answer has no Location".to_owned()))
    }

    /// Asks for something to be done to what a URL names, without a body.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn act(&self, url: &Url) -> Result<(), RequestError> {
        self.patience.send(|| self.http.post(url.clone())).await.map(|_| ())
    }

    /// Puts a JSON document, with a tag in place of the version that has it; what comes back is not read.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn put(
        &self,
        url: &Url,
        tag: Option<&HeaderValue>,
        body: bytes::Bytes,
    ) -> Result<(), RequestError> {
        let request = || {
            let put = self.http.put(url.clone()).header(CONTENT_TYPE, "application/json").body(body.clone());
            match tag {
                Some(tag) => put.header(IF_MATCH, tag),
                None => put,
            }
        };
        self.patience.send(request).await.map(|_| ())
    }

    /// Removes what a URL names; what is not there is removed.
    ///
    /// # Errors
    /// The service refused, or did not answer.
    pub async fn remove(&self, url: &Url) -> Result<(), RequestError> {
        match self.patience.send(|| self.http.delete(url.clone())).await {
            // Maybe by a try whose answer was lost.
            Err(RequestError::Refused { status: StatusCode::NOT_FOUND, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts a file to an upload URL, as it is read.
    ///
    /// # Errors
    /// The file cannot be read, or the service refused or did not answer.
    pub async fn upload(&self, upload_url: &str, path: &Path) -> Result<(), Failure> {
        let unread = |error: std::io::Error| {
            ConfigError::new("FILE", format!("{} cannot be read: {error}", path.display()))
        };
        let bad = || Failure::Failed("the upload: the answer has no URL of this service".to_owned());
        let url = self.on_base(upload_url).ok_or_else(bad)?;
        // One try: what was sent of a stream cannot be sent again by itself.
        let file = tokio::fs::File::open(path).await.map_err(unread)?;
        let size = file.metadata().await.map_err(unread)?.len();
        let body = reqwest::Body::wrap_stream(tokio_util::io::ReaderStream::new(file));
        let request = self.http.put(url).header(CONTENT_LENGTH, size).timeout(UPLOAD_TIMEOUT).body(body);
        let response = request.send().await.map_err(|error| Failure::failed("the upload", chain(&error)))?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(Failure::failed("the upload", refused(response).await))
    }

    /// A URL that the service names; scheme and host are always the base's: a key goes nowhere else.
    fn on_base(&self, text: &str) -> Option<Url> {
        let named = self.base.join(text).ok()?;
        let mut url = self.base.clone();
        url.set_path(named.path());
        url.set_query(named.query());
        Some(url)
    }

    /// The URL of a path of the API with query parameters.
    #[must_use]
    pub fn url<'a>(&self, path: &[&str], query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let query: Vec<_> = query.into_iter().collect();
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

/// An HTTP client for `base` that trusts the operator's CA alone, or the system's.
///
/// # Errors
/// The CA cannot be read.
pub fn http_client(base: &Url, ca: Option<&str>, headers: &HeaderMap) -> Result<reqwest::Client, Failure> {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let builder = || {
        let builder = reqwest::Client::builder();
        // No proxy leads back to this machine.
        let builder = if local { builder.no_proxy() } else { builder };
        builder
            .user_agent(concat!("waymark/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers.clone())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
    };
    let built = match ca {
        Some(file) => {
            let bad = |error: &dyn std::fmt::Display| {
                ConfigError::new("WAYMARK_CA", format!("{file} is not a PEM certificate: {error}"))
            };
            let pem = fs::read(file).map_err(|error| bad(&error))?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| bad(&error))?;
            builder().tls_certs_only(certificates).build()
        }
        // Plain HTTP must work on a machine without any certificates.
        None => builder().build().or_else(|_| builder().tls_certs_only([]).build()),
    };
    built.map_err(|error| Failure::failed("the HTTP client", chain(&error)))
}

/// Reads the base of an API or edge.
///
/// # Errors
/// It is not an `http` or `https` URL.
pub fn base_url(key: &'static str, text: &str) -> Result<Url, ConfigError> {
    let bad = || {
        let reason = format!("{text:?} is not a URL: give one such as http://127.0.0.1:8080");
        ConfigError::new(key, reason)
    };
    let url = Url::parse(text).map_err(|_| bad())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() { Ok(url) } else { Err(bad()) }
}

/// What the service says in a refusal.
pub(super) async fn refused(response: Response) -> RequestError {
    #[derive(Deserialize)]
    struct Body {
        errors: Vec<String>,
    }
    let status = response.status();
    let text = match response.json::<Body>().await {
        Ok(body) => body.errors.join(" "),
        Err(_) => "the answer is not one of the API".to_owned(),
    };
    RequestError::Refused { status, text }
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, RequestError> {
    let bytes = response.bytes().await.map_err(|error| RequestError::Unreachable(chain(&error)))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| RequestError::Unreachable(format!("the answer is not one of the API: {error}")))
}

/// The next page's URL of a `Link` header: percent-encoded as a whole between the brackets.
///
/// Scheme and host are always the base's: a key goes nowhere else.
fn next_page(base: &Url, link: &str) -> Option<Url> {
    let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
    if !parameters.contains("rel=\"next\"") {
        return None;
    }
    let decoded = percent_encoding::percent_decode_str(target).decode_utf8().ok()?;
    let linked = base.join(&decoded).ok()?;
    let mut url = base.clone();
    url.set_path(linked.path());
    url.set_query(linked.query());
    Some(url)
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_stays_on_the_api() {
        let base = Url::parse("https://api.example:8444").unwrap();
        for (link, expected, why) in [
            (
                "<https%3A%2F%2Fapi.example%3A8444%2Fredirections%3FperPage%3D2%26nextPageToken%3Dab%25C3>; rel=\"next\"",
                Some("https://api.example:8444/redirections?perPage=2&nextPageToken=ab%C3"),
                "the whole URL is encoded once more",
            ),
            (
                "<http%3A%2F%2Felsewhere.example%2Fx%3Fa%3Db>; rel=\"next\"",
                Some("https://api.example:8444/x?a=b"),
                "the key never goes to another host",
            ),
            ("<https%3A%2F%2Fapi.example%2F>; rel=\"prev\"", None, "only the next page"),
            ("nonsense", None, "not a link"),
        ] {
            assert_eq!(next_page(&base, link).as_ref().map(Url::as_str), expected, "{why}");
        }
    }
}
