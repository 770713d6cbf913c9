//! From the JSON of an order to a `PrintSpec`.

use qr::{DPI_RANGE, Ecl, MIN_CAPTION_MM, QUIET_ZONE_RANGE, SIZE_RANGE_NM, X_RANGE_NM};
use serde_json::{Map, Value};

use super::{
    CodeSize, CodeSpec, Hri, HriText, PrintFormat, PrintSpec,
    members::{Faults, Object},
    naming::Naming,
    sheet::Sheet,
};
use crate::place::{self, Device};

/// Height of capitals when the order does not say, in nanometres: 8 point type.
const DEFAULT_FONT_NM: u32 = 2_000_000;
/// Tallest capitals in nanometres.
const MAX_FONT_NM: u32 = 20_000_000;

pub(super) fn parse(members: &Map<String, Value>) -> Result<PrintSpec, Vec<String>> {
    let mut faults = Faults::default();
    let root = Object { path: "", members };
    faults.unknown(root, &PrintSpec::MEMBERS);
    if !root.has("format") {
        faults.add("format is missing".to_owned());
    }
    let format = faults.one_of(root, "format", &PrintFormat::ALL.map(|format| (format.as_str(), format)));
    let layout = faults.object(root, "layout", "layout.");
    let layout = layout.and_then(|layout| Sheet::parse(&mut faults, layout, format));
    if format == Some(PrintFormat::PdfSheets) && !root.has("layout") {
        faults.add("layout is missing: pdf-sheets needs the labels of a sheet".to_owned());
    }
    let naming = naming(&mut faults, root, format);
    let code = code(&mut faults, root);
    let hri = hri(&mut faults, root);
    let dpi = faults.whole(root, "dpi", &DPI_RANGE);
    let allow_small = faults.flag(root, "allowSmall").unwrap_or(false);

    let (Some(format), true) = (format, faults.0.is_empty()) else { return Err(faults.0) };
    let dpi = dpi.or(format.default_dpi());
    let spec = PrintSpec { format, code, layout, naming, hri, dpi, allow_small };
    small_module(&mut faults, &spec);
    if faults.0.is_empty() { Ok(spec) } else { Err(faults.0) }
}

fn code(faults: &mut Faults, root: Object<'_>) -> CodeSpec {
    let mut code = CodeSpec {
        ecl: Ecl::Q,
        version: 1,
        size: CodeSize::Fit,
        quiet_zone: *QUIET_ZONE_RANGE.start(),
        is_digital_link: false,
    };
    let Some(object) = faults.object(root, "code", "code.") else { return code };
    faults.unknown(object, &["ecl", "version", "quietZone", "moduleMm", "sizeMm", "payload"]);
    let ecl = faults.one_of(object, "ecl", &Ecl::ALL.map(|ecl| (ecl.as_str(), ecl)));
    code.ecl = ecl.unwrap_or(code.ecl);
    let version = faults.whole(object, "version", &(1..=40)).and_then(|version| u8::try_from(version).ok());
    code.version = version.unwrap_or(code.version);
    code.quiet_zone = faults.whole(object, "quietZone", &QUIET_ZONE_RANGE).unwrap_or(code.quiet_zone);
    let payload = faults.one_of(object, "payload", &[("short", false), ("gs1dl", true)]);
    code.is_digital_link = payload.unwrap_or_default();
    let module = faults.length(object, "moduleMm", &X_RANGE_NM);
    let edge = faults.length(object, "sizeMm", &SIZE_RANGE_NM);
    if object.has("moduleMm") && object.has("sizeMm") {
        faults
            .add("code.sizeMm cannot be combined with code.moduleMm: give the module or the edge".to_owned());
    }
    code.size = module.map(CodeSize::Module).or(edge.map(CodeSize::Edge)).unwrap_or(code.size);
    code
}

fn hri(faults: &mut Faults, root: Object<'_>) -> Hri {
    let mut hri = Hri { text: HriText::None, font: DEFAULT_FONT_NM };
    let Some(object) = faults.object(root, "hri", "hri.") else { return hri };
    faults.unknown(object, &["text", "fontMm"]);
    hri.text = faults.one_of(object, "text", &HriText::ALL).unwrap_or(hri.text);
    let least = (MIN_CAPTION_MM * 1e6) as u32;
    hri.font = faults.length(object, "fontMm", &(least..=MAX_FONT_NM)).unwrap_or(hri.font);
    hri
}

fn naming(faults: &mut Faults, root: Object<'_>, format: Option<PrintFormat>) -> Naming {
    let default = Naming::default();
    let Some(format) = format else { return default };
    let Some(template) = faults.text(root, "naming") else { return default };
    if !format.is_zip() {
        faults.add(format!("naming is for formats with a file for each code, not {}", format.as_str()));
        return default;
    }
    match Naming::parse(template, format.as_str()) {
        Ok(naming) => naming,
        Err(problems) => {
            problems.into_iter().for_each(|problem| faults.add(format!("naming {problem}")));
            default
        }
    }
}

/// A module that every code would have is refused here, not at the first code.
fn small_module(faults: &mut Faults, spec: &PrintSpec) {
    if let CodeSize::Module(wanted) = spec.code.size {
        let device = Device::of(spec);
        if let Some(problem) = place::too_small(spec, device.module(wanted)) {
            faults.add(format!("code.moduleMm: {problem}"));
        }
    }
}
