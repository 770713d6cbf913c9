//! The connection permit of a request: records whose key it presented.

use std::net::IpAddr;

use axum::http::request::Parts;
use kernel::{
    domain::access::Actor,
    error::ServiceError,
    service::capacity::{holder, refusal},
};
use platform::{Handle, Holder, Rank};

/// The permit of the request's connection; none where the service runs without sockets.
pub fn permit(parts: &Parts) -> Option<&Handle> {
    parts.extensions.get()
}

/// Gives the connection to the caller of a request.
pub fn prove(parts: &Parts, actor: &Actor, key: [u8; 32]) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    permit.prove(&holder(actor, key)).map_err(refusal)
}

/// Assigns a long-lived connection to the caller, even if a proxy relays it.
pub fn hold(parts: &Parts, actor: &Actor, key: [u8; 32], client: Option<IpAddr>) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    permit.hold(&holder(actor, key), client).map_err(refusal)
}

/// Gives the connection to an edge.
pub fn prove_edge(parts: &Parts, edge: &str, key: [u8; 32]) -> Result<(), ServiceError> {
    prove_trusted(parts, edge, key)
}

/// Gives the connection to the platform operator.
pub fn prove_platform(parts: &Parts, key: [u8; 32]) -> Result<(), ServiceError> {
    prove_trusted(parts, "platform", key)
}

fn prove_trusted(parts: &Parts, account: &str, key: [u8; 32]) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    let holder = Holder { rank: Rank::Trusted, key, account: account.to_owned(), is_operator: true };
    permit.prove(&holder).map_err(refusal)
}
