//! Sign-in of operators by a provider of OpenID Connect, as a relying party.
//!
//! The authorization code flow with PKCE (S256), state and nonce. [`Provider::begin`] gives the URL to which the
//! browser goes, and a [`Pending`] that waits in a cookie of the browser. [`Pending::check`] compares what came back,
//! [`used_states`](store::used_states) lets each sign-in be ended once, and [`Entered::finish`] asks the provider who
//! signed in.
//!
//! An identity is linked to the operator whose address it has, if the provider verified the address; nobody is created.
//!
//! Invariants: A request waits for the provider for 10 seconds at most, and only [`SLOTS`] do so at once, of one address
//! [`SLOTS_PER_ADDRESS`]. No code, token
//! or secret of the flow is stored or logged. Tokens are accepted with a signature by a key of the provider alone.

mod claim;
mod client;
mod cookie;
pub mod domain;
mod error;
pub mod http;
mod metadata;
mod pending;
mod provider;
mod return_path;
pub mod service;
mod settings;
pub mod store;

pub use self::{
    claim::RequiredClaim,
    cookie::{COOKIE, PendingCookies},
    error::SignInError,
    pending::{Answer, LIFETIME, Pending},
    provider::{Entered, Identity, Provider, SLOTS, SLOTS_PER_ADDRESS},
    return_path::{InvalidReturnPath, ReturnPath},
    settings::{InvalidSetting, OidcSettings},
};
