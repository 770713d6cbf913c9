//! Converts stored actions into scans for the profile.

use std::{borrow::Borrow, collections::HashMap, net::IpAddr};

use scan_store::ScanStore;
use serde_json::{Map, Value};
use shared::{
    id::{AccountId, ActionId, ThngId},
    time::UnixMillis,
};

use super::{history, settings::effective};
use crate::{
    domain::{
        action_names::TriggerType,
        assessment::{
            client::{Language, NetworkHash},
            document::Context,
            locate,
            profile::Observation,
            settings::Settings,
            source::network_of,
            spot::Spot,
        },
        device::{AccountDevices, AgentHash, DeviceKey},
        location::Coordinates,
        scan_source::Source,
    },
    error::ServiceError,
    store::{
        Tx,
        actions::NewAction,
        scan_profiles::{self, Seen},
    },
};

/// The scans by edges, and the key that tells the devices of scans apart.
#[derive(Debug, Clone, Copy)]
pub struct ScanSources<'a> {
    /// The scans by edges.
    pub scans: &'a dyn ScanStore,
    /// The key.
    pub devices: &'a DeviceKey,
}

/// Takes new actions into the profiles of their Thngs, in the transaction that stores them. Scans by edges were stored
/// before, at these positions: a profile that was rebuilt since has them already.
pub async fn record<A: Borrow<NewAction> + Sync>(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    (account, created_at): (AccountId, UnixMillis),
    actions: &[A],
    positions: &HashMap<ActionId, i64>,
) -> Result<(), ServiceError> {
    if !actions.iter().any(|action| is_scan(action.borrow())) {
        return Ok(());
    }
    let settings = effective(tx, account, &[], None).await?;
    let devices = sources.devices.of(account);
    let seen: Vec<Seen> = actions
        .iter()
        .map(|action| -> &NewAction { action.borrow() })
        .filter(|action| action.account == account)
        .filter_map(|one| {
            let (thng, observation) = observation(one, created_at, &settings, devices)?;
            Some(Seen { thng, observation, position: positions.get(&one.id).copied() })
        })
        .collect();
    for thng in scan_profiles::add(tx, &seen).await? {
        // An older release made it; the stored actions, including the new ones, are complete.
        history::rebuild(sources, tx, account, thng, &settings).await?;
    }
    Ok(())
}

fn is_scan(action: &NewAction) -> bool {
    action.thng.is_some() && action.kind.parse().is_ok_and(TriggerType::is_profiled)
}

fn observation(
    action: &NewAction,
    created_at: UnixMillis,
    settings: &Settings,
    devices: AccountDevices,
) -> Option<(ThngId, Observation)> {
    let members = action.doc.as_object().filter(|_| is_scan(action))?;
    let is_implicit = action.kind == TriggerType::ImplicitScans.as_str();
    Some((action.thng?, seen(members, (action.timestamp, created_at), is_implicit, settings, devices)?))
}

/// A stored action as a scan of the profile; `None` for robots, for allow-listed networks and places, and for scans
/// that are not a customer's.
///
/// `happened` is its claimed time and its time of arrival: of a public scan only the latter counts.
pub(super) fn seen(
    members: &Map<String, Value>,
    happened: (UnixMillis, UnixMillis),
    is_implicit: bool,
    settings: &Settings,
    devices: AccountDevices,
) -> Option<Observation> {
    let is_bot = members.get("customFields").and_then(|fields| fields.get("bot")) == Some(&Value::Bool(true));
    let source = Source::of_members(members);
    let spot = match source {
        Source::Edge | Source::Server => place_of(members).1,
        Source::Public => network_of_scan(members).1,
    };
    let ip = address_of(members);
    let point = spot.located().map(|(at, _)| at);
    if is_bot || !is_by_customer(members) || settings.allows(ip, point) {
        return None;
    }
    let (at, agent) = device_of(members, happened, devices);
    let (network, language) = client_of(members);
    Some(Observation { at, agent, spot, is_implicit, source, network, language })
}

/// When a stored action happened and which device did it, as the profile takes them.
pub(super) fn device_of(
    members: &Map<String, Value>,
    (happened, arrived): (UnixMillis, UnixMillis),
    devices: AccountDevices,
) -> (UnixMillis, Option<AgentHash>) {
    match Source::of_members(members) {
        Source::Edge | Source::Server => (happened, agent_of(members, devices)),
        Source::Public => (arrived, network_of_scan(members).0),
    }
}

/// The device of a stored action: by its user agent or, without it, browser and system name.
pub(super) fn agent_of(members: &Map<String, Value>, devices: AccountDevices) -> Option<AgentHash> {
    devices.of_context(members.get("context")?.as_object()?)
}

/// What counts of the place of a scan by a public key: its network, and the network's country.
pub(super) fn network_of_scan(members: &Map<String, Value>) -> (Option<AgentHash>, Spot) {
    let country = members.get("context").and_then(|context| context.get("countryCode")?.as_str());
    (address_of(members).map(network_of), Spot::of_address(false, None, country, None))
}

/// The address that a stored action came from, where it was kept.
pub(super) fn address_of(members: &Map<String, Value>) -> Option<IpAddr> {
    members.get("context").and_then(|context| context.get("ipAddress")?.as_str()?.parse().ok())
}

/// Network and language of the client of a stored action, where they were kept. Of a scan by a public key the network is
/// the device, and nothing else counts.
pub(super) fn client_of(members: &Map<String, Value>) -> (Option<NetworkHash>, Option<Language>) {
    match Source::of_members(members) {
        Source::Edge | Source::Server => {
            let context = members.get("context");
            let tag = context.and_then(|context| context.get("language")?.as_str());
            (address_of(members).map(NetworkHash::of), tag.and_then(Language::of_tag))
        }
        Source::Public => (None, None),
    }
}

/// Whether it is a customer's scan: the action was stored by an edge, an application or its user. Actions of
/// operators are not; scans by public keys count separately. This follows from the stored action alone, so that a
/// profile can be rebuilt from actions.
fn is_by_customer(members: &Map<String, Value>) -> bool {
    match Source::of_members(members) {
        Source::Edge | Source::Public => true,
        Source::Server => ["createdByApp", "user"].iter().any(|name| members.contains_key(*name)),
    }
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
