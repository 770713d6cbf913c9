use super::*;
use crate::domain::body::assert_faults;

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn point(longitude: f64, latitude: f64) -> Value {
    json!({"type": "Point", "coordinates": [longitude, latitude]})
}

#[test]
fn each_form_of_a_point_is_understood() {
    for (value, expected) in [
        (json!({"position": point(-17.3, 36.0)}), (36.0, -17.3)),
        (json!({"latitude": 36, "longitude": -17.3}), (36.0, -17.3)),
        (json!({"latitude": 36, "longitude": -17.3, "position": point(-17.3, 36.0)}), (36.0, -17.3)),
        (json!({"latitude": 5, "longitude": 6, "position": point(1.0, 36.0)}), (36.0, 1.0)),
        (json!({"latitude": -90, "longitude": 180, "position": null}), (-90.0, 180.0)),
        (json!({"latitude": -0.0, "longitude": -0.0}), (0.0, 0.0)),
        (json!({"position": point(1.0, 2.0), "color": "red", "id": 7}), (2.0, 1.0)),
    ] {
        let location = Location::parse(&value, "location", Form::Open).unwrap();
        let found = location.coordinates.unwrap();
        assert_eq!((found.latitude(), found.longitude()), expected, "{value}");
        assert!(found.latitude().is_sign_positive() || found.latitude() < 0.0, "{value}");
        let again = Location::parse(&Value::Object(location.members()), "l", Form::Trigger).unwrap();
        assert_eq!(again.coordinates, Some(found), "{value}");
    }
    let full = json!({"place": ID, "timestamp": 7, "customFields": {"A": 1}, "position": point(1.0, 2.0)});
    let members = Location::parse(&full, "location", Form::Open).unwrap().members();
    let expected = json!({"place": ID, "timestamp": 7, "customFields": {"A": 1},
        "position": {"type": "Point", "coordinates": [1.0, 2.0]}, "latitude": 2.0, "longitude": 1.0});
    assert_eq!(Value::Object(members), expected);
}

#[test]
fn each_fault_is_named() {
    let good = point(1.0, 2.0);
    for (form, value, expected) in [
        (Form::Open, json!([]), vec!["location must be an object"]),
        (Form::Open, json!({}), vec!["location must have position, latitude and longitude, or place"]),
        (Form::Open, json!({"latitude": 1}), vec!["location.latitude needs longitude"]),
        (Form::Open, json!({"longitude": 1}), vec!["location.longitude needs latitude"]),
        (
            Form::Open,
            json!({"latitude": 90.1, "longitude": 0}),
            vec!["location.latitude must be a number from -90 to 90"],
        ),
        (
            Form::Open,
            json!({"latitude": "1", "longitude": 180.5}),
            vec!["location.latitude", "location.longitude must be a number from -180 to 180"],
        ),
        (Form::Open, json!({"latitude": 1, "longitude": 2, "position": good}), vec![]),
        (
            Form::Open,
            json!({"position": {"type": "Polygon", "coordinates": [1, 2]}}),
            vec!["must be a GeoJSON point"],
        ),
        (
            Form::Open,
            json!({"position": {"type": "Point", "coordinates": [1, 2, 3]}}),
            vec!["must be a GeoJSON point"],
        ),
        (
            Form::Open,
            json!({"position": {"type": "Point", "coordinates": [1]}}),
            vec!["must be a GeoJSON point"],
        ),
        (
            Form::Open,
            json!({"position": {"type": "Point", "coordinates": "1,2"}}),
            vec!["must be a GeoJSON point"],
        ),
        (Form::Open, json!({"position": {"coordinates": [1, 2]}}), vec!["must be a GeoJSON point"]),
        (Form::Open, json!({"position": [1, 2]}), vec!["must be a GeoJSON point"]),
        (Form::Open, json!({"position": point(2.0, 91.0)}), vec!["location.position.coordinates must hold"]),
        (Form::Open, json!({"position": point(180.1, 1.0)}), vec!["location.position.coordinates must hold"]),
        (Form::Open, json!({"place": "x"}), vec!["location.place: an id has 24"]),
        (Form::Open, json!({"place": ID, "timestamp": -1}), vec!["location.timestamp must be an integer"]),
        (
            Form::Open,
            json!({"place": ID, "timestamp": 1.5, "customFields": 1}),
            vec!["location.timestamp", "location.customFields"],
        ),
        (
            Form::Commissioning,
            json!({"latitude": 1, "longitude": 2}),
            vec!["location must have position or place"],
        ),
        (Form::Commissioning, json!({"place": ID, "color": 1}), vec!["location.color is not a member"]),
        (
            Form::Commissioning,
            json!({"place": ID, "customFields": {}}),
            vec!["location.customFields is not a member"],
        ),
        (
            Form::Commissioning,
            json!({"place": ID, "createdAt": "x", "scopes": {"users": []}}),
            vec!["location.createdAt", "location.scopes"],
        ),
        (
            Form::Commissioning,
            json!({"place": ID, "createdAt": 1, "timestamp": 2, "scopes": {"users": [], "projects": []}}),
            vec![],
        ),
        (Form::Commissioning, json!({"position": good, "latitude": 2, "longitude": 1}), vec![]),
        (
            Form::Trigger,
            json!({"position": good}),
            vec!["location must have latitude, longitude and position"],
        ),
        (
            Form::Trigger,
            json!({"position": good, "latitude": 2, "longitude": 1, "place": ID}),
            vec!["location.place is not a member"],
        ),
        (Form::Trigger, json!({"position": good, "latitude": 2, "longitude": 1}), vec![]),
    ] {
        assert_faults(&value, |value| Location::parse(value, "location", form), &expected);
    }
}

#[test]
fn the_position_of_a_place_is_used_where_none_is_given() {
    let place = Coordinates::new(1.0, 2.0);
    let own = Coordinates::new(3.0, 4.0);
    let at = |coordinates| Location { coordinates, ..Location::default() }.or_at(place).coordinates;
    assert_eq!((at(None), at(own)), (place, own));
}
