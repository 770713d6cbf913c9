//! WebSockets on the API's listeners: MQTT at `/mqtt`, and plain ones at paths that are topics.

use super::state::RouterState;
use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Request, State, WebSocketUpgrade},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use shared::problem::Code;
use web::{
    access::{Authenticated, find_key},
    api_error::ApiError,
    permits,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        access::hash_key,
        limits::MAX_BODY_BYTES,
        permission::{Subject, Verb},
        topic::Topic,
    },
    live::{self, FromWebSocket, Limits},
    service::{App, access::require, live as service},
};

/// Where MQTT is spoken.
const MQTT_PATH: &str = "/mqtt";

/// The subprotocols of MQTT, as clients name them.
const PROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];

/// Takes requests for a WebSocket on paths that have one; all others go on.
pub(super) async fn open(State(state): State<RouterState>, request: Request, next: Next) -> Response {
    if *request.method() != Method::GET || !asks_for_socket(request.headers()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    match upgrade(&state, &mut parts).await {
        Ok(Some(response)) => response,
        Ok(None) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => error.into_response(),
    }
}

fn asks_for_socket(headers: &HeaderMap) -> bool {
    let asked = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|name| name.eq_ignore_ascii_case("websocket"))
}

async fn upgrade(state: &RouterState, parts: &mut Parts) -> Result<Option<Response>, ApiError> {
    let app = &state.0;
    let Ok(info) = RequestInfo::from_request_parts(parts, app).await;
    let client = info.client;
    let key = find_key(&parts.headers, parts.uri.query());
    let sessions = app.events.connections.sessions.clone();
    if &*info.path == MQTT_PATH {
        let socket = take(app, parts).await?.protocols(PROTOCOLS);
        let permit = permits::permit(parts).cloned();
        let limits = Limits { ip: client, limited_as: info.limited_as, token: key, permit };
        let broker = app.broker.clone();
        let serve = move |socket| sessions.track_future(live::serve(broker, FromWebSocket(socket), limits));
        return Ok(Some(socket.on_upgrade(serve)));
    }
    let Ok(topic) = Topic::parse(&info.path) else { return Ok(None) };
    let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
    if let Err(error) = service::channel(&app.events, &caller, &topic).await {
        // Public keys of applications may write scans and subscribe to nothing.
        let may_write = matches!(topic, Topic::Actions(..))
            && require(&caller, Verb::Create, Subject::Actions).is_ok()
            && error.code() == Code::Forbidden;
        if !may_write {
            return Err(error.into());
        }
    }
    let socket = take(app, parts).await?;
    let key = hash_key(&key.unwrap_or_default());
    permits::hold(parts, &caller, key, client)?;
    let caller = (caller, key, client);
    let (broker, topic) = (app.broker.clone(), (topic, info.path.to_string()));
    let serve = move |socket| sessions.track_future(live::serve_socket(broker, socket, caller, topic));
    Ok(Some(socket.on_upgrade(serve)))
}

async fn take(app: &Arc<App>, parts: &mut Parts) -> Result<WebSocketUpgrade, ApiError> {
    let socket = WebSocketUpgrade::from_request_parts(parts, app).await.map_err(|error| {
        ApiError::refused(Code::Invalid, format!("No WebSocket can be opened: {}.", error.body_text()))
    })?;
    Ok(socket.max_message_size(MAX_BODY_BYTES).max_frame_size(MAX_BODY_BYTES))
}
