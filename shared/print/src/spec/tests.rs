use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::PrintItem;

fn parse(members: &Value) -> Result<PrintSpec, Vec<String>> {
    PrintSpec::parse(members.as_object().expect("an object"))
}

fn good(members: &Value) -> PrintSpec {
    parse(members).unwrap_or_else(|faults| panic!("{members}: {faults:?}"))
}

/// The order is refused with exactly these faults, each of which contains its text.
#[track_caller]
fn refused(members: &Value, expected: &[&str]) {
    let faults = parse(members).expect_err("a fault");
    let fits = faults.len() == expected.len()
        && faults.iter().zip(expected).all(|(fault, text)| fault.contains(text));
    assert!(fits, "{members}: {faults:#?} instead of {expected:#?}");
}

#[test]
fn defaults_are_filled_in() {
    let spec = good(&json!({"format": "png"}));
    let expected = json!({
        "format": "png", "dpi": 300, "allowSmall": false, "naming": "{index}_{shortId}",
        "code": {"ecl": "Q", "version": 1, "quietZone": 4},
        "hri": {"text": "none", "fontMm": 2.0},
    });
    assert_eq!(Value::Object(spec.to_json()), expected);
    assert_eq!(good(&json!({"format": "zpl"})).dpi, Some(203), "that of label printers");
    assert_eq!(good(&json!({"format": "pdf", "dpi": null})).dpi, None, "null is as if it were not there");
}

#[test]
fn every_fault_is_named_at_once() {
    refused(&json!({}), &["format is missing"]);
    refused(&json!({"format": "gif"}), &["format must be one of png, svg"]);
    refused(
        &json!({"format": "png", "color": "1a4d8f", "code": {"shape": "dots"}}),
        &["color is for images on screens alone", "code.shape is for images on screens alone"],
    );
    refused(
        &json!({"format": "pdf", "colour": 1, "code": {"ecl": "X", "modul": 1, "version": 41}, "dpi": 1.5}),
        &[
            "colour is not known",
            "code.modul is not known",
            "code.ecl must be one of L, M, Q, H",
            "code.version must be a whole number from 1 to 40",
            "dpi must be a whole number from 72 to 2400",
        ],
    );
    refused(
        &json!({"format": "pdf", "code": {"moduleMm": 0.4, "sizeMm": 20}}),
        &["code.sizeMm cannot be combined with code.moduleMm"],
    );
    refused(
        &json!({"format": "pdf", "hri": "shortId", "code": 4, "layout": [], "naming": 3, "allowSmall": "yes"}),
        &[
            "layout must be an object",
            "naming must be a text",
            "code must be an object",
            "hri must be an object",
            "allowSmall must be true or false",
        ],
    );
    refused(&json!({"format": "pdf-pages", "naming": "{index}"}), &["naming is for formats with a file"]);
    refused(&json!({"format": "pdf", "naming": "a/b"}), &["naming may have", "naming has no placeholder"]);
}

#[test]
fn labels_must_lie_on_their_sheet() {
    refused(&json!({"format": "pdf-sheets"}), &["layout is missing"]);
    refused(
        &json!({"format": "pdf-sheets", "layout": {"rows": 2}}),
        &["layout.labelWidthMm is missing", "layout.labelHeightMm is missing", "layout.sheetWidthMm and"],
    );
    let sheet = json!({"sheetWidthMm": 210, "sheetHeightMm": 297, "labelWidthMm": 70, "labelHeightMm": 40});
    let with = |more: Value| {
        let mut layout = sheet.as_object().cloned().expect("an object");
        layout.extend(more.as_object().cloned().expect("an object"));
        json!({"format": "pdf-sheets", "layout": layout})
    };
    good(&with(json!({"columns": 3, "rows": 7})));
    refused(&with(json!({"columns": 4})), &["layout.columns do not fit: they need 280 mm"]);
    refused(
        &with(json!({"columns": 3, "marginLeftMm": 1})),
        &["layout.columns do not fit: they need 211 mm"],
    );
    refused(&with(json!({"rows": 7, "gapYMm": 5})), &["layout.rows do not fit: they need 310 mm"]);
    refused(&with(json!({"columns": 3, "start": 4})), &["layout.start must be a whole number from 1 to 3"]);
    refused(&with(json!({"size": "a4-70x37"})), &["cannot be combined"; 4]);
    refused(&json!({"format": "pdf-sheets", "layout": {"size": "a5"}}), &["layout.size must be one of a4-"]);
    refused(
        &json!({"format": "zpl", "layout": {"size": "a4-70x37", "start": 2, "cutMarks": true}}),
        &["layout.start is for", "layout.cutMarks is for", "several labels"],
    );
    good(&json!({"format": "zpl", "layout": {"size": "roll-50x25"}}));
}

