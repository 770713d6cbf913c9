//! No request and no payload makes the renderer panic, and the level is always the asked one.

use proptest::prelude::*;
use qr::{Ecl, Format, QrRequest, describe, render};

fn parameter(
    name: &'static str,
    values: &'static [&'static str],
) -> impl Strategy<Value = Option<(&'static str, String)>> {
    let known = prop::sample::select(values).prop_map(str::to_owned);
    let any = prop_oneof![8 => known, 1 => "[0-9.]{0,6}", 1 => "\\PC{0,6}"];
    prop::option::weighted(0.3, any).prop_map(move |value| value.map(|value| (name, value)))
}

fn query() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let parameters = (
        parameter("w", &["95", "96", "128", "300", "800"]),
        parameter("h", &["95", "97", "256", "511", "800"]),
        parameter("tpl", &["default", "default-shortid"]),
        parameter("hri", &["none", "shortid"]),
        parameter("ecl", &["L", "M", "Q", "H"]),
        parameter("qz", &["4", "7", "20"]),
        parameter("version", &["1", "9", "40"]),
        parameter("x", &["0.1", "0.4", "0.423333", "20"]),
        parameter("size", &["3", "25.4", "1000"]),
        parameter("dpi", &["72", "203", "300", "2400"]),
        parameter("xmin", &["0.1", "0.396"]),
        parameter("xmax", &["0.99", "20"]),
    );
    parameters.prop_map(|(a, b, c, d, e, f, g, h, i, j, k, l)| {
        [a, b, c, d, e, f, g, h, i, j, k, l].into_iter().flatten().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn rendering_never_panics(
        query in query(),
        format in prop::sample::select(&Format::ALL[..]),
        payload in prop_oneof!["[ -~]{0,200}", "[A-Z0-9:/.]{0,200}", "[0-9]{0,200}"],
        caption in prop_oneof!["[A-Za-z0-9_-]{1,64}", "\\PC{0,20}"],
    ) {
        let pairs = || query.iter().map(|(name, value)| (*name, value.as_str()));
        match QrRequest::parse(format, pairs()) {
            Ok(request) => {
                prop_assert_eq!(QrRequest::parse(format, pairs()), Ok(request));
                if let Ok(image) = render(&payload, &caption, &request) {
                    prop_assert_eq!(image.ecl, request.ecl());
                    prop_assert_eq!(image.modules, 17 + 4 * u32::from(image.version));
                    let facts = describe(&payload, request.ecl()).expect("what is drawn fits");
                    prop_assert_eq!(image.version, facts.version.max(request.version()));
                    prop_assert!(image.bytes.len() < 600_000, "{} bytes", image.bytes.len());
                }
            }
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                for fault in faults {
                    prop_assert!(fault.message.contains(fault.parameter), "{}", fault);
                }
            }
        }
    }

    #[test]
    fn every_payload_has_a_version_at_every_level(payload in "[ -~]{0,200}") {
        for ecl in Ecl::ALL {
            prop_assert!(describe(&payload, ecl).is_ok());
        }
    }
}
