//! Operations: sign-in by the provider, and the identities of whoever is signed in.
//!
//! Functions fail when the database does; their docs list other errors only.

use std::sync::Arc;

pub use ::tenants::service::*;
use signin::service::SignInState;

pub mod identities;
pub mod sign_in;

use crate::{cookie::PendingCookies, provider::Provider};

/// What sign-in by a provider needs.
#[derive(Clone)]
pub struct OidcState {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// The provider, if there is one.
    pub provider: Option<Arc<Provider>>,
    /// Begins sessions.
    pub sign_in: SignInState,
    /// Writes and reads what a browser keeps between beginning and end.
    pub cookies: PendingCookies,
}

impl OidcState {
    /// A state.
    #[must_use]
    pub fn new(core: Arc<Core>, provider: Option<Arc<Provider>>, sign_in: SignInState) -> Self {
        let key = blake3::derive_key("waymark 2026-11 pending sign-ins", &core.secrets.sign_in);
        Self { cookies: PendingCookies::new(key), core, provider, sign_in }
    }
}
