use std::convert::Infallible;

use kernel::domain::body::assert_faults;
use serde_json::json;

use super::*;

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn with(changes: &[(&str, Value)]) -> Value {
    let mut value =
        json!({"product": ID, "count": 10, "form": "numbered", "defaultRedirectUrl": "https://e.com"});
    for (name, to) in changes {
        value[*name] = to.clone();
    }
    value
}

#[test]
fn each_fault_is_named() {
    let random = |name: &'static str, value: Value| with(&[("form", json!("random")), (name, value)]);
    for (value, expected) in [
        (with(&[]), vec![]),
        (with(&[("start", json!(0)), ("digits", json!(8)), ("prefix", json!("A-"))]), vec![]),
        (with(&[("tags", json!(["a"])), ("shortDomain", json!("TN.gg"))]), vec![]),
        (random("length", json!(20)), vec![]),
        (random("length", Value::Null), vec![]),
        (
            json!({}),
            vec!["product is required", "count is required", "form is required", "defaultRedirectUrl is"],
        ),
        (json!([]), vec!["source.serials must be an object"]),
        (with(&[("count", json!(0))]), vec!["count must be a whole number from 1 to 1000"]),
        (with(&[("count", json!(1_001))]), vec!["count must be a whole number from 1 to 1000"]),
        (with(&[("form", json!("other"))]), vec!["form must be numbered or random"]),
        (with(&[("length", json!(16))]), vec!["length is not for serials of this form"]),
        (random("start", json!(1)), vec!["start is not for"]),
        (random("length", json!(12)), vec!["length must be a whole number from 13 to 20"]),
        (random("prefix", json!("12345678")), vec!["prefix must leave room for 13"]),
        (with(&[("prefix", json!("a/b"))]), vec!["prefix must have at most 19"]),
        (
            with(&[("prefix", json!("1234567890123456789")), ("start", json!(95))]),
            vec!["prefix and the numbers"],
        ),
        (with(&[("start", json!(MAX_NUMBER))]), vec!["prefix and the numbers"]),
        (with(&[("start", json!(-1))]), vec!["start must be a whole number"]),
        (with(&[("tags", json!([""]))]), vec!["tags must hold"]),
        (with(&[("colour", json!("red"))]), vec!["source.serials.colour is not a member"]),
        (with(&[("defaultRedirectUrl", json!("javascript:1"))]), vec!["defaultRedirectUrl"]),
    ] {
        assert_faults(&value, |value| Serials::parse(value, 1_000), &expected);
    }
}

#[test]
fn numbers_are_filled_and_random_characters_are_even() {
    let numbered = Serials::parse(&with(&[("prefix", json!("A")), ("digits", json!(4))]), 1_000).unwrap();
    assert_eq!((numbered.numbered(7, 4), numbered.numbered(12_345, 4)), ("A0007".into(), "A12345".into()));
    assert_eq!((numbered.bits(), numbered.example()), (None, "A0010".to_owned()));
    let stored: Serials = serde_json::from_value(serde_json::to_value(&numbered).unwrap()).unwrap();
    assert_eq!(stored, numbered);

    let random = Serials::parse(&with(&[("form", json!("random"))]), 1_000).unwrap();
    assert_eq!((random.form, random.bits()), (Form::Random { length: DEFAULT_RANDOM }, Some(79)));
    assert_eq!(random.example().len(), DEFAULT_RANDOM);
    // Each byte once, from the highest: eight are passed over, and each letter comes eight times.
    let mut bytes = (0..=u8::MAX).rev();
    let text = random.random(248, || Ok::<u8, Infallible>(bytes.next().unwrap())).unwrap();
    for letter in ALPHABET {
        assert_eq!(text.bytes().filter(|byte| byte == letter).count(), 8, "{letter}");
    }
    assert_eq!(Serials { form: Form::Random { length: MIN_RANDOM }, ..random }.bits(), Some(64));
}
