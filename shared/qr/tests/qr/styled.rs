//! Codes in colours and shapes, with a logo: read by two decoders, or refused with the reason.

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{ImageFormat, Rgba, RgbaImage};
use qr::{Ecl, Format, QrError, QrRequest, render_with};
use tempfile::TempDir;

use crate::{
    grid::{PAYLOADS, request},
    tools,
};

const CODE: (&str, &str) = PAYLOADS[0];

const LOOKS: [&str; 4] = [
    "color=1a4d8f",
    "shape=rounded&background=fff4d6",
    "shape=dots&color=7a1f1f&background=eef6ff",
    "logo=1&ecl=H&version=6&shape=rounded&color=10402a",
];
const SIZES: [&str; 3] = ["w=256", "w=400&h=320&tpl=default-shortid", "w=800"];

fn svg_logo() -> String {
    let svg =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 2 1'><path d='M0 0h2v1z' fill='#a00'/></svg>";
    format!("data:image/svg+xml;base64,{}", BASE64_STANDARD.encode(svg))
}

/// A red disc on nothing.
fn png_logo() -> String {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let logo = RgbaImage::from_fn(40, 40, |x, y| {
        let inside = x.abs_diff(20).pow(2) + y.abs_diff(20).pow(2) <= 400;
        Rgba(if inside { [200, 0, 0, 255] } else { [0; 4] })
    });
    logo.write_to(&mut bytes, ImageFormat::Png).expect("a PNG");
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(bytes.into_inner()))
}

fn draw(format: Format, query: &str, logo: &str) -> Result<qr::QrImage, QrError> {
    render_with(CODE.0, CODE.1, &request(format, query), Some(logo))
}

#[test]
fn styled_codes_are_read_by_both_decoders() {
    let (folder, mut files) = (TempDir::new().expect("a temporary folder"), Vec::new());
    for look in LOOKS {
        for size in SIZES {
            let query = format!("{size}&{look}");
            let png = draw(Format::Png, &query, &png_logo()).expect(&query).bytes;
            let svg = draw(Format::Svg, &query, &svg_logo()).expect(&query).bytes;
            for (kind, picture) in [("png", png.to_vec()), ("svg", tools::rsvg(&svg, "1"))] {
                let what = format!("{query} {kind}");
                assert_eq!(tools::rqrr(&picture, &what), [CODE.0], "{what}");
                files.push(tools::save(folder.path(), &format!("{}.png", files.len()), &picture));
            }
        }
    }
    assert_eq!(tools::zbarimg(&files), vec![CODE.0; files.len()]);
}

#[test]
fn a_logo_has_its_colours_in_the_middle() {
    let png = draw(Format::Png, "w=400&logo=1&ecl=H&version=6", &png_logo()).expect("drawn").bytes;
    let picture = image::load_from_memory(&png).expect("a PNG").to_rgb8();
    assert_eq!(picture.get_pixel(200, 200).0, [200, 0, 0]);
    assert_eq!(picture.get_pixel(0, 0).0, [255; 3]);
    let svg = draw(Format::Svg, "logo=1&ecl=H&version=6", &svg_logo()).expect("drawn").bytes;
    assert!(String::from_utf8_lossy(&svg).contains(&format!("href=\"{}\"", svg_logo())));
}

#[test]
fn what_could_not_be_read_is_refused_with_the_reason() {
    for (query, logo, expected) in [
        ("color=ffffff&background=000000", None, QrError::Inverted),
        ("logo=1", None, QrError::NoLogo),
        ("logo=1", Some("https://a.example/x.png".to_owned()), QrError::NoLogo),
        ("logo=1&ecl=L", Some(png_logo()), QrError::LogoCovers { version: 1, ecl: Ecl::L }),
        ("logo=1&ecl=H&version=6", Some(svg_logo()), QrError::LogoIsSvg),
    ] {
        let found = render_with(CODE.0, CODE.1, &request(Format::Png, query), logo.as_deref());
        assert_eq!(found.expect_err(query), expected, "{query}");
    }
    let faint = draw(Format::Svg, "color=999999", "").expect_err("too faint");
    assert_eq!(
        faint.to_string(),
        "color and background have a contrast of 2.85 : 1; a code needs 4.5 : 1 at least"
    );
}

#[test]
fn print_stays_black_and_plain_codes_are_as_they_were() {
    for (format, beside) in [
        (Format::Pdf, ("w", "300")),
        (Format::Eps, ("w", "300")),
        (Format::Png, ("x", "0.4")),
        (Format::Svg, ("size", "20")),
    ] {
        for style in [("color", "112233"), ("background", "ffffff"), ("shape", "dots"), ("logo", "1")] {
            let faults = QrRequest::parse(format, [beside, style]).expect_err("print");
            assert!(faults.len() == 1 && faults[0].message.contains("stays black"), "{faults:?}");
        }
    }
    let plain = request(Format::Png, "color=000000&background=FFFFFF&shape=square&logo=0");
    assert!(plain == request(Format::Png, "") && !plain.is_styled());
}
