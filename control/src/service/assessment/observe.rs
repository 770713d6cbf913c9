//! Scans as the profile takes them: from the actions, as they are stored.

use std::net::IpAddr;

use serde_json::{Map, Value};
use shared::id::{AccountId, ThngId};

use super::settings::effective;
use crate::{
    domain::{
        assessment::{
            agent::AgentHash, document::Context, locate, profile::Observation, settings::Settings,
            spot::Spot, trigger::TriggerType,
        },
        location::Coordinates,
    },
    error::ServiceError,
    store::{Tx, actions::NewAction, scan_profiles},
};

/// Takes new actions into the profiles of their Thngs, in the transaction that stores them.
///
/// # Errors
/// The database failed.
pub async fn record(tx: &mut Tx, account: AccountId, actions: &[NewAction]) -> Result<(), ServiceError> {
    if !actions.iter().any(is_scan) {
        return Ok(());
    }
    let settings = effective(tx, account, &[], None).await?;
    let seen: Vec<(ThngId, Observation)> = actions
        .iter()
        .filter(|action| action.account == account)
        .filter_map(|one| observation(one, &settings))
        .collect();
    Ok(scan_profiles::add(tx, &seen).await?)
}

fn is_scan(action: &NewAction) -> bool {
    action.thng.is_some() && action.kind.parse().is_ok_and(TriggerType::is_profiled)
}

fn observation(action: &NewAction, settings: &Settings) -> Option<(ThngId, Observation)> {
    let members = action.doc.as_object().filter(|_| is_scan(action))?;
    let is_implicit = action.kind == TriggerType::ImplicitScans.as_str();
    Some((action.thng?, seen(members, action.timestamp, is_implicit, settings)?))
}

/// A stored action as the profile takes it; `None` for robots, for what the account allows and for what no customer did.
pub(super) fn seen(
    members: &Map<String, Value>,
    at: shared::time::UnixMillis,
    is_implicit: bool,
    settings: &Settings,
) -> Option<Observation> {
    let is_bot = members.get("customFields").and_then(|fields| fields.get("bot")) == Some(&Value::Bool(true));
    let (context, spot) = place_of(members);
    let ip: Option<IpAddr> =
        members.get("context").and_then(|context| context.get("ipAddress")?.as_str()?.parse().ok());
    let point = spot.located().map(|(at, _)| at);
    if is_bot || !is_by_customer(members) || settings.allows(ip, point) {
        return None;
    }
    let agent = context.user_agent.as_deref().and_then(AgentHash::of);
    Some(Observation { at, agent, spot, is_implicit })
}

/// Whether a customer scanned: an edge stored the action, or an application or its user. What operators write, and
/// what a Thng tells of itself, is no scan of a customer. The stored action says so itself, so that a profile may be
/// made of the actions alone.
fn is_by_customer(members: &Map<String, Value>) -> bool {
    let is_by_edge = members.get("context").is_some_and(|context| context.get("entryUrl").is_some());
    is_by_edge || ["createdByApp", "user"].iter().any(|name| members.contains_key(*name))
}

/// Context and place of a stored action.
pub(super) fn place_of(members: &Map<String, Value>) -> (Context, Spot) {
    let empty = Map::new();
    let context = Context::of(members.get("context").and_then(Value::as_object).unwrap_or(&empty));
    let degrees = |name: &str| members.get("location").and_then(|location| location.get(name)?.as_f64());
    let at = degrees("latitude").zip(degrees("longitude"));
    let at = at.and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude));
    let source = members.get("locationSource").and_then(Value::as_str).unwrap_or_default();
    let (country, region) = (context.country_code.as_deref(), context.region.as_deref());
    let by_address =
        Spot::of_address(context.city.is_some(), at.filter(|_| source == "geoIp"), country, region);
    let (spot, _) = locate(at.filter(|_| source == "sensor"), by_address);
    (context, spot)
}
