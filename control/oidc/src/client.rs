//! The client that asks the provider.
//!
//! The issuer is a setting of the platform operator, who may have it in a private network: so addresses are not
//! restricted as those of webhooks are. Redirects are not followed, no proxy of the environment is used, every URL must
//! be allowed by the settings, and answers are read up to a limit.

use std::{pin::Pin, time::Duration};

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::{Certificate, Client, redirect::Policy};
use url::Url;

use crate::settings::OidcSettings;

/// Longest time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time for the provider, in one request or all requests of a step.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest answer: a hundred times the metadata and keys of the large providers.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Asks the provider.
#[derive(Clone)]
pub(crate) struct ProviderClient {
    client: Client,
    settings: OidcSettings,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    /// A URL of the metadata has no TLS.
    #[error("the provider names a URL without TLS")]
    Insecure,
    /// Nothing came in time.
    #[error("no answer in time")]
    Timeout,
    /// No connection could be made.
    #[error("no connection could be made")]
    Connect,
    /// It ended in the middle.
    #[error("the connection broke")]
    Broken,
    /// The answer is too long.
    #[error("the answer has more than 1 MiB")]
    TooLong,
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() {
            Self::Connect
        } else {
            Self::Broken
        }
    }
}

impl ProviderClient {
    /// A client that trusts the authority of the settings alone, or those of the system.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(settings: OidcSettings) -> Result<Self, String> {
        let builder = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // Sign-ins are rare: a connection that the provider closed meanwhile would break one.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("Waymark/", env!("CARGO_PKG_VERSION")));
        let builder = match settings.ca() {
            Some(pem) => {
                builder.tls_certs_only(Certificate::from_pem_bundle(pem).map_err(|error| error.to_string())?)
            }
            None => builder,
        };
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { client, settings })
    }

    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| HttpError::Insecure)?;
        if !self.settings.allows(&url) {
            return Err(HttpError::Insecure);
        }
        let asked = self.client.request(parts.method, url).headers(parts.headers).body(body);
        let mut answer = asked.send().await?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = HttpResponse::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderClient {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask(request))
    }
}
