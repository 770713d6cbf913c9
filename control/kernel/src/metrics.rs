//! Counters of control, shown by `http::admin`. They depend on nothing else.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Upper bounds in seconds for requests: a read takes a millisecond, the longest upload an hour.
const REQUEST_BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// Upper bounds in seconds for the way of a change: the target is 5 ms to 100 edges, the floor a poll of 25 ms.
const PUSH_BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// Requests in one transaction: the writer takes at most 256.
const GROUP_BOUNDS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Why a request failed with a 5xx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Failure {
    /// A statement ran longer than allowed.
    StatementTimeout,
    /// The request as a whole took too long.
    RequestTimeout,
    /// The database is away, or no connection became free.
    Database,
    /// The store of files failed.
    Blobs,
    /// All places of a pool are taken.
    Full,
    /// A handler panicked.
    Panic,
    /// Anything else.
    Internal,
}

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
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_BOUNDS)),
            failures: Family::default(),
            database_size: Gauge::default(),
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

/// Groups of changes that share a transaction.
#[derive(Debug, Clone)]
pub struct WriterMetrics {
    /// Requests in one transaction.
    pub group_size: Histogram,
    /// Time of one transaction.
    pub group_seconds: Histogram,
    /// Transactions that did not commit.
    pub failed_groups: Counter,
    /// Changes refused because too many wait.
    pub refused: Counter,
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            group_size: Histogram::new(GROUP_BOUNDS),
            group_seconds: Histogram::new(REQUEST_BOUNDS),
            failed_groups: Counter::default(),
            refused: Counter::default(),
        }
    }
}

impl WriterMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let (size, seconds) = (self.group_size.clone(), self.group_seconds.clone());
        registry.register("writer_group_size", "Requests in a transaction of the writer", size);
        registry.register("writer_group_seconds", "Time of a transaction of the writer", seconds);
        let help = "Transactions of the writer that did not commit";
        registry.register("writer_groups_failed", help, self.failed_groups.clone());
        registry.register("writer_refused", "Changes refused because too many wait", self.refused.clone());
    }
}

/// The change log and its way to the edges.
#[derive(Debug, Clone)]
pub struct StreamMetrics {
    /// From reading a change to an edge's acknowledgement.
    pub push_seconds: Histogram,
    /// How long `wait=edges` took.
    pub wait_seconds: Histogram,
    /// `wait=edges` that ended at its deadline.
    pub waits_expired: Counter,
    /// Times the change log could not be read.
    pub read_failures: Counter,
    /// Revisions that were compacted.
    pub compacted: Counter,
    /// Edges that had to read everything again.
    pub resyncs: Counter,
    /// Connections of edges that were refused.
    pub rejected: Counter,
}

impl Default for StreamMetrics {
    fn default() -> Self {
        Self {
            push_seconds: Histogram::new(PUSH_BOUNDS),
            wait_seconds: Histogram::new(PUSH_BOUNDS),
            waits_expired: Counter::default(),
            read_failures: Counter::default(),
            compacted: Counter::default(),
            resyncs: Counter::default(),
            rejected: Counter::default(),
        }
    }
}

