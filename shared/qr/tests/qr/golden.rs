//! The bytes of some images, fixed: they are cached as immutable by everyone who got them.

use qr::{Format, RENDERER_VERSION};

use crate::grid::{PAYLOADS, draw};

#[test]
fn bytes_change_only_with_the_renderers_version() {
    let mut found = format!("renderer {RENDERER_VERSION}\n");
    for (format, query, code) in [
        (Format::Png, "", 0),
        (Format::Png, "w=95&tpl=default-shortid&ecl=H", 1),
        (Format::Png, "x=0.4&dpi=203&xmin=0.396&hri=shortid", 2),
        (Format::Png, "w=800&version=40", 0),
        (Format::Svg, "", 0),
        (Format::Svg, "size=20&hri=shortid", 2),
        (Format::Pdf, "", 0),
        (Format::Pdf, "x=0.4&dpi=600", 1),
        (Format::Eps, "", 0),
        (Format::Eps, "x=0.4&hri=shortid", 1),
    ] {
        let image = draw(format, query, PAYLOADS[code]);
        let again = draw(format, query, PAYLOADS[code]);
        assert_eq!(image, again, "the same request gives the same image");
        assert!(image.etag.starts_with(&format!("\"qr{RENDERER_VERSION}-")), "{}", image.etag);
        let digest = blake3::hash(&image.bytes).to_hex();
        found += &format!("{} {} {query:?} {code}\n", &digest[..16], format.suffix());
    }
    let expected = r#"renderer 2
9a8975d165cecfb7 png "" 0
d49713070546fa8b png "w=95&tpl=default-shortid&ecl=H" 1
7d37e4927a4586f9 png "x=0.4&dpi=203&xmin=0.396&hri=shortid" 2
95d8d22e86f127b4 png "w=800&version=40" 0
1ca515abf1164620 svg "" 0
6dde7986f3cab7d6 svg "size=20&hri=shortid" 2
9a5e2db8c98c3e85 pdf "" 0
4a3446ef16c08108 pdf "x=0.4&dpi=600" 1
09a385942630c01d eps "" 0
e446f391624fae78 eps "x=0.4&hri=shortid" 1
"#;
    assert_eq!(found, expected, "raise RENDERER_VERSION, then fix the digests here");
}
