//! Counters of the edge, shown by `/metrics`.

use std::{sync::Arc, time::Duration};

use http::{Response, StatusCode, header::CONTENT_TYPE};
use platform::Refused;
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge, info::Info},
    registry::Registry,
};

use crate::cache::CacheStatus;

mod forms;

pub(crate) use self::forms::{Counters, Latencies, Reading, Readings};

/// Statuses of responses of the edge, or of control through it, in order; the last text stands for any other.
const STATUSES: [u16; 26] = [
    200, 201, 202, 204, 206, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 413, 421, 422, 429,
    431, 500, 502, 503, 504,
];
const STATUS_TEXTS: [&str; 27] = [
    "200", "201", "202", "204", "206", "300", "301", "302", "304", "307", "308", "400", "401", "403", "404",
    "405", "409", "413", "421", "422", "429", "431", "500", "502", "503", "504", "other",
];

/// What an answer was, for the latency: they differ by orders of magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To the target of a short URL.
    Redirect,
    /// A code as an image or a document.
    Image,
    /// What control answered through the edge.
    Proxied,
    /// Refusals, records, what robots ask for.
    Other,
}

/// Why the edge refuses connections.
const REFUSALS: [Refused; 2] = [Refused::Full, Refused::Address];

const KINDS: [&str; 4] = ["redirect", "image", "proxied", "other"];

impl Kind {
    /// The kind of an answer that did not come from control.
    pub(crate) fn of<B>(response: &Response<B>) -> Self {
        match response.status() {
            StatusCode::TEMPORARY_REDIRECT
            | StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::PERMANENT_REDIRECT => Self::Redirect,
            StatusCode::NOT_MODIFIED => Self::Image,
            StatusCode::OK => match response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes()) {
                Some(kind) if kind.starts_with(b"image/") => Self::Image,
                Some(b"application/pdf" | b"application/postscript") => Self::Image,
                Some(_) | None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// Counters of one edge.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Answers by status, in the order of [`STATUS_TEXTS`].
    responses: Counters<{ STATUS_TEXTS.len() }>,
    /// Look-ups by cache status, in the order of [`CacheStatus::ALL`].
    lookups: Counters<{ CacheStatus::ALL.len() }>,
    /// By kind of answer, in the order of [`KINDS`].
    latency: Latencies<{ KINDS.len() }>,
    /// Views that the fill rule refused.
    pub(crate) rejected_fills: Counter,
    /// Misses without a verified answer (503).
    pub(crate) unanswered: Counter,
    /// Misses refused by a limiter.
    pub(crate) limited: Counter,
    /// 1 while misses are refused in masses: an alarm.
    pub(crate) miss_storm: Gauge,
    /// Events that could not be applied: an alarm.
    pub(crate) rejected_events: Counter,
    /// Times the stream was connected.
    pub(crate) connects: Counter,
    /// Gaps found in the stream.
    pub(crate) resyncs: Counter,
    /// Connections refused by a limit.
    refused_connections: Counters<{ REFUSALS.len() }>,
    /// Connections open.
    pub(crate) connections: Gauge,
    /// Images rendered (not cached).
    pub(crate) rendered: Counter,
    /// Those of the recording of scans.
    pub(crate) scans: Arc<scans::Metrics>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            responses: Counters::new("status", STATUS_TEXTS),
            lookups: Counters::new("status", CacheStatus::ALL.map(CacheStatus::as_str)),
            latency: Latencies::new("kind", KINDS),
            rejected_fills: Counter::default(),
            unanswered: Counter::default(),
            limited: Counter::default(),
            miss_storm: Gauge::default(),
            rejected_events: Counter::default(),
            connects: Counter::default(),
            resyncs: Counter::default(),
            refused_connections: Counters::new("reason", REFUSALS.map(Refused::as_str)),
            connections: Gauge::default(),
            rendered: Counter::default(),
            scans: Arc::default(),
        }
    }
}

