use super::*;
use crate::link::Qualifier;

#[test]
fn rows_are_in_order_and_do_not_overlap() {
    let ends =
        ROWS.iter().flat_map(|row| [row.ais.0, row.ais.1].map(|number| Ai::new(number, row.ais.2).order()));
    let ends: Vec<u16> = ends.collect();
    for pair in ends.chunks(2).collect::<Vec<_>>().windows(2) {
        assert!(pair[0][0] <= pair[0][1] && pair[0][1] < pair[1][0], "{pair:?}");
    }
}

#[test]
fn no_identifier_begins_with_another() {
    let texts: Vec<String> = (0..10_000)
        .flat_map(|number| [2, 3, 4].map(|digits| (number, digits)))
        .filter(|(number, digits)| *number < 10_u16.pow(u32::from(*digits)))
        .map(|(number, digits)| Ai::new(number, digits))
        .filter(|ai| Row::find(*ai).is_some())
        .map(|ai| ai.to_string())
        .collect();
    assert!(texts.len() > 500, "{}", texts.len());
    for (one, other) in texts.iter().flat_map(|one| texts.iter().map(move |other| (one, other))) {
        assert!(one == other || !other.starts_with(one.as_str()), "{one} {other}");
    }
}

#[test]
fn identifiers_are_found() {
    for (text, found) in [
        ("00", true),
        ("01", true),
        ("18", false),
        ("21", true),
        ("235", true),
        ("236", false),
        ("3100", true),
        ("3105", true),
        ("3106", false),
        ("310", false),
        ("7040", true),
        ("89", false),
        ("90", true),
        ("99", true),
    ] {
        assert_eq!(Ai::parse(text).is_some_and(|ai| Row::find(ai).is_some()), found, "{text}");
    }
    for text in ["", "1", "12345", "1x", "+1", "1 ", "１１"] {
        assert_eq!(Ai::parse(text), None, "{text}");
    }
}

#[test]
fn the_table_has_the_qualifiers_of_the_parser() {
    for qualifier in Qualifier::ALL {
        let row = Row::find(qualifier.ai()).unwrap();
        assert_eq!(row.lengths(), (1, qualifier.max_length()), "{qualifier:?}");
        assert!(!row.key);
        assert_eq!(qualifier.ai().to_string(), qualifier.text());
    }
    let gtin = Row::find(Ai::GTIN).unwrap();
    assert!(gtin.key);
    assert_eq!(gtin.lengths(), (14, 14));
}

#[test]
fn patterns_are_those_of_the_dictionary() {
    for (span, text) in [(Span(1, 1, 2), "01"), (Span(3100, 3109, 4), "310n"), (Span(3500, 3599, 4), "35nn")]
    {
        assert_eq!(span.pattern(), text);
    }
}