impl StreamMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let (push, wait) = (self.push_seconds.clone(), self.wait_seconds.clone());
        registry.register("push_seconds", "From reading a change to an edge's acknowledgement", push);
        registry.register("wait_edges_seconds", "How long wait=edges took", wait);
        for (name, help, counter) in [
            ("wait_edges_expired", "wait=edges that ended at its deadline", &self.waits_expired),
            ("log_read_failures", "Times the change log could not be read", &self.read_failures),
            ("log_compacted_revs", "Revisions deleted from the change log", &self.compacted),
            ("edge_resyncs", "Times an edge asked for the stream anew", &self.resyncs),
            ("edge_rejected", "Changes that an edge refused", &self.rejected),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

/// The feed of subscribers.
#[derive(Debug)]
pub struct FeedMetrics {
    /// From the writing of an event to its subscribers.
    pub delay_seconds: Histogram,
    /// Messages that were handed to connections.
    pub delivered: Counter,
    /// Messages whose connection was too slow, and was ended.
    pub lost: Counter,
    /// Times the change log could not be read.
    pub read_failures: Counter,
}

impl Default for FeedMetrics {
    fn default() -> Self {
        Self {
            delay_seconds: Histogram::new(PUSH_BOUNDS),
            delivered: Counter::default(),
            lost: Counter::default(),
            read_failures: Counter::default(),
        }
    }
}

impl FeedMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let delay = self.delay_seconds.clone();
        registry.register("feed_delay_seconds", "From the writing of an event to its subscribers", delay);
        for (name, help, counter) in [
            ("feed_messages", "Messages that were handed to connections", &self.delivered),
            ("feed_messages_lost", "Messages whose connection was too slow, and was ended", &self.lost),
            ("feed_read_failures", "Times the events could not be read", &self.read_failures),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

/// Webhooks.
#[derive(Debug)]
pub struct WebhookMetrics {
    /// Events that receivers took.
    pub delivered: Counter,
    /// Tries that no receiver took.
    pub failed: Counter,
    /// Events that were given up after a day.
    pub dead: Counter,
    /// Events that waited for three days and were removed.
    pub expired: Counter,
    /// Webhooks that were paused as their receivers are dead.
    pub paused: Counter,
    /// Events that found the queue of a webhook full.
    pub dropped: Counter,
    /// From the queue of a webhook to its receiver.
    pub delay_seconds: Histogram,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            delivered: Counter::default(),
            failed: Counter::default(),
            dead: Counter::default(),
            expired: Counter::default(),
            paused: Counter::default(),
            dropped: Counter::default(),
            delay_seconds: Histogram::new(REQUEST_BOUNDS),
        }
    }
}

impl WebhookMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("webhook_deliveries", "Events that receivers took", &self.delivered),
            ("webhook_failures", "Tries that no receiver took", &self.failed),
            ("webhook_dead", "Events that were given up after a day", &self.dead),
            ("webhook_expired", "Events that waited for three days and were removed", &self.expired),
            ("webhook_paused", "Webhooks that were paused as their receivers are dead", &self.paused),
            ("webhook_dropped", "Events that found the queue of a webhook full", &self.dropped),
        ] {
            registry.register(name, help, counter.clone());
        }
        let delay = self.delay_seconds.clone();
        registry.register("webhook_delay_seconds", "From the queue of a webhook to its receiver", delay);
    }
}

/// Reactions.
#[derive(Debug)]
pub struct ReactionMetrics {
    /// Times a reaction was carried out.
    pub done: Counter,
    /// Times a reaction could not be carried out.
    pub failed: Counter,
    /// Events that found the queue of an account's reactions full.
    pub dropped: Counter,
    /// Events that were not reacted to, as a loop would come of it.
    pub cut: Counter,
    /// Times the database failed on a reaction, which is tried again.
    pub put_off: Counter,
    /// From the queue of a reaction to its effect.
    pub delay_seconds: Histogram,
}

impl Default for ReactionMetrics {
    fn default() -> Self {
        Self {
            done: Counter::default(),
            failed: Counter::default(),
            dropped: Counter::default(),
            cut: Counter::default(),
            put_off: Counter::default(),
            delay_seconds: Histogram::new(REQUEST_BOUNDS),
        }
    }
}

impl ReactionMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("reactions_done", "Times a reaction was carried out", &self.done),
            ("reactions_failed", "Times a reaction could not be carried out", &self.failed),
            (
                "reactions_dropped",
                "Events that found the queue of an account's reactions full",
                &self.dropped,
            ),
            ("reactions_cut", "Events that were not reacted to, as a loop would come of it", &self.cut),
            (
                "reactions_put_off",
                "Times the database failed on a reaction, which is tried again",
                &self.put_off,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        let delay = self.delay_seconds.clone();
        registry.register("reaction_delay_seconds", "From the queue of a reaction to what it does", delay);
    }
}

/// The broker.
#[derive(Debug, Default)]
pub struct BrokerMetrics {
    /// Connections that were let in.
    pub connected: Counter,
    /// Connections that were not let in.
    pub refused: Counter,
    /// Messages that clients published and that were written.
    pub published: Counter,
    /// Messages that were not written.
    pub failed: Counter,
}

impl BrokerMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("broker_connects", "Connections that were let in", &self.connected),
            ("broker_refused", "Connections that were not let in", &self.refused),
            ("broker_published", "Messages that clients published and that were written", &self.published),
            ("broker_publish_failures", "Messages that were not written", &self.failed),
        ] {
            registry.register(name, help, counter.clone());
        }
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
