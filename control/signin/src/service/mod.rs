//! Operations: one function each, called by HTTP handlers and commands alike.
//!
//! Functions fail when the database does; their docs list other errors only.

use std::{net::IpAddr, sync::Arc};

use mail::Outbox;
use shared::id::OperatorId;
use tokio::sync::Semaphore;

pub use ::tenants::service::*;

pub mod commands;
pub mod gate;
pub mod invitations;
pub mod links;
pub mod own_passwords;
pub mod resets;
pub mod second_factor;
pub mod sessions;
pub mod sign_in;
pub mod throttles;

use self::{
    access::Caller,
    capacity::{Owner, Place},
    gate::Touched,
    passwords::Passwords,
    sign_in::Client,
};
use crate::{
    domain::{
        access::ActorKind,
        operator::{Operator, OperatorKind},
        password::SALT_LEN,
    },
    error::{ServiceError, SignInFault},
    store::audit::{Principal, network_of},
};

/// What the audit trail calls operators.
const OPERATOR: &str = "operator";

/// Resets that may be worked on at once after their answer: each takes some milliseconds of the database.
const RESETS: usize = 64;

/// Hashes of passwords that one address (IPv6: one /64) may wait for.
const PASSWORDS_PER_ADDRESS: usize = 10;

/// What sign-in needs.
#[derive(Clone, Debug)]
pub struct SignInState {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// Takes mails.
    pub outbox: Arc<Outbox>,
    /// When sessions were last noted as used.
    touched: Arc<Touched>,
    /// Resets that are worked on after their answer.
    resets: Arc<Semaphore>,
}

impl SignInState {
    /// A state.
    #[must_use]
    pub fn new(core: Arc<Core>, passwords: Passwords, outbox: Arc<Outbox>) -> Self {
        let resets = Arc::new(Semaphore::new(RESETS));
        Self { core, passwords, outbox, touched: Arc::default(), resets }
    }

    /// The secret from which keys of sessions and hashes of this crate come.
    fn secret(&self) -> &[u8; 32] {
        &self.core.secrets.sign_in
    }

    /// A place for a password that somebody without a key sends.
    fn password_place(&self, client: Option<IpAddr>) -> Result<Place, ServiceError> {
        let address = client.map(|ip| shared::client_address::network(ip.to_canonical()));
        let owner = address.map(|address| (Owner::Address(address), PASSWORDS_PER_ADDRESS));
        self.core.capacity.passwords.take(owner).map_err(|_| ServiceError::Full("sign-ins"))
    }

    fn salt(&self) -> Result<[u8; SALT_LEN], ServiceError> {
        let mut salt = [0; SALT_LEN];
        self.core.random.fill(&mut salt)?;
        Ok(salt)
    }

    /// Who does something without a key, for the audit trail; nobody is named until it is proven who it is.
    fn principal(&self, operator: Option<OperatorId>, client: &Client, operation: &str) -> Principal {
        Principal {
            at: self.core.clock.now(),
            kind: ActorKind::Operator.as_str(),
            id: operator.map(|id| id.to_string()),
            key: None,
            network: client.address.map(network_of),
            request: client.request.clone(),
            operation: operation.to_owned(),
        }
    }
}

/// What others know of an operator: no good part of a password.
fn about(operator: &Operator) -> Vec<String> {
    vec![operator.email.clone(), operator.first_name.clone(), operator.last_name.clone()]
}

/// The person who asks.
///
/// # Errors
/// The key is no operator's (403), or a program's (409).
async fn person(core: &Core, caller: &Caller) -> Result<Operator, ServiceError> {
    if !caller.kind.is_operator() {
        return Err(SignInFault::NoOperator.into());
    }
    let id: OperatorId = caller.id.parse().map_err(|_| SignInFault::NoOperator)?;
    let found = crate::store::operators::find(&mut core.db.read().await?, caller.account, id).await?;
    let is_person = |found: &Operator| found.kind == OperatorKind::Person && found.invitation.is_none();
    found.filter(is_person).ok_or_else(|| SignInFault::NoPerson.into())
}
