//! Invitations are accepted, with a password or without.

use std::net::IpAddr;

use ::tenants::service::invitations::{self, begin_acceptance, find_invited};
use tracing::instrument;

use super::{SignInState, about, operators::Shown, own_passwords::put};
use crate::{domain::sign_in_body::Acceptance, error::ServiceError};

/// Accepts an invitation: gives the operator its first key, which is shown this once, and the password if there is one.
///
/// # Errors
/// No invitation has the code, or it has ended (401, without telling which); the password is common (400).
#[instrument(skip_all)]
pub async fn accept(
    state: &SignInState,
    acceptance: Acceptance,
    client: Option<IpAddr>,
    request: Option<String>,
) -> Result<Shown, ServiceError> {
    let password = match acceptance.password {
        Some(password) => {
            // Hashing a password costs much: not without a code that is right.
            let invited = find_invited(&state.core, &acceptance.code).await?;
            let invited = invited.apply(acceptance.change.clone(), state.core.clock.now());
            let place = state.password_place(client)?;
            let hashed =
                state.passwords.hash_new(place, "password", password, state.salt()?, about(&invited));
            Some(hashed.await?)
        }
        None => None,
    };
    let (mut tx, invited) = begin_acceptance(&state.core, &acceptance.code, client, request).await?;
    if let Some(password) = &password {
        put(&mut tx, &invited, password, state.core.clock.now()).await?;
    }
    invitations::accept(&state.core, tx, invited, acceptance.change).await
}
