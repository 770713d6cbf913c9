//! Who a request comes from: the client's address behind edges and proxies.

use std::net::IpAddr;

use axum::{
    extract::{ConnectInfo, Request},
    http::HeaderValue,
};
use platform::Handle;
use shared::client_address::EDGE_TOKEN;

use super::serve::Connection;
use crate::service::App;

/// The client's address; `None` where a request came over no socket.
///
/// An edge that shows its key says who the client is; for others the trusted proxies do.
pub(super) fn address(app: &App, request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<Connection>>()?.0.peer.ip().to_canonical();
    let lines = |name| request.headers().get_all(name).into_iter().map(HeaderValue::as_bytes);
    let shown = lines(EDGE_TOKEN).next().and_then(|line| std::str::from_utf8(line).ok());
    if shown.is_some_and(|key| app.edge_keys.edge_of(key).is_some()) {
        if let Some(seat) = request.extensions().get::<Handle>() {
            seat.relay();
        }
        let said =
            lines("x-forwarded-for").next().and_then(|line| std::str::from_utf8(line).ok()?.parse().ok());
        return Some(said.unwrap_or(peer));
    }
    Some(app.trusted_proxies.client(peer, lines("forwarded"), lines("x-forwarded-for")))
}
