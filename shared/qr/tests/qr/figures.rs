//! The figures the documents promise: versions, sizes in pixels and millimetres, refusals.

use qr::{Ecl, Format, QrError, QrFacts, describe, render};

use crate::grid::{PAYLOADS, draw, request};

const SHORT: (&str, &str) = PAYLOADS[0];

#[test]
fn the_documents_code_is_version_2_with_25_modules_at_level_q() {
    assert_eq!(describe(SHORT.0, Ecl::Q), Ok(QrFacts { version: 2, modules: 25 }));
    for format in Format::ALL {
        let image = draw(format, "", SHORT);
        assert_eq!((image.version, image.modules, image.ecl), (2, 25, Ecl::Q));
        assert_eq!(image.content_type, format.content_type());
        assert_eq!(image.x_dimension_mm, None, "pixels have no width on paper");
    }
}

#[test]
fn images_are_small() {
    for (format, query, most) in [
        (Format::Png, "w=256", 500),
        (Format::Png, "w=300", 600),
        (Format::Png, "w=800&tpl=default-shortid", 1300),
        (Format::Svg, "w=256", 4000),
        (Format::Pdf, "w=256", 4000),
        (Format::Eps, "w=256", 4000),
    ] {
        let size = draw(format, query, SHORT).bytes.len();
        assert!(size <= most, "{query} as {format:?}: {size} bytes");
    }
}

/// Side of the dark square and white around it, measured in the picture.
fn measure(query: &str) -> (u32, u32, u32, u32, u32, u32) {
    let image = image::load_from_memory(&draw(Format::Png, query, SHORT).bytes).expect("a PNG").to_luma8();
    let dark = |(_, _, pixel): &(u32, u32, &image::Luma<u8>)| pixel.0[0] == 0;
    let xs: Vec<u32> = image.enumerate_pixels().filter(dark).map(|(x, _, _)| x).collect();
    let ys: Vec<u32> = image.enumerate_pixels().filter(dark).map(|(_, y, _)| y).collect();
    let span =
        |all: &[u32]| (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0) + 1);
    let ((left, right), (top, bottom)) = (span(&xs), span(&ys));
    (image.width(), image.height(), left, right - left, top, bottom - top)
}

#[test]
fn symbols_are_centred_with_the_largest_whole_module() {
    for (query, expected, why) in [
        ("w=95", (95, 95, 22, 50, 22, 50), "2 px a module: 33 of them take 66 of 95"),
        ("w=256", (256, 256, 40, 175, 40, 175), "7 px a module"),
        ("w=800&h=95", (800, 95, 375, 50, 22, 50), "centred in a wide canvas"),
        ("w=95&h=800", (95, 800, 22, 50, 375, 50), "centred in a tall one"),
        ("w=256&qz=10", (256, 256, 65, 125, 65, 125), "a wider quiet zone: 45 modules of 5 px"),
        ("w=256&version=4", (256, 256, 29, 198, 29, 198), "a larger version: 33 modules of 6 px"),
        ("size=20", (236, 236, 30, 175, 30, 175), "20 mm at 300 dpi: 7 dots a module"),
    ] {
        assert_eq!(measure(query), expected, "{query}: {why}");
    }
}

fn x_dimension(format: Format, query: &str) -> f64 {
    draw(format, query, SHORT).x_dimension_mm.expect("print units")
}

#[test]
fn a_density_gives_whole_dots_within_the_limits() {
    for (query, expected) in [
        ("x=0.4&dpi=203&xmin=0.396&xmax=0.99", "0.500"),
        ("x=0.5&dpi=203", "0.500"),
        ("x=0.4&dpi=203", "0.375"),
        ("x=0.4&dpi=300&xmin=0.396&xmax=0.99", "0.423"),
        ("x=0.4&dpi=300", "0.423"),
        ("x=0.4&dpi=600&xmin=0.396&xmax=0.99", "0.423"),
        ("x=0.423&dpi=600", "0.423"),
        ("x=0.4&dpi=600", "0.381"),
        ("x=0.4&dpi=300&xmax=0.4", "0.339"),
        ("size=20&dpi=300", "0.593"),
        ("size=20&dpi=300&xmax=0.5", "0.423"),
    ] {
        for format in Format::ALL {
            assert_eq!(format!("{:.3}", x_dimension(format, query)), expected, "{query} as {format:?}");
        }
    }
    // 4 of 203 dpi: 0.500 as the printer trade writes it, exactly 101.6 / 203 mm.
    assert!((x_dimension(Format::Png, "x=0.5&dpi=203") - 101.6 / 203.0).abs() < 1e-9);
}

