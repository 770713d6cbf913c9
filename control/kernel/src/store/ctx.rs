//! What a write must know of the request that it belongs to.

use std::sync::Arc;

use shared::{
    entity_tag::{Condition, EntityTag},
    time::UnixMillis,
};

use super::{audit::Principal, claim::Claim};
use crate::domain::event::Cause;

/// Goes with a request from where it comes in to the transactions that it begins ([`super::Db::begin`]). The default is
/// that of work that no request asked for.
#[derive(Debug, Clone, Default)]
pub struct Ctx {
    claim: Option<Arc<Claim>>,
    origin: Option<Arc<str>>,
    cause: Cause,
    principal: Option<Arc<Principal>>,
    condition: Condition,
}

impl Ctx {
    /// The first commit writes this claim, too.
    #[must_use]
    pub fn with_claim(self, claim: Arc<Claim>) -> Self {
        Self { claim: Some(claim), ..self }
    }

    /// The request came by a connection that also subscribes; events carry the connection's name.
    #[must_use]
    pub fn with_origin(self, origin: &str) -> Self {
        Self { origin: Some(origin.into()), ..self }
    }

    /// Reactions do it; events carry which.
    #[must_use]
    pub fn with_cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Its changes are noted in the audit trail as those of an operator, or of a program that acts for one.
    #[must_use]
    pub fn with_principal(self, principal: Principal) -> Self {
        Self { principal: Some(Arc::new(principal)), ..self }
    }

    /// The resource that it changes must be in a state that `If-Match` names.
    #[must_use]
    pub fn with_condition(self, condition: Condition) -> Self {
        Self { condition, ..self }
    }

    /// Whether `If-Match` admits the state of the resource that the request changes.
    pub fn admits(&self, tag: impl FnOnce() -> EntityTag) -> bool {
        self.condition.admits(tag)
    }

    /// Of a command of the tools that changes something of an account.
    #[must_use]
    pub fn of_command(operation: &str, at: UnixMillis) -> Self {
        Self::by("commandLine", operation, at)
    }

    /// Of the platform by itself: nobody asked for it at this moment.
    #[must_use]
    pub fn of_platform(operation: &str, at: UnixMillis) -> Self {
        Self::by("platform", operation, at)
    }

    fn by(kind: &'static str, operation: &str, at: UnixMillis) -> Self {
        Self::default().with_principal(Principal {
            at,
            kind,
            id: None,
            key: None,
            network: None,
            request: None,
            operation: operation.to_owned(),
        })
    }

    /// Who asks, if the audit trail notes it.
    #[must_use]
    pub fn principal(&self) -> Option<Arc<Principal>> {
        self.principal.clone()
    }

    /// The claim of the request.
    #[must_use]
    pub fn claim(&self) -> Option<Arc<Claim>> {
        self.claim.clone()
    }

    /// The name of the connection that the request came by, if it also subscribes.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The reactions that do it, as they are stored.
    #[must_use]
    pub fn stored_cause(&self) -> Option<String> {
        self.cause.stored()
    }

    /// Whether events of it carry a connection or reactions.
    #[must_use]
    pub fn marks_events(&self) -> bool {
        self.origin.is_some() || self.stored_cause().is_some()
    }
}