#[test]
fn a_module_that_is_too_small_is_refused_unless_it_is_allowed() {
    for (members, is_good, why) in [
        (json!({"format": "pdf", "code": {"moduleMm": 0.25}}), true, "as small as may be"),
        (json!({"format": "pdf", "code": {"moduleMm": 0.249}}), false, "too small"),
        (json!({"format": "pdf", "code": {"moduleMm": 0.249}, "allowSmall": true}), true, "allowed"),
        (json!({"format": "png", "code": {"moduleMm": 0.25}}), true, "3 dots of 300 dpi are 0.254 mm"),
        (json!({"format": "zpl", "code": {"moduleMm": 0.25}}), true, "2 dots of 203 dpi are 0.250246 mm"),
        (json!({"format": "pdf", "dpi": 96, "code": {"moduleMm": 0.3}}), false, "1 dot of 96 dpi"),
        (json!({"format": "pdf", "dpi": 96, "code": {"moduleMm": 0.3}, "allowSmall": true}), true, "allowed"),
        (json!({"format": "pdf", "dpi": 600, "code": {"moduleMm": 0.255}}), true, "6 dots are 0.254 mm"),
        (json!({"format": "pdf", "dpi": 150, "code": {"moduleMm": 0.255}}), true, "2 dots are 0.339 mm"),
        (json!({"format": "pdf", "dpi": 150, "code": {"moduleMm": 0.25}}), false, "1 dot is 0.169 mm"),
    ] {
        assert_eq!(parse(&members).is_ok(), is_good, "{members}: {why}");
    }
}

#[test]
fn known_sizes_are_orders_that_are_taken() {
    for (index, size) in sizes::ALL.iter().enumerate() {
        let (name, measures) = (size.name, Sheet::known(size).measures());
        assert!(sizes::ALL[..index].iter().all(|other| other.name != name), "{name} is there once");
        let by_name = good(&json!({"format": "pdf-sheets", "layout": {"size": name}}));
        let by_measures = good(&json!({"format": "pdf-sheets", "layout": measures}));
        assert_eq!(by_name.labels(), by_measures.labels(), "{name}");
        let layout = by_name.layout.expect("one was given");
        let corner = layout.corner(layout.rows - 1, layout.columns - 1);
        assert!(corner.0 + u64::from(layout.label_width) <= u64::from(layout.width), "{name}");
        assert!(corner.1 + u64::from(layout.label_height) <= u64::from(layout.height), "{name}");
    }
}

#[test]
fn chunks_are_whole_sheets() {
    let spec = good(&json!({"format": "pdf-sheets", "layout": {"size": "a4-70x37", "start": 5}}));
    let ranges: Vec<_> = spec.chunks_of(100, 50).collect();
    assert_eq!(ranges, [0..44, 44..92, 92..100], "two sheets of 24, of which 4 labels are gone");
    assert_eq!([0, 19, 20, 43, 44].map(|index| spec.page_of(index)), [0, 0, 1, 1, 2]);
    assert_eq!(spec.codes_of_page(0, 100), 0..20);
    assert_eq!(spec.codes_of_page(4, 100), 92..100);
    assert!(spec.codes_of_page(5, 100).is_empty());
    assert_eq!((spec.chunks_of(3, 1).next(), spec.chunks_of(3, 1).count()), (Some(0..3), 1));
    let plain = good(&json!({"format": "png"}));
    assert_eq!(plain.chunks(2_500).collect::<Vec<_>>(), [0..1_000, 1_000..2_000, 2_000..2_500]);
    assert_eq!(plain.chunks(0).count(), 0);
    assert_eq!(plain.page_of(7), 7);
}