#[test]
fn vectors_without_a_density_are_exact_millimetres() {
    for (query, x, svg, points) in [
        ("x=0.4", 0.4, "width=\"13.2mm\" height=\"13.2mm\"", "[0 0 37.417324 37.417324]"),
        ("size=20", 20.0 / 33.0, "width=\"20mm\" height=\"20mm\"", "[0 0 56.692913 56.692913]"),
        ("x=1&dpi=254", 1.0, "width=\"33mm\" height=\"33mm\"", "[0 0 93.543304 93.543304]"),
    ] {
        for format in [Format::Svg, Format::Pdf, Format::Eps] {
            assert!((x_dimension(format, query) - x).abs() < 1e-9, "{query}");
        }
        let text = |format| String::from_utf8_lossy(&draw(format, query, SHORT).bytes).into_owned();
        assert!(text(Format::Svg).contains(svg), "{query}: {}", text(Format::Svg));
        assert!(text(Format::Pdf).contains(points), "{query}: {}", text(Format::Pdf));
    }
}

#[test]
fn a_png_in_print_units_carries_its_density() {
    for (query, per_metre) in [("x=0.4", 11_811_u32), ("x=0.4&dpi=203", 7992), ("x=0.4&dpi=600", 23_622)] {
        let png = draw(Format::Png, query, SHORT).bytes;
        let at = png.windows(4).position(|name| name == b"pHYs").expect("a density");
        assert_eq!(png[at + 4..at + 8], per_metre.to_be_bytes(), "{query}");
        assert_eq!(png[at + 8..at + 13], [&per_metre.to_be_bytes()[..], &[1]].concat(), "{query}");
    }
    assert!(!draw(Format::Png, "w=256", SHORT).bytes.windows(4).any(|name| name == b"pHYs"));
}

fn refused(query: &str, (payload, caption): (&str, &str)) -> QrError {
    render(payload, caption, &request(Format::Png, query)).expect_err(query)
}

#[test]
fn what_does_not_fit_is_refused_with_the_version_it_needs() {
    let long = "https://example.org/".to_owned() + &"a".repeat(280);
    let expected =
        QrError::DoesNotFit { version_needed: 18, modules: 89, ecl: Ecl::H, needed_px: 97, available_px: 95 };
    assert_eq!(refused("w=95&ecl=H", (&long, "a")), expected);
    assert!(expected.to_string().contains("version 18 (89 x 89 modules) at level H"), "{expected}");
    assert!(render(&long, "a", &request(Format::Png, "w=97&ecl=H")).is_ok(), "one pixel a module is drawn");
    let version = QrError::DoesNotFit {
        version_needed: 40,
        modules: 177,
        ecl: Ecl::Q,
        needed_px: 185,
        available_px: 184,
    };
    assert_eq!(refused("w=184&version=40", SHORT), version);

    let huge = "a".repeat(3000);
    assert_eq!(refused("", (&huge, "a")), QrError::TooLarge { length: 3000, ecl: Ecl::Q });
    assert_eq!(describe(&huge, Ecl::L), Err(QrError::TooLarge { length: 3000, ecl: Ecl::L }));
    assert!(matches!(refused("x=0.43&dpi=300&xmin=0.425&xmax=0.5", SHORT), QrError::XDimension { .. }));
    assert!(matches!(refused("size=10&dpi=300&xmin=0.4", SHORT), QrError::XDimension { .. }));
    assert!(matches!(refused("size=3&dpi=203", SHORT), QrError::DoesNotFit { .. }));
    assert!(matches!(refused("size=1000&dpi=2400", SHORT), QrError::CanvasTooLarge { .. }));
}

#[test]
fn captions_of_every_length_have_a_defined_answer() {
    let payload = "https://tn.gg/x";
    for length in 1..=64 {
        let id = "a".repeat(length);
        let needed = 6 * length + 1;
        for side in [95, 256, 300, 800] {
            let query = format!("w={side}&tpl=default-shortid");
            match render(payload, &id, &request(Format::Png, &query)) {
                Ok(_) => assert!(needed <= side, "{length} characters in {side} pixels"),
                Err(QrError::CaptionDoesNotFit { characters, needed: text }) => {
                    assert!(needed > side, "{length} characters in {side} pixels");
                    assert_eq!((characters, text), (length, format!("a width of {needed} pixels")));
                }
                Err(error) => panic!("{length} in {side}: {error}"),
            }
        }
    }
    let long = "a".repeat(64);
    assert!(render(payload, &long, &request(Format::Pdf, "size=50&hri=shortid")).is_ok());
    let small = render(payload, &long, &request(Format::Pdf, "size=20&hri=shortid"));
    assert!(matches!(small, Err(QrError::CaptionDoesNotFit { characters: 64, .. })), "under 0.75 mm high");
    for bad in ["", "a.b", "ä", "a b"] {
        assert_eq!(refused("tpl=default-shortid", (payload, bad)), QrError::CaptionUnprintable);
    }
    assert!(render(payload, "a.b", &request(Format::Png, "")).is_ok(), "not drawn, not looked at");
}
