//! Counters of the API's requests, shown by `http::admin`.

use std::time::Duration;

use ::kernel::buckets::REQUEST_SECONDS;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use shared::time::UnixMillis;
use web::api_error::Failure;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    method: &'static str,
    status: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    route: String,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    reason: Failure,
}

/// Requests of the API.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<Answered, Counter>,
    request_seconds: Family<Asked, Histogram>,
    failures: Family<Failed, Counter>,
    database_size: Gauge,
    scans_size: Gauge,
    oldest_scan: Gauge,
    next_drop: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            failures: Family::default(),
            database_size: Gauge::default(),
            scans_size: Gauge::default(),
            oldest_scan: Gauge::default(),
            next_drop: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Counts an answer; `route` is the template of the path, never the path.
    pub fn answered(&self, route: &str, method: &http::Method, status: http::StatusCode, took: Duration) {
        let (route, method) = (route.to_owned(), method_label(method));
        let status = u64::from(status.as_u16());
        self.request_seconds
            .get_or_create(&Asked { route: route.clone(), method })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&Answered { route, method, status }).inc();
    }

    /// Notes how large the database is.
    pub fn database_is(&self, bytes: i64) {
        self.database_size.set(bytes);
    }

    /// Notes how large the store of scans is, when its oldest scan was created, and when its oldest month is removed.
    pub fn scans_are(&self, bytes: i64, oldest: Option<UnixMillis>, next_drop: Option<UnixMillis>) {
        let seconds = |at: Option<UnixMillis>| at.map_or(0, |at| at.0 / 1_000);
        self.scans_size.set(bytes);
        self.oldest_scan.set(seconds(oldest));
        self.next_drop.set(seconds(next_drop));
    }

    /// Counts a 5xx failure.
    pub fn failed(&self, reason: Failure) {
        self.failures.get_or_create(&Failed { reason }).inc();
    }

    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for reason in [
            Failure::StatementTimeout,
            Failure::RequestTimeout,
            Failure::Database,
            Failure::Blobs,
            Failure::Full,
            Failure::Panic,
            Failure::Internal,
        ] {
            // Present from the start, because an alert on an absent series never fires.
            drop(self.failures.get_or_create(&Failed { reason }));
        }
        let help = "Size of the database, looked at every 15 minutes";
        registry.register("database_size_bytes", help, self.database_size.clone());
        let help = "Size of the store of scans, looked at every 15 minutes";
        registry.register("scans_size_bytes", help, self.scans_size.clone());
        let help = "When the oldest scan was created, in seconds since 1970; 0 without one";
        registry.register("scans_oldest_timestamp_seconds", help, self.oldest_scan.clone());
        let help = "When the oldest month of scans is removed, in seconds since 1970; 0 without one";
        registry.register("scans_next_drop_timestamp_seconds", help, self.next_drop.clone());
        registry.register("requests", "Requests of the API by route", self.requests.clone());
        registry.register("request_seconds", "Time to an answer by route", self.request_seconds.clone());
        registry.register("failures", "Requests that failed for reasons of ours", self.failures.clone());
    }
}

/// Methods beyond those of the API share one label: the set of labels is closed.
fn method_label(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn requests_are_counted_by_template() {
        let (metrics, mut registry) = (Metrics::default(), Registry::with_prefix("waymark_control"));
        metrics.register(&mut registry);
        let took = Duration::from_millis(3);
        metrics.answered("/thngs/{id}", &http::Method::GET, http::StatusCode::OK, took);
        metrics.answered("/thngs/{id}", &http::Method::PATCH, http::StatusCode::METHOD_NOT_ALLOWED, took);
        metrics.failed(Failure::StatementTimeout);
        let mut shown = String::new();
        text::encode(&mut shown, &registry).unwrap();
        for line in [
            "waymark_control_requests_total{route=\"/thngs/{id}\",method=\"GET\",status=\"200\"} 1",
            "waymark_control_requests_total{route=\"/thngs/{id}\",method=\"other\",status=\"405\"} 1",
            "waymark_control_request_seconds_bucket{le=\"0.005\",route=\"/thngs/{id}\",method=\"GET\"} 1",
            "waymark_control_failures_total{reason=\"StatementTimeout\"} 1",
            "waymark_control_failures_total{reason=\"Panic\"} 0",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line} is missing in {shown}");
        }
    }
}