impl Metrics {
    /// Counts one answer.
    pub(crate) fn answered(&self, kind: Kind, status: StatusCode, took: Duration) {
        self.responses.inc(STATUSES.binary_search(&status.as_u16()).unwrap_or(STATUSES.len()));
        // Declared in the order of `KINDS`, so the cast is the index.
        self.latency.observe(kind as usize, took);
    }

    /// Counts a connection that was refused.
    pub(crate) fn refused_connection(&self, reason: Refused) {
        if let Some(at) = REFUSALS.iter().position(|known| *known == reason) {
            self.refused_connections.inc(at);
        }
    }

    /// Counts one look-up.
    pub(crate) fn looked_up(&self, status: CacheStatus) {
        // `ALL` lists the variants in order of declaration, so the cast is the index.
        self.lookups.inc(status as usize);
    }

    /// Look-ups of one status so far.
    pub(crate) fn lookups(&self, status: CacheStatus) -> u64 {
        self.lookups.get(status as usize)
    }

    /// Registers every counter; they stay shared with the registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The build that runs", build);
        registry.register("responses", "Answers by status", self.responses.clone());
        registry.register("lookups", "Look-ups of redirections by cache status", self.lookups.clone());
        registry.register("response_seconds", "Time to an answer by kind of answer", self.latency.clone());
        let refused = self.refused_connections.clone();
        registry.register("connections_refused", "Connections refused by a limit", refused);
        for (name, help, counter) in [
            ("fills_rejected", "Views refused by the fill rule", &self.rejected_fills),
            ("misses_unanswered", "Misses without a verified answer", &self.unanswered),
            ("misses_limited", "Misses refused by a limiter", &self.limited),
            ("events_rejected", "Changes that could not be applied", &self.rejected_events),
            ("stream_connects", "Connections of the change stream", &self.connects),
            ("stream_resyncs", "Gaps found in the change stream", &self.resyncs),
            ("images_rendered", "Codes rendered", &self.rendered),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            ("connections", "Connections open", &self.connections),
            ("miss_storm", "1 while misses are refused in masses", &self.miss_storm),
        ] {
            registry.register(name, help, gauge.clone());
        }
        self.scans.register(registry);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn every_status_has_its_text() {
        assert!(STATUSES.is_sorted());
        for (status, text) in STATUSES.iter().zip(STATUS_TEXTS) {
            assert_eq!(status.to_string(), text);
        }
    }

    #[test]
    fn answers_are_counted_by_status_and_kind() {
        let metrics = Metrics::default();
        let mut registry = Registry::with_prefix("waymark_edge");
        metrics.register(&mut registry);
        for (status, kind) in [
            (307, "redirect"),
            (301, "redirect"),
            (302, "redirect"),
            (308, "redirect"),
            (200, "image/png"),
            (404, "x"),
            (418, "x"),
            (304, "x"),
            (200, "text/html"),
        ] {
            let response = Response::builder().status(status).header(CONTENT_TYPE, kind).body(()).unwrap();
            metrics.answered(Kind::of(&response), response.status(), Duration::from_micros(20));
        }
        metrics.answered(Kind::Proxied, StatusCode::OK, Duration::from_millis(30));
        let mut shown = String::new();
        text::encode(&mut shown, &registry).unwrap();
        for line in [
            "waymark_edge_build_info{version=\"0.1.0\"} 1",
            "waymark_edge_responses_total{status=\"200\"} 3",
            "waymark_edge_responses_total{status=\"307\"} 1",
            "waymark_edge_responses_total{status=\"308\"} 1",
            "waymark_edge_responses_total{status=\"other\"} 1",
            "waymark_edge_responses_total{status=\"503\"} 0",
            "waymark_edge_response_seconds_count{kind=\"image\"} 2",
            "waymark_edge_response_seconds_count{kind=\"other\"} 3",
            "waymark_edge_response_seconds_bucket{le=\"0.000025\",kind=\"redirect\"} 4",
            "waymark_edge_response_seconds_bucket{le=\"0.025\",kind=\"proxied\"} 0",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line} is missing in {shown}");
        }
        let types: Vec<&str> = shown.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut names = types.clone();
        names.dedup();
        assert_eq!(types, names, "a metric is described once");
    }
}