#[test]
fn what_items_need_follows_from_names_and_texts() {
    let needs = |members: Value| {
        let spec = good(&members);
        (spec.needs_serial(), spec.needs_gtin())
    };
    assert_eq!(needs(json!({"format": "png"})), (false, false));
    assert_eq!(needs(json!({"format": "png", "naming": "{serial}"})), (true, false));
    assert_eq!(needs(json!({"format": "png", "naming": "{gtin}_{index}"})), (false, true));
    assert_eq!(needs(json!({"format": "zpl", "hri": {"text": "serial"}})), (true, false));
    assert_eq!(needs(json!({"format": "zpl", "hri": {"text": "gs1"}})), (true, true));
}

/// Any JSON, with the names of members among its texts.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        3 => prop::sample::select(vec!["format", "layout", "code", "hri", "dpi", "naming", "size", "rows", "columns", "start", "moduleMm", "labelWidthMm", "labelHeightMm", "sheetWidthMm", "sheetHeightMm", "text", "fontMm"]).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..300_u32).prop_map(Value::from),
        prop::sample::select(vec![
            "png",
            "zpl",
            "pdf-sheets",
            "a4-70x37",
            "roll-50x25",
            "{serial}",
            "gs1",
            "none"
        ])
        .prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 8, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::btree_map(name.clone(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members that are mostly right.
fn likely() -> impl Strategy<Value = Map<String, Value>> {
    let format = prop::sample::select(&PrintFormat::ALL[..]).prop_map(|format| json!(format.as_str()));
    let length = || (0..200_000_u32).prop_map(|number| f64::from(number) / 1_000.0);
    let own = (length(), length(), 1..12_u32, 1..12_u32, prop::option::of(length()), length()).prop_map(
        |(width, height, rows, columns, margin, gap)| {
            json!({"sheetWidthMm": 1_000, "sheetHeightMm": 1_000, "labelWidthMm": width, "labelHeightMm": height,
                "rows": rows, "columns": columns, "marginLeftMm": margin, "gapYMm": gap})
        },
    );
    let known = (0..sizes::ALL.len()).prop_map(|nth| json!({"size": sizes::ALL[nth].name}));
    let code = prop_oneof![
        length().prop_map(|mm| json!({"moduleMm": mm / 50.0})),
        length().prop_map(|mm| json!({"sizeMm": mm, "version": 3})),
    ];
    let dpi = prop::option::of(60..1_300_u32);
    let layout = prop::option::of(prop_oneof![own, known]);
    (format, layout, prop::option::of(code), dpi, any::<bool>()).prop_map(
        |(format, layout, code, dpi, small)| {
            let members =
                json!({"format": format, "layout": layout, "code": code, "dpi": dpi, "allowSmall": small});
            members.as_object().cloned().unwrap_or_default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_json_makes_the_parser_panic(members in any_json()) {
        if let Value::Object(members) = members
            && let Err(faults) = PrintSpec::parse(&members)
        {
            prop_assert!(!faults.is_empty());
        }
    }

    #[test]
    fn what_is_written_out_is_read_as_the_same(members in likely()) {
        if let Ok(spec) = PrintSpec::parse(&members) {
            prop_assert_eq!(PrintSpec::parse(&spec.to_json()), Ok(spec));
        }
    }

    #[test]
    fn what_is_parsed_is_drawn_or_refused(members in likely(), short_id in "[A-Za-z0-9_-]{1,20}") {
        if let Ok(spec) = PrintSpec::parse(&members) {
            let url = format!("HTTPS://TN.GG/{short_id}");
            let item = PrintItem { serial: None, short_id, url, gtin: None };
            if let Ok(placed) = crate::place::place(&spec, 0, &item) {
                let end = placed.side() - placed.quiet_zone;
                prop_assert!(placed.left >= placed.quiet_zone * placed.module);
                prop_assert!(placed.left + end * placed.module <= placed.width);
                prop_assert!(placed.top + end * placed.module <= placed.height);
            }
        }
    }
}
