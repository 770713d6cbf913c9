//! WebSockets on the API's listeners: MQTT at `/mqtt`, and plain ones at paths that are topics.

use std::sync::Arc;

use axum::{
    extract::{FromRef, FromRequestParts, Request, State, WebSocketUpgrade},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use shared::problem::Code;
use web::{
    access::{Access, Authenticated, find_key},
    api_error::ApiError,
    permits,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        access::hash_key,
        limits::MAX_BODY_BYTES,
        permission::{Subject, Verb},
        quota::Quota,
        topic::Topic,
    },
    error::EventsError,
    live::{self, Broker, FromWebSocket, Limits},
    service::{access::require, live as service},
};

/// Where MQTT is spoken.
const MQTT_PATH: &str = "/mqtt";

/// The subprotocols of MQTT, as clients name them.
const PROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];

/// The state of the layer that opens them.
#[derive(Debug, Clone)]
pub struct Sockets(pub Arc<Broker>);

impl FromRef<Sockets> for Access {
    fn from_ref(Sockets(broker): &Sockets) -> Self {
        Self { core: broker.events.actions.core.clone(), limiter: broker.limiter.clone() }
    }
}

/// Takes requests for a WebSocket on paths that have one; all others go on.
pub async fn open(State(sockets): State<Sockets>, request: Request, next: Next) -> Response {
    if *request.method() != Method::GET || !asks_for_socket(request.headers()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    match upgrade(&sockets, &mut parts).await {
        Ok(Some(response)) => response,
        Ok(None) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => error.into_response(),
    }
}

fn asks_for_socket(headers: &HeaderMap) -> bool {
    let asked = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|name| name.eq_ignore_ascii_case("websocket"))
}

async fn upgrade(sockets: &Sockets, parts: &mut Parts) -> Result<Option<Response>, ApiError> {
    let Sockets(broker) = sockets;
    let Ok(info) = RequestInfo::from_request_parts(parts, sockets).await;
    let client = info.client;
    let key = find_key(&parts.headers, parts.uri.query());
    let sessions = broker.events.connections.sessions.clone();
    if &*info.path == MQTT_PATH {
        let socket = take(parts).await?.protocols(PROTOCOLS);
        let permit = permits::permit(parts).cloned();
        let limits = Limits { ip: client, limited_as: info.limited_as, token: key, permit };
        let broker = broker.clone();
        let serve = move |socket| sessions.track_future(live::serve(broker, FromWebSocket(socket), limits));
        return Ok(Some(socket.on_upgrade(serve)));
    }
    let Ok(topic) = Topic::parse(&info.path) else { return Ok(None) };
    let Authenticated(caller) = Authenticated::from_request_parts(parts, sockets).await?;
    let allowed = match service::channel(&broker.events, &caller, &topic).await {
        Ok(allowed) => Some(allowed),
        Err(error) => {
            // Public keys of applications may write scans and subscribe to nothing.
            let may_write = matches!(topic, Topic::Actions(..))
                && require(&caller, Verb::Create, Subject::Actions).is_ok()
                && error.code() == Code::Forbidden;
            if !may_write {
                return Err(error.into());
            }
            None
        }
    };
    // Once the socket is open, the reason could not be told.
    let (account, now) = (caller.account, broker.events.clock.now());
    broker.events.open_quotas.require_room(&broker.events.db, account, Quota::Streams, now).await?;
    let socket = take(parts).await?;
    let key = hash_key(&key.unwrap_or_default());
    permits::hold(parts, &caller, key, client)?;
    let reception = live::Reception::new(broker, account, allowed);
    let caller = (caller, key, client);
    let (broker, topic) = (broker.clone(), (topic, info.path.to_string()));
    let serve =
        move |socket| sessions.track_future(live::serve_socket(broker, socket, caller, topic, reception));
    Ok(Some(socket.on_upgrade(serve)))
}

async fn take(parts: &mut Parts) -> Result<WebSocketUpgrade, ApiError> {
    let socket = WebSocketUpgrade::from_request_parts(parts, &())
        .await
        .map_err(|error| EventsError::NoWebSocket(error.body_text()))?;
    Ok(socket.max_message_size(MAX_BODY_BYTES).max_frame_size(MAX_BODY_BYTES))
}
