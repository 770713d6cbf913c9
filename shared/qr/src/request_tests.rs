use super::*;

fn parse(format: Format, query: &str) -> Result<QrRequest, Vec<QrFault>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    QrRequest::parse(format, pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))))
}

fn good(query: &str, expected: QrRequest, why: &str) {
    assert_eq!(parse(expected.format, query), Ok(expected), "{query}: {why}");
}

fn screen(width: u32, height: u32) -> QrRequest {
    QrRequest { canvas: Canvas::Screen { width, height }, ..QrRequest::new(Format::Png) }
}

fn print(format: Format, extent: Extent, dpi: Option<u32>) -> QrRequest {
    let canvas = Canvas::Print { extent, dpi, x_min: None, x_max: None };
    QrRequest { canvas, ..QrRequest::new(format) }
}

#[test]
fn equal_requests_have_one_normal_form() {
    let default = screen(256, 256);
    good("", default, "nothing is 256 x 256 at Q");
    good("w=256", default, "one side is a square");
    good("h=256&tpl=default&ecl=Q&qz=4&version=1&hri=none&payload=short", default, "defaults spelled out");
    good("w=256&w=256&foo=1&W=3", default, "repetition and unknown names are ignored");
    good("w=0256", default, "leading zeros are the same number");
    good("w=95", screen(95, 95), "the least");
    good("h=800", screen(800, 800), "the most");
    good("w=95&h=800", screen(95, 800), "both are a canvas");
    good("tpl=default-shortid", QrRequest { captioned: true, ..default }, "with the short id");
    good("hri=shortid", QrRequest { captioned: true, ..default }, "the same in print words");
    good("ecl=H&version=7&qz=6", QrRequest { ecl: Ecl::H, version: 7, quiet_zone: 6, ..default }, "the rest");

    let module = Extent::Module(400_000);
    good("x=0.4", print(Format::Png, module, Some(300)), "a PNG has a density");
    good("x=0.400&dpi=300", print(Format::Png, module, Some(300)), "and 300 is its default");
    good("x=0.4", print(Format::Svg, module, None), "vectors need none");
    good("x=0.4&dpi=203", print(Format::Pdf, module, Some(203)), "but take one");
    good("size=20", print(Format::Eps, Extent::Edge(20_000_000), None), "an edge");
}

fn bad(query: &str, expected: &[(&str, &str)], why: &str) {
    let faults = parse(Format::Png, query).expect_err(query);
    let found: Vec<(&str, &str)> = faults.iter().map(|f| (f.parameter, f.message.as_str())).collect();
    assert_eq!(found, expected, "{query}: {why}");
}

#[test]
fn every_fault_names_its_parameter_and_range() {
    let w = ("w", "w must be a whole number of pixels from 95 to 800");
    let h = ("h", "h must be a whole number of pixels from 95 to 800");
    for value in
        ["94", "801", "abc", "-1", "-300", "", "+300", "3e2", "300.0", " 300", "99999999999", "３００"]
    {
        bad(&format!("w={value}"), &[w], "not a width");
        bad(&format!("h={value}"), &[h], "not a height");
    }
    let ecl = ("ecl", "ecl must be one of L, M, Q, H");
    let tpl = ("tpl", "tpl must be one of default, default-shortid");
    for value in ["Z", "q", "", "QQ"] {
        bad(&format!("ecl={value}"), &[ecl], "not a level");
    }
    for value in ["foo", "", "Default"] {
        bad(&format!("tpl={value}"), &[tpl], "not a template");
    }
    bad("w=1&h=2&tpl=foo&ecl=Z", &[w, h, tpl, ecl], "all faults at once");
    bad("qz=3", &[("qz", "qz must be a whole number of modules from 4 to 20")], "the standard's quiet zone");
    bad("version=0", &[("version", "version must be a whole number from 1 to 40")], "no version 0");
    bad("version=41", &[("version", "version must be a whole number from 1 to 40")], "no version 41");
    bad("hri=gs1", &[("hri", "hri must be one of none, shortid")], "not yet");
    bad("payload=gs1dl", &[("payload", "payload must be one of short")], "not silently another payload");
    let x = ("x", "x must be a decimal number of millimetres from 0.1 to 20, at most 6 decimals");
    for value in
        ["0", "0.099999", "20.000001", "-1", "1e1", "", ".", "1.", ".5", "NaN", "inf", "0.1234567", "1,5"]
    {
        bad(&format!("x={value}"), &[x], "not a module");
    }
    let size = ("size", "size must be a decimal number of millimetres from 3 to 1000, at most 6 decimals");
    for value in ["2.999999", "1000.000001", "9999", "99999999999"] {
        bad(&format!("size={value}"), &[size], "not an edge");
    }
    let dpi = ("dpi", "dpi must be a whole number of dots per inch from 72 to 2400");
    bad("x=1&dpi=71", &[dpi], "below a screen");
    bad("x=1&dpi=2401", &[dpi], "beyond a photo setter");
}

#[test]
fn contradictions_are_faults() {
    bad("w=300&w=301", &[("w", "w is given more than once")], "two widths");
    bad("w=300&w=301&w=302&w=1", &[("w", "w is given more than once")], "said once");
    let both = ("size", "size cannot be combined with x: give the module or the edge, not both");
    bad("x=1&size=30", &[both], "two sizes");
    let w = ("w", "w is in pixels and cannot be combined with x or size");
    let h = ("h", "h is in pixels and cannot be combined with x or size");
    bad("x=1&w=300", &[w], "pixels and millimetres");
    bad("size=30&w=300&h=300", &[w, h], "pixels and millimetres");
    bad("dpi=300", &[("dpi", "dpi needs x or size in millimetres")], "a density of nothing");
    bad("xmin=0.4", &[("xmin", "xmin needs x or size in millimetres")], "a limit of nothing");
    bad("x=1&xmin=0.9&xmax=0.8", &[("xmin", "xmin must not be greater than xmax")], "an empty range");
    bad("x=1&xmin=0.4&xmax=0.9", &[("x", "x must lie within xmin and xmax")], "outside its own range");
    let hri = ("hri", "hri and tpl contradict each other: give one, or shortid with default-shortid");
    bad("tpl=default-shortid&hri=none", &[hri], "with and without text");
    bad("tpl=default&hri=shortid", &[hri], "without and with text");
}
