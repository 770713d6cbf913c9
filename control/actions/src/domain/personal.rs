//! Cuts the personal data of an action to what its account keeps.
//!
//! Everything that follows from an address or a user agent, such as the country and whether it is a robot, was derived
//! before.

use serde_json::{Map, Value};
use shared::personal_data::PersonalData;

use super::{context::reduced_agent, location::Coordinates};

/// Cuts the context of an action: the address and the user agent.
pub fn cut_context(context: &mut Map<String, Value>, kept: PersonalData, agents: &woothee::parser::Parser) {
    if kept == PersonalData::Full {
        return;
    }
    let ip = context.remove("ipAddress");
    let ip = ip.and_then(|ip| kept.address(ip.as_str()?.parse().ok()?));
    if let Some(ip) = ip {
        context.insert("ipAddress".to_owned(), ip.to_string().into());
    }
    let agent = context.remove("userAgent").filter(|_| kept == PersonalData::Truncated);
    if let Some(agent) = agent.and_then(|agent| reduced_agent(agents, agent.as_str()?)) {
        context.insert("userAgent".to_owned(), agent.into());
    }
}

/// Cuts where a person was: `sensor` is the position of its device, `geoIp` the city of its address. A place stays.
pub fn cut_location(members: &mut Map<String, Value>, kept: PersonalData) {
    let is_of_person =
        matches!(members.get("locationSource").and_then(Value::as_str), Some("sensor" | "geoIp"));
    if kept == PersonalData::Full || !is_of_person {
        return;
    }
    let Some(Value::Object(location)) = members.get_mut("location") else { return };
    let rounded = Coordinates::of_members(location).and_then(|at| cut_point(at, kept));
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
pub fn cut_point(at: Coordinates, kept: PersonalData) -> Option<Coordinates> {
    let (latitude, longitude) = kept.degrees(at.latitude()).zip(kept.degrees(at.longitude()))?;
    Coordinates::new(latitude, longitude)
}

/// Cuts all of a document.
pub fn cut_document(members: &mut Map<String, Value>, kept: PersonalData, agents: &woothee::parser::Parser) {
    if let Some(Value::Object(context)) = members.get_mut("context") {
        cut_context(context, kept, agents);
    }
    cut_location(members, kept);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
        Version/17.5 Mobile/15E148 Safari/604.1";

    fn check(document: Value, kept: PersonalData, expected: Value) {
        let Value::Object(mut members) = document else { panic!("no object") };
        cut_document(&mut members, kept, &woothee::parser::Parser::new());
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
}
