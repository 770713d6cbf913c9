//! The client of a request: its address behind edges and proxies.

use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, HeaderValue},
};
use platform::Handle;
use shared::client_address::{ClientAddress, EDGE_TOKEN, PROXY_HEADERS};

use super::serve::Connection;
use crate::state::ApiState;

/// The client's address; `None` if a request came over no socket.
///
/// An edge that presents its key names the client, which is then never local; otherwise the trusted proxies do.
pub(super) fn address(app: &ApiState, request: &Request) -> Option<ClientAddress> {
    let peer = request.extensions().get::<ConnectInfo<Connection>>()?.0.peer.ip().to_canonical();
    let lines = |name| request.headers().get_all(name).into_iter().map(HeaderValue::as_bytes);
    if is_of_edge(app, request.headers()) {
        if let Some(permit) = request.extensions().get::<Handle>() {
            permit.relay();
        }
        let said =
            lines("x-forwarded-for").next().and_then(|line| std::str::from_utf8(line).ok()?.parse().ok());
        return Some(ClientAddress { ip: said.unwrap_or(peer), is_direct: false });
    }
    let named = app.trusted_proxies.client(peer, lines(app.trusted_proxies.header().as_str()));
    let is_passed_on = PROXY_HEADERS.iter().any(|name| request.headers().contains_key(*name));
    Some(ClientAddress { is_direct: named.is_direct && !is_passed_on, ..named })
}

/// Whether an edge that showed its key passed a request on.
pub(super) fn is_of_edge(app: &ApiState, headers: &HeaderMap) -> bool {
    let shown = headers.get(EDGE_TOKEN).and_then(|key| key.to_str().ok());
    shown.is_some_and(|key| app.edge_keys.edge_of(key).is_some())
}
