//! Certainty as results show it, and its compact stored form.

use serde_json::{Map, Value, json};

use super::{Certainty, Gate, Settle, Share, Sightings, unit};

/// `certainty` of the check of duplicates.
#[must_use]
pub fn duplicate(found: &Certainty) -> Value {
    let Gate { is_open, regions, regions_threshold, geo_ip_km, geo_ip_threshold_km, .. } = found.gate;
    let mut members = json!({
        "points": found.points,
        "bar": found.bar,
        "nextBar": found.next_bar,
        "previousSessions": found.previous,
        "sessionsNeeded": found.needed,
        "devices": found.devices,
        "languagesKnown": found.languages_known,
        "gate": {
            "isOpen": is_open,
            "regions": regions,
            "regionsThreshold": regions_threshold,
            "geoIpKm": geo_ip_km,
            "geoIpThresholdKm": geo_ip_threshold_km,
            "sensorKm": found.gate.sensor_km,
            "sensorThresholdKm": found.gate.sensor_threshold_km,
        },
        "signs": found.signs.iter().map(|sign| json!({
            "name": sign.name, "points": sign.points, "figure": sign.figure, "unit": unit(sign.name),
            "threshold": sign.threshold,
        })).collect::<Vec<_>>(),
        "settles": settles(&found.settles),
    });
    if let Some(points) = found.kept_points {
        members["keptPoints"] = json!(points);
    }
    if let Some(count) = found.displays_nearby {
        members["displaysNearby"] = json!(count);
    }
    if let Some(Share { region, sessions, of, share, threshold, .. }) = &found.share {
        members["regionShare"] = json!({
            "region": region, "sessions": sessions, "of": of, "share": share, "threshold": threshold,
        });
    }
    members
}

/// `certainty` of the check of diversion.
#[must_use]
pub fn diversion(found: Option<&Sightings>, by: &[Settle]) -> Value {
    let Some(found) = found else { return json!({"settles": settles(by)}) };
    json!({
        "inside": found.inside,
        "outside": found.outside,
        "needed": found.needed,
        "firstWasInside": found.first_was_inside,
        "sharedDevice": found.shared_device,
        "settles": settles(by),
    })
}

/// `settles`: a code and a text each.
#[must_use]
pub fn settles(by: &[Settle]) -> Value {
    by.iter().map(|one| json!({"code": one.as_str(), "text": one.text()})).collect()
}

/// Members of the certainty of duplicates, of its gate and of its share, and of that of the market, in the order of the
/// short form.
const COUNTS: [&str; 9] = [
    "points",
    "bar",
    "nextBar",
    "keptPoints",
    "previousSessions",
    "sessionsNeeded",
    "devices",
    // Results of before have seven or eight.
    "displaysNearby",
    "languagesKnown",
];
const GATE: [&str; 4] = ["isOpen", "regions", "geoIpKm", "sensorKm"];
const SHARE: [&str; 4] = ["region", "sessions", "of", "share"];
const MARKET: [&str; 5] = ["inside", "outside", "needed", "firstWasInside", "sharedDevice"];

/// Members of the gate that the thresholds of the result repeat.
const GATE_THRESHOLDS: [(&str, &str); 3] = [
    ("regionsThreshold", "regionsThreshold"),
    ("geoIpThresholdKm", "geoIpSpreadThreshold"),
    ("sensorThresholdKm", "sensorSpreadThreshold"),
];

/// The short form of a `certainty`: without names, texts, units and the thresholds that the result repeats.
#[must_use]
pub fn shorten(certainty: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let codes: Value = list(&certainty["settles"]).iter().map(|one| one["code"].clone()).collect();
    let of = |value: &Value, names: &[&str]| names.iter().map(|name| value[*name].clone()).collect::<Value>();
    if certainty.get("gate").is_some() {
        let share = &certainty["regionShare"];
        let share = if share.is_null() { Value::Null } else { of(share, &SHARE) };
        let sign = |one: &Value| json!([one["name"], one["points"], one["figure"], one["threshold"]]);
        let signs: Value = list(&certainty["signs"]).iter().map(sign).collect();
        return json!({"d": [of(certainty, &COUNTS), of(&certainty["gate"], &GATE), share, signs, codes]});
    }
    if certainty.get("inside").is_some() {
        return json!({"m": [of(certainty, &MARKET), codes]});
    }
    codes
}

/// The `certainty` of a short form, by the thresholds of its result.
#[must_use]
pub fn expand(short: &Value, thresholds: &Map<String, Value>) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let settled = |codes: &Value| {
        let known =
            list(codes).iter().filter_map(|code| code.as_str()?.parse::<Settle>().ok()).collect::<Vec<_>>();
        settles(&known)
    };
    let named = |values: &Value, names: &[&str]| -> Map<String, Value> {
        names.iter().map(|name| (*name).to_owned()).zip(list(values)).collect()
    };
    let threshold = |name: &str| thresholds.get(name).cloned().unwrap_or_default();
    if let Some(of) = short.get("d") {
        let mut whole = named(&of[0], &COUNTS);
        for name in ["keptPoints", "displaysNearby", "languagesKnown"] {
            if whole.get(name).is_some_and(Value::is_null) {
                whole.remove(name);
            }
        }
        let mut gate = named(&of[1], &GATE);
        gate.extend(GATE_THRESHOLDS.map(|(name, of)| (name.to_owned(), threshold(of))));
        whole.insert("gate".to_owned(), gate.into());
        if !of[2].is_null() {
            let mut share = named(&of[2], &SHARE);
            share.insert("threshold".to_owned(), threshold("regionShareThreshold"));
            whole.insert("regionShare".to_owned(), share.into());
        }
        let sign = |one: &Value| {
            let unit = unit(one[0].as_str().unwrap_or_default());
            json!({"name": one[0], "points": one[1], "figure": one[2], "unit": unit, "threshold": one[3]})
        };
        whole.insert("signs".to_owned(), list(&of[3]).iter().map(sign).collect());
        whole.insert("settles".to_owned(), settled(&of[4]));
        return whole.into();
    }
    if let Some(of) = short.get("m") {
        let mut whole = named(&of[0], &MARKET);
        whole.insert("settles".to_owned(), settled(&of[1]));
        return whole.into();
    }
    json!({"settles": settled(short)})
}
