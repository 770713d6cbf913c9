//! The subscriptions of an MQTT connection.

use bytes::Bytes;
use mqtt5::{
    QoS,
    packet::{
        publish::PublishPacket,
        suback::{SubAckPacket, SubAckReasonCode},
        subscribe::{SubscribePacket, TopicFilter},
        unsuback::{UnsubAckPacket, UnsubAckReasonCode},
        unsubscribe::UnsubscribePacket,
    },
};

use super::{
    link::Link,
    packets,
    session::{End, Session},
};
use crate::{
    channels::{Delivery, Subscription},
    domain::topic::{Filter, TopicFault},
    service::live,
};

/// Most subscriptions of one connection.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The topic on which a connection receives faults of its own messages, because MQTT 3.1.1 has no other way to report
/// them.
pub(super) const ERRORS: &str = "/errors";

/// A subscription as the connection holds it.
pub(super) struct Subscribed {
    /// None for [`ERRORS`].
    filter: Option<Filter>,
    qos: QoS,
    no_local: bool,
    /// The client's own number.
    identifier: Option<u32>,
    number: u64,
    /// Ends when dropped.
    _subscription: Option<Subscription>,
}

impl<L: Link> Session<L> {
    pub(super) async fn subscribe(&mut self, request: SubscribePacket) -> Result<(), End> {
        let mut answer = if self.version == 5 {
            SubAckPacket::new(request.packet_id)
        } else {
            SubAckPacket::new_v311(request.packet_id)
        };
        let identifier = request.properties.get_subscription_identifier();
        for wanted in &request.filters {
            self.admitted().await?;
            answer.reason_codes.push(self.listen(wanted, identifier).await);
        }
        self.send(&answer).await
    }

    async fn listen(&mut self, wanted: &TopicFilter, identifier: Option<u32>) -> SubAckReasonCode {
        let text = wanted.filter.as_str();
        if !self.subscriptions.contains_key(text) && self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return SubAckReasonCode::QuotaExceeded;
        }
        let qos = if wanted.options.qos == QoS::AtMostOnce { QoS::AtMostOnce } else { QoS::AtLeastOnce };
        let number = self.next_subscription;
        let mut subscribed = Subscribed {
            filter: None,
            qos,
            no_local: wanted.options.no_local,
            identifier,
            number,
            _subscription: None,
        };
        if text != ERRORS {
            if text.starts_with("$share/") {
                return SubAckReasonCode::SharedSubscriptionsNotSupported;
            }
            let filter = match Filter::parse(text) {
                Ok(filter) => filter,
                Err(TopicFault::Wildcard) => return SubAckReasonCode::WildcardSubscriptionsNotSupported,
                Err(TopicFault::Unknown | TopicFault::Invalid) => {
                    return SubAckReasonCode::TopicFilterInvalid;
                }
            };
            let (channel, limit) = match live::channel(&self.broker, &self.caller, &filter.topic).await {
                Ok(found) => found,
                Err(error) if error.code().status() < 500 => return SubAckReasonCode::NotAuthorized,
                Err(error) => {
                    tracing::error!(%error, "a subscription failed");
                    return SubAckReasonCode::UnspecifiedError;
                }
            };
            let channels = self.broker.feed.channels();
            let account = self.caller.account;
            subscribed._subscription =
                Some(channels.subscribe(account, channel, limit, number, self.ear.clone()));
            subscribed.filter = Some(filter);
        }
        self.next_subscription += 1;
        if let Some(before) = self.subscriptions.insert(text.to_owned(), subscribed) {
            self.filters.remove(&before.number);
        }
        self.filters.insert(number, text.to_owned());
        SubAckReasonCode::from_qos(qos)
    }

    pub(super) async fn unsubscribe(&mut self, request: &UnsubscribePacket) -> Result<(), End> {
        let mut answer = if self.version == 5 {
            UnsubAckPacket::new(request.packet_id)
        } else {
            UnsubAckPacket::new_v311(request.packet_id)
        };
        for filter in &request.filters {
            answer.reason_codes.push(match self.subscriptions.remove(filter) {
                Some(subscribed) => {
                    self.filters.remove(&subscribed.number);
                    UnsubAckReasonCode::Success
                }
                None => UnsubAckReasonCode::NoSubscriptionExisted,
            });
        }
        self.send(&answer).await
    }

    /// The packet of a delivery; `None` when it is not for the client after all.
    pub(super) fn message(&mut self, delivery: &Delivery) -> Result<Option<Bytes>, End> {
        let found = self.filters.get(&delivery.subscription).and_then(|text| self.subscriptions.get(text));
        // It was on its way when the subscription ended.
        let Some(Subscribed { filter: Some(filter), qos, no_local, identifier, .. }) = found else {
            return Ok(None);
        };
        let content = &delivery.content;
        if *no_local && content.origin.as_deref() == Some(self.connection.id.as_str()) {
            return Ok(None);
        }
        let (name, qos, identifier) = (filter.name(&content.last), *qos, *identifier);
        self.pack(name, content.payload.clone(), qos, identifier)
    }

    /// Reports a fault in one of its own messages to the connection, if it is subscribed to faults.
    pub(super) async fn send_problem(&mut self, problem: &serde_json::Value) -> Result<(), End> {
        let Some(subscribed) = self.subscriptions.get(ERRORS) else { return Ok(()) };
        let (qos, identifier) = (subscribed.qos, subscribed.identifier);
        let payload = Bytes::from(problem.to_string());
        // A client that does not acknowledge gets further faults with QoS 0 only.
        let qos = if self.in_flight.has_room() { qos } else { QoS::AtMostOnce };
        match self.pack(ERRORS.to_owned(), payload, qos, identifier)? {
            Some(bytes) => self.write(bytes).await,
            None => Ok(()),
        }
    }

    fn pack(
        &mut self,
        name: String,
        payload: Bytes,
        qos: QoS,
        identifier: Option<u32>,
    ) -> Result<Option<Bytes>, End> {
        let mut packet = if self.version == 5 {
            PublishPacket::new(name, payload, qos)
        } else {
            PublishPacket::new_v311(name, payload, qos)
        };
        if let (Some(identifier), 5) = (identifier, self.version) {
            packet.properties.set_subscription_identifier(identifier);
        }
        // A client never gets a packet larger than it accepts (MQTT 5, 3.1.2.11.4).
        if packet.body_encoded_size().saturating_add(5) > self.max_message {
            return Ok(None);
        }
        if qos != QoS::AtMostOnce {
            packet.packet_id = Some(self.in_flight.take());
        }
        Ok(Some(packets::encode_message(&packet)?))
    }
}
