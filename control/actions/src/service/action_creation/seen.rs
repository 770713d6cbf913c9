//! The client that an action records: the sender of the request, or the customer whose scan a server reports.

use serde_json::{Map, Value};
use shared::geo::Locality;

use super::Making;
use crate::{
    domain::{
        access::{Actor, ActorKind},
        action_draft::ActionDraft,
        action_names::TriggerType,
        context::{self, Origin, Reported},
        personal::Redaction,
    },
    error::{CommonError, ServiceError},
    service::ActionState,
    store::{Tx, applications},
};

/// What is known from an address and a user agent.
pub(super) struct Seen {
    /// The member `context`.
    pub context: Map<String, Value>,
    /// Where the address is.
    pub locality: Locality,
}

impl Seen {
    pub(super) fn of(state: &ActionState, origin: Origin<'_>) -> Self {
        let locality = origin.ip.map(|ip| state.geo_ip.find(ip)).unwrap_or_default();
        let agent = context::read_agent(&state.agents, origin.user_agent);
        Self { context: context::context(origin, agent, &locality), locality }
    }
}

impl Making<'_> {
    /// How an action of a type is redacted.
    pub(super) fn redaction(&self, kind: &str) -> Redaction<'_> {
        let devices = kind.parse::<TriggerType>().is_ok().then(|| self.devices.of(self.actor.account));
        Redaction { kept: self.kept, agents: &self.state.agents, devices }
    }

    /// The customer of a draft that names one, if the caller may say so. Others send back the `context` that they
    /// read; theirs is ignored.
    pub(super) async fn reported(
        &mut self,
        tx: &mut Tx,
        draft: &ActionDraft,
    ) -> Result<Option<Seen>, ServiceError> {
        let Some(value) = &draft.context else { return Ok(None) };
        let may_report = match self.reports_context {
            Some(known) => known,
            None => *self.reports_context.insert(reports_context(tx, self.actor).await?),
        };
        if !may_report {
            return Ok(None);
        }
        let reported = Reported::parse(value).map_err(CommonError::Faults)?;
        Ok(Some(Seen::of(self.state, reported.origin())))
    }
}

/// Whether a caller has the secret key of an application with `reportsContext`.
async fn reports_context(tx: &mut Tx, actor: &Actor) -> Result<bool, ServiceError> {
    let (ActorKind::TrustedApp, Some(project), Some(app)) = (actor.kind, actor.project, actor.app) else {
        return Ok(false);
    };
    let application = applications::find(tx, actor.account, project, app).await?;
    Ok(application.is_some_and(|found| found.details.reports_context == Some(true)))
}
