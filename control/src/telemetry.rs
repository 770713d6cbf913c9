//! Logs on stderr, and spans of requests to an OTLP collector where one is configured.
//!
//! The edge only has the log: a span for each redirect would cost more than the redirect, and an OTLP client would
//! double the edge's dependencies. Requests that it forwards to control carry its request id.

use std::{
    future::Future,
    io::{IsTerminal, stderr},
    pin::Pin,
    time::Duration,
};

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use platform::settings::log_filter;
use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, fmt as lines, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::config::{ConfigError, LogFormat};

/// The crates of the control plane, which are the targets of its log lines and spans. `control` in a filter names all
/// of them.
const CRATES: [&str; 13] = [
    "control",
    "kernel",
    "secrets",
    "oidc",
    "tenants",
    "catalog",
    "redirects",
    "push",
    "actions",
    "commissioning",
    "assessment",
    "jobs",
    "events",
];

/// Longest export of a batch, and longest wait for the last one at the end.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where log and spans go.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// What to log: a level, or a filter such as `info,control=debug`.
    pub filter: &'a str,
    /// Form of its lines.
    pub format: LogFormat,
    /// Base URL of an OTLP collector, as `http://127.0.0.1:4318`.
    pub otlp_url: Option<&'a str>,
    /// Name of the service in spans.
    pub service: &'static str,
}

/// Keeps the export of spans alive; [`Telemetry::finish`] sends the last ones.
#[derive(Debug)]
#[must_use = "spans end with it"]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Sends pending spans, for at most five seconds.
    pub async fn finish(self) {
        let Some(provider) = self.0 else { return };
        let shutdown = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(EXPORT_TIMEOUT));
        if let Ok(Err(error)) = shutdown.await {
            tracing::warn!(%error, "the last spans did not reach the collector");
        }
    }
}

/// Sends the log of this process to stderr, and spans of requests to the collector; a second call in a process
/// changes nothing. Must be called inside the runtime, which carries the export.
///
/// # Errors
/// The filter or the URL cannot be read.
pub fn start(settings: &Settings<'_>) -> Result<Telemetry, ConfigError> {
    let filter = EnvFilter::try_new(log_filter(settings.filter, "control", &CRATES)).map_err(|error| {
        ConfigError::new("RUST_LOG", format!("{error}; give a level such as info, or info,control=debug"))
    })?;
    let provider = settings.otlp_url.map(|url| provider(url, settings.service)).transpose()?;
    let log: Box<dyn Layer<Registry> + Send + Sync> = match settings.format {
        LogFormat::Json => {
            lines::layer().json().flatten_event(true).with_writer(stderr).with_filter(filter).boxed()
        }
        LogFormat::Text => {
            lines::layer().with_ansi(wants_colours(&stderr())).with_writer(stderr).with_filter(filter).boxed()
        }
    };
    let spans = provider.as_ref().map(|provider| {
        // Only our own spans, whatever the log shows: libraries may put data into theirs that must not leave.
        let ours = Targets::new().with_targets(CRATES.map(|name| (name, Level::INFO)));
        tracing_opentelemetry::layer().with_tracer(provider.tracer("waymark")).with_filter(ours)
    });
    // A subscriber that stands already is the test's.
    let _ = tracing_subscriber::registry().with(log).with(spans).try_init();
    Ok(Telemetry(provider))
}

/// Whether a stream leads to a terminal whose owner has nothing against colours.
#[must_use]
pub fn wants_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn provider(url: &str, service: &'static str) -> Result<SdkTracerProvider, ConfigError> {
    let bad = |reason: String| ConfigError::new("WAYMARK_OTLP_URL", reason);
    let allowed = "give the base of a collector, such as http://127.0.0.1:4318";
    let parsed = url::Url::parse(url).map_err(|error| bad(format!("{error}; {allowed}")))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
        return Err(bad(format!("not http or https; {allowed}")));
    }
    let client = reqwest::Client::builder()
        .timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(|error| bad(format!("no client for it: {error}")))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", url.trim_end_matches('/')))
        .with_timeout(EXPORT_TIMEOUT)
        .with_http_client(OnRuntime { client, runtime: tokio::runtime::Handle::current() })
        .build()
        .map_err(|error| bad(format!("{error}; {allowed}")))?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name(service).with_attribute(version).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Sends requests of the exporter's own thread on the runtime, because the client only works there.
struct OnRuntime {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

shared::opaque!(OnRuntime);

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for OnRuntime {
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unusable_settings_are_named() {
        for (filter, otlp_url, key) in [
            ("control=loud", None, "RUST_LOG"),
            ("info", Some("127.0.0.1:4318"), "WAYMARK_OTLP_URL"),
            ("info", Some("ftp://collector"), "WAYMARK_OTLP_URL"),
            ("info", Some("collector"), "WAYMARK_OTLP_URL"),
        ] {
            let settings = Settings { filter, format: LogFormat::Text, otlp_url, service: "control" };
            let error = start(&settings).err().map(|error| error.key);
            assert_eq!(error, Some(key), "{filter} {otlp_url:?}");
        }
    }
}
