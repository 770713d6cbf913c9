//! Whether a client is let in, by its CONNECT.

use mqtt5::{packet::connect::ConnectPacket, protocol::v5::reason_codes::ReasonCode};
use platform::Refused;
use shared::problem::Code;

use super::{
    super::{Broker, publishing},
    Limits,
};
use crate::{
    domain::{
        access::{Actor, hash_key},
        api_key::{KnownKey, is_of_key},
    },
    error::{CommonError, ServiceError},
    service::{
        access, capacity,
        connections::{self, Connection},
        live,
    },
};

/// Longest client id, in bytes.
const MAX_CLIENT_ID: usize = 256;

pub(super) struct Admitted {
    pub(super) actor: Actor,
    pub(super) key: [u8; 32],
    pub(super) connection: Connection,
    pub(super) assigned: Option<String>,
}

/// Accepts a client, or returns the reason against it.
pub(super) async fn admit(
    broker: &Broker,
    connect: &ConnectPacket,
    limits: &Limits,
) -> Result<Admitted, (ReasonCode, String)> {
    let refuse = |reason, text: &str| Err((reason, text.to_owned()));
    if !matches!(connect.protocol_version, 4 | 5) {
        return refuse(ReasonCode::UnsupportedProtocolVersion, "The versions are 3.1.1 and 5.");
    }
    if connect.properties.get_authentication_method().is_some() {
        return refuse(ReasonCode::BadAuthenticationMethod, "The only way in is the key as the password.");
    }
    if connect.client_id.len() > MAX_CLIENT_ID
        || (connect.client_id.is_empty() && !connect.clean_start && connect.protocol_version == 4)
    {
        return refuse(ReasonCode::ClientIdentifierNotValid, "The client id must have 1 to 256 bytes.");
    }
    if connect.will.as_ref().is_some_and(|will| will.retain) && connect.protocol_version == 5 {
        return refuse(ReasonCode::RetainNotSupported, "Nothing is retained: the API has the latest values.");
    }
    let password = connect.password.as_deref().and_then(|password| std::str::from_utf8(password).ok());
    let key = password.filter(|key| !key.is_empty()).or(limits.token.as_deref());
    let Some(key) = key else {
        return refuse(ReasonCode::BadUsernameOrPassword, "No API key was sent: it is the password.");
    };
    let actor = match access::identify_key(broker, key, limits.ip).await.and_then(actor_of) {
        Ok(actor) => actor,
        Err(error) if is_of_key(error.code()) => {
            if broker.limiter.refusal(limits.limited_as).is_some_and(|verdict| !verdict.is_allowed) {
                return refuse(
                    ReasonCode::ConnectionRateExceeded,
                    "Too many connections without a known key.",
                );
            }
            let is_elsewhere = error.code() == Code::ForeignNetwork;
            let reason =
                if is_elsewhere { ReasonCode::NotAuthorized } else { ReasonCode::BadUsernameOrPassword };
            return refuse(reason, error.code().text());
        }
        Err(error) => return Err(unavailable(&error)),
    };
    if !live::may_connect(&actor) {
        return refuse(ReasonCode::NotAuthorized, "A key of this kind has nothing to hear or to say here.");
    }
    let key = hash_key(key);
    let held = limits.permit.as_ref().map(|permit| permit.hold(&capacity::holder(&actor, key), limits.ip));
    if let Some(Err(reason)) = held {
        let code = match reason {
            Refused::Key | Refused::Account | Refused::Address => ReasonCode::QuotaExceeded,
            Refused::Full
            | Refused::Public
            | Refused::Displaced
            | Refused::HeadersLate
            | Refused::Idle
            | Refused::SlowReader => ReasonCode::ServerBusy,
        };
        return refuse(code, "Too many connections are open; try again later.");
    }
    let assigned = connect.client_id.is_empty().then(|| broker.random16().map(hex)).transpose();
    let assigned = assigned.map_err(|error| unavailable(&error.into()))?;
    let client = assigned.as_deref().unwrap_or(&connect.client_id);
    let opened = connections::open(broker, &actor, key, limits.ip, Some(client)).await;
    let connection = opened.map_err(|error| match error.code() {
        Code::NotFound => (ReasonCode::NotAuthorized, "The Thng is not there.".to_owned()),
        Code::OpenQuotaUsedUp => (ReasonCode::QuotaExceeded, publishing::reason_text(&error)),
        _ => unavailable(&error),
    })?;
    Ok(Admitted { actor, key, connection, assigned })
}

/// Whose a key is. That of a session is none here: it counts for requests of the console.
fn actor_of(known: KnownKey) -> Result<Actor, ServiceError> {
    if known.is_session {
        return Err(CommonError::Key(Code::KeyUnknown).into());
    }
    Ok(known.actor)
}

fn unavailable(error: &ServiceError) -> (ReasonCode, String) {
    tracing::error!(%error, "a connection could not be accepted");
    (ReasonCode::ServerUnavailable, "The service is not available; try again.".to_owned())
}

fn hex(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
