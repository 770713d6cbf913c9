//! Redacts the personal data of an action to what its account keeps.
//!
//! Everything that follows from an address or a user agent, such as the country and whether it is a robot, was derived
//! before.

use std::fmt;

use serde_json::{Map, Value};
use shared::personal_data::PersonalData;

use super::{
    context::reduced_agent,
    device::{self, AccountDevices},
    location::Coordinates,
};

/// How the actions of an account are redacted.
#[derive(Clone, Copy)]
pub struct Redaction<'a> {
    /// How much the account keeps of people.
    pub kept: PersonalData,
    /// Reads user agents.
    pub agents: &'a woothee::parser::Parser,
    /// What tells its devices apart; `None` for actions that no assessment looks at.
    pub devices: Option<AccountDevices>,
}

impl fmt::Debug for Redaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Redaction<'_> {
    /// Redacts all of a document.
    pub fn document(&self, members: &mut Map<String, Value>) {
        if let Some(Value::Object(context)) = members.get_mut("context") {
            self.context(context);
        }
        redact_location(members, self.kept);
    }

    /// Redacts the context of an action: the address and the user agent. Of a user agent that is reduced, the device is
    /// added first, so that assessments tell as many devices apart as with `full`.
    pub fn context(&self, context: &mut Map<String, Value>) {
        if self.kept == PersonalData::Full {
            return;
        }
        context.remove(device::MEMBER);
        let ip = context.remove("ipAddress");
        let ip = ip.and_then(|ip| self.kept.address(ip.as_str()?.parse().ok()?));
        if let Some(ip) = ip {
            context.insert("ipAddress".to_owned(), ip.to_string().into());
        }
        let agent = context.remove("userAgent").filter(|_| self.kept == PersonalData::Truncated);
        let Some(agent) = agent.as_ref().and_then(Value::as_str) else { return };
        if let Some(device) = self.devices.and_then(|devices| devices.device(agent)) {
            context.insert(device::MEMBER.to_owned(), device.hex().into());
        }
        if let Some(reduced) = reduced_agent(self.agents, agent) {
            context.insert("userAgent".to_owned(), reduced.into());
        }
    }
}

/// Redacts where a person was: `sensor` is the position of its device, `geoIp` the city of its address. A place stays.
pub fn redact_location(members: &mut Map<String, Value>, kept: PersonalData) {
    let is_of_person =
        matches!(members.get("locationSource").and_then(Value::as_str), Some("sensor" | "geoIp"));
    if kept == PersonalData::Full || !is_of_person {
        return;
    }
    let Some(Value::Object(location)) = members.get_mut("location") else { return };
    let rounded = Coordinates::of_members(location).and_then(|at| redact_point(at, kept));
    for name in ["latitude", "longitude", "position"] {
        location.remove(name);
    }
    if let Some(at) = rounded {
        location.extend(at.members());
        return;
    }
    if location.contains_key("place") {
        location.remove("customFields");
        members.insert("locationSource".to_owned(), "place".into());
    } else {
        members.remove("location");
        members.insert("locationSource".to_owned(), "unknown".into());
    }
}

/// What is kept of a point.
#[must_use]
pub fn redact_point(at: Coordinates, kept: PersonalData) -> Option<Coordinates> {
    let (latitude, longitude) = kept.degrees(at.latitude()).zip(kept.degrees(at.longitude()))?;
    Coordinates::new(latitude, longitude)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::id::AccountId;

    use super::*;
    use crate::domain::device::{AgentHash, DeviceKey};

    const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
        Version/17.5 Mobile/15E148 Safari/604.1";

    fn check(document: Value, kept: PersonalData, expected: Value) {
        let Value::Object(mut members) = document else { panic!("no object") };
        Redaction { kept, agents: &woothee::parser::Parser::new(), devices: None }.document(&mut members);
        assert_eq!(Value::Object(members), expected, "{kept}");
    }

    fn point(latitude: f64, longitude: f64) -> Value {
        json!({"latitude": latitude, "longitude": longitude,
            "position": {"type": "Point", "coordinates": [longitude, latitude]}})
    }

    #[test]
    fn each_setting_keeps_its_part_of_a_scan() {
        let scan = json!({
            "context": {"ipAddress": "203.0.113.77", "userAgent": PHONE, "userAgentName": "Safari", "city": "Bern"},
            "locationSource": "geoIp", "location": point(46.948_1, 7.447_4),
        });
        check(scan.clone(), PersonalData::Full, scan.clone());
        let truncated = json!({
            "context": {"ipAddress": "203.0.113.0", "userAgent": "Safari/17 (iPhone/17)", "userAgentName": "Safari",
                "city": "Bern"},
            "locationSource": "geoIp", "location": point(46.95, 7.45),
        });
        check(scan.clone(), PersonalData::Truncated, truncated);
        let none =
            json!({"context": {"userAgentName": "Safari", "city": "Bern"}, "locationSource": "unknown"});
        check(scan, PersonalData::None, none);
    }

    #[test]
    fn a_place_stays_and_a_point_beside_it_does_not() {
        let mut at = point(46.948_1, 7.447_4);
        at["place"] = json!("UKXAGyEf8SQ5eTDmVgGpHqAa");
        let of_place = json!({"locationSource": "place", "location": at});
        check(of_place.clone(), PersonalData::None, of_place);
        let only_place =
            json!({"locationSource": "place", "location": {"place": "UKXAGyEf8SQ5eTDmVgGpHqAa"}});
        check(json!({"locationSource": "sensor", "location": at}), PersonalData::None, only_place);
        check(
            json!({"context": "x", "location": 7}),
            PersonalData::None,
            json!({"context": "x", "location": 7}),
        );
    }

    #[test]
    fn a_reduced_user_agent_leaves_its_device() {
        let devices = DeviceKey::new(&[7; 32]).of(AccountId::new(1, [1; 16]));
        let agents = woothee::parser::Parser::new();
        let redacted = |kept: PersonalData, agent: &str| {
            let Value::Object(mut context) = json!({"userAgent": agent}) else { panic!("no object") };
            Redaction { kept, agents: &agents, devices: Some(devices) }.context(&mut context);
            context
        };
        let whole = devices.device(PHONE);
        for (kept, device) in [
            (PersonalData::Full, None),
            (PersonalData::Truncated, whole.map(AgentHash::hex)),
            (PersonalData::None, None),
        ] {
            let context = redacted(kept, PHONE);
            assert_eq!(context.get("device").and_then(Value::as_str), device.as_deref(), "{kept}");
            let found = devices.of_context(&context);
            assert_eq!(found == whole, kept != PersonalData::None, "{kept}: {context:?}");
        }
        let again = Redaction { kept: PersonalData::None, agents: &agents, devices: Some(devices) };
        let mut context = redacted(PersonalData::Truncated, PHONE);
        again.context(&mut context);
        assert!(context.is_empty(), "{context:?}");
    }
}
