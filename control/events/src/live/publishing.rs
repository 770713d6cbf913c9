//! The publishes of an MQTT connection.

use mqtt5::{
    QoS, WillMessage,
    packet::{puback::PubAckPacket, publish::PublishPacket, pubrec::PubRecPacket},
    protocol::v5::reason_codes::ReasonCode,
};
use serde_json::{Value, json};
use shared::problem::{Code, Problem};

use super::{
    Broker,
    link::Link,
    session::{End, MAX_UNRELEASED, Session},
};
use web::known_members::Unknown;

use crate::{
    domain::topic::Topic,
    error::{EventsError, ServiceError},
    service::{connections, live},
};

/// Longest reason, in characters.
const MAX_REASON: usize = 1_000;

impl<L: Link> Session<L> {
    pub(super) async fn published(&mut self, message: PublishPacket) -> Result<(), End> {
        if message.properties.get_topic_alias().is_some() {
            return Err(End::Ours(ReasonCode::TopicAliasInvalid));
        }
        if message.retain && self.version == 5 {
            return Err(End::Ours(ReasonCode::RetainNotSupported));
        }
        let id = match (message.qos, message.packet_id) {
            (QoS::AtMostOnce, _) => 0,
            (_, Some(id)) if id > 0 => id,
            (_, _) => return Err(End::Ours(ReasonCode::ProtocolError)),
        };
        if message.qos == QoS::ExactlyOnce {
            // A retransmission of a message that was already written.
            if self.unreleased.contains(&id) {
                return self.send(&PubRecPacket::new(id)).await;
            }
            if self.unreleased.len() >= usize::from(MAX_UNRELEASED) {
                return Err(End::Ours(ReasonCode::ReceiveMaximumExceeded));
            }
        }
        self.admitted().await?;
        let written = self.write_message(&message.topic_name, &message.payload).await;
        let metrics = &self.broker.connections.metrics;
        let reason = match &written {
            Ok(_) => {
                metrics.published.inc();
                ReasonCode::Success
            }
            Err((error, reason)) => {
                metrics.failed.inc();
                if error.code().status() >= 500 {
                    tracing::error!(%error, "a message was not written");
                    // MQTT 3.1.1 can only not acknowledge: the client sends it again.
                    if self.version != 5 && message.qos != QoS::AtMostOnce {
                        return Err(End::Gone);
                    }
                }
                *reason
            }
        };
        match &written {
            Ok(unknown) if unknown.is_empty() => {}
            Ok(unknown) => self.send_problem(&ignored(unknown, &message.topic_name)).await?,
            Err((error, _)) => {
                let problem = problem(error, &message.topic_name, &self.broker.docs_url);
                self.send_problem(&problem).await?;
            }
        }
        let text = written.err().map(|(error, _)| reason_text(&error)).filter(|_| self.explains);
        let reason = if self.version == 5 { reason } else { ReasonCode::Success };
        match message.qos {
            QoS::AtMostOnce => Ok(()),
            QoS::AtLeastOnce => {
                let mut answer = PubAckPacket::new_with_reason(id, reason);
                if let (Some(text), 5) = (text, self.version) {
                    answer.properties.set_reason_string(text);
                }
                self.send(&answer).await
            }
            QoS::ExactlyOnce => {
                let mut answer = PubRecPacket::new_with_reason(id, reason);
                if let (Some(text), 5) = (text, self.version) {
                    answer.properties.set_reason_string(text);
                }
                // After an error the id is free again (MQTT 5, 4.3.3).
                if reason == ReasonCode::Success {
                    self.unreleased.insert(id);
                }
                self.send(&answer).await
            }
        }
    }

    /// Publishes the will of a client that went without a good-bye, unless its key is not valid any more: its end may be
    /// the reason that the connection ended.
    pub(super) async fn publish_will(&mut self, will: &WillMessage) {
        match connections::is_valid(&self.broker, &self.key, self.ip).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::debug!(%error, "a will was not written");
                return;
            }
        }
        if let Err((error, _)) = self.write_message(&will.topic, &will.payload).await {
            tracing::debug!(%error, "a will was not written");
        }
    }

    /// Writes a message; returns what of it is not known and was ignored.
    async fn write_message(
        &mut self,
        topic: &str,
        payload: &[u8],
    ) -> Result<Unknown, (ServiceError, ReasonCode)> {
        let topic = Topic::parse(topic)
            .map_err(|fault| (EventsError::Topic(fault).into(), ReasonCode::TopicNameInvalid))?;
        write(&self.broker, &self.sender(), &topic, payload).await.map_err(|error| {
            let reason = reason(error.code());
            (error, reason)
        })
    }

    /// Waits until the caller may make a request.
    pub(super) async fn admitted(&mut self) -> Result<(), End> {
        if self.broker.admit(&self.caller, &self.key, &self.connection).await {
            return Ok(());
        }
        Err(if self.broker.connections.stopping.is_cancelled() { End::STOPPING } else { self.ended() })
    }
}

/// Writes a message with the members that the topic's request knows; returns the others, which are ignored.
pub(super) async fn write(
    broker: &Broker,
    sender: &live::Sender<'_>,
    topic: &Topic,
    payload: &[u8],
) -> Result<Unknown, ServiceError> {
    let mut body = live::read(payload)?;
    let unknown = (broker.remove_unknown)(topic, &mut body);
    live::publish(broker, sender, topic, &body).await?;
    Ok(unknown)
}

/// What `X-Ignored` would name in an answer, with the topic.
pub(super) fn ignored(unknown: &Unknown, topic: &str) -> Value {
    let (names, more) = unknown.names();
    let mut report = json!({"topic": topic, "ignored": names});
    if more > 0 {
        report["more"] = more.into();
    }
    report
}

/// The error as HTTP would answer it, with the topic.
pub(super) fn problem(error: &ServiceError, topic: &str, docs_url: &str) -> Value {
    let errors = match error {
        ServiceError::Refused { errors, .. } => errors.clone(),
        ServiceError::Store(_) | ServiceError::Full(_) | ServiceError::Internal(_) => Vec::new(),
    };
    let mut problem = json!(Problem::new(error.code(), errors, docs_url));
    if let Value::Object(members) = &mut problem {
        members.insert("topic".to_owned(), json!(topic));
    }
    problem
}

/// The reason as MQTT tells it.
pub(super) fn reason_text(error: &ServiceError) -> String {
    let text = match error {
        ServiceError::Refused { errors, .. } if !errors.is_empty() => errors.join(" "),
        _ => error.code().text().to_owned(),
    };
    text.chars().take(MAX_REASON).collect()
}

/// The nearest of the reasons that MQTT 5 has.
fn reason(code: Code) -> ReasonCode {
    match code.status() {
        400 | 413 | 415 => ReasonCode::PayloadFormatInvalid,
        401 | 403 | 404 => ReasonCode::NotAuthorized,
        429 => ReasonCode::QuotaExceeded,
        status if status < 500 => ReasonCode::ImplementationSpecificError,
        _ => ReasonCode::UnspecifiedError,
    }
}
