//! Answers to certificate authorities that check a host over HTTP.

use http::Response;

use super::App;
use crate::{
    backing::Backing,
    response::{self, Body},
    route::{Ask, CHALLENGES},
};

impl<B: Backing> App<B> {
    /// The answer to an authority, where a request is one of a known challenge. For paths that lead nowhere else, so that no
    /// other request pays for it; hosts that are no short domain count, as an authority may name a port.
    pub(super) fn challenge(&self, ask: &Ask<'_>) -> Option<Response<Body>> {
        let token = ask.path.strip_prefix('/')?.strip_prefix(CHALLENGES)?;
        let challenge = self.tls.as_ref()?.challenge(ask.host, token)?;
        Some(response::challenge(&challenge.key_authorization))
    }
}
