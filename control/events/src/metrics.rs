//! Counters of the event feed, webhooks, reactions and the broker.

use ::kernel::buckets::{PUSH_SECONDS, REQUEST_SECONDS};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

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
            delay_seconds: Histogram::new(PUSH_SECONDS),
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
    /// Events that waited because their account had more than its share.
    pub deferred: Counter,
    /// Of these, events that wait no longer.
    pub resumed: Counter,
    /// Of these, events that the log removed before.
    pub deferred_lost: Counter,
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
            deferred: Counter::default(),
            resumed: Counter::default(),
            deferred_lost: Counter::default(),
            delay_seconds: Histogram::new(REQUEST_SECONDS),
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
            (
                "fan_out_deferred",
                "Events that waited as their account had more than its share",
                &self.deferred,
            ),
            ("fan_out_resumed", "Of the deferred events those that wait no longer", &self.resumed),
            ("fan_out_lost", "Of the resumed events those that the log had removed", &self.deferred_lost),
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
            delay_seconds: Histogram::new(REQUEST_SECONDS),
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
