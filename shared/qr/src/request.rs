//! What an image request asks for, parsed from its query into one normal form.

use std::{fmt, ops::RangeInclusive};

use super::{
    Ecl, Format,
    capacity::MAX_VERSION,
    style::{self, Rgb, Shape, Style},
};

/// Pixels of `w` and `h`: the limits of the API document.
pub const SIDE_RANGE: RangeInclusive<u32> = 95..=800;
/// Pixels of both sides when neither is asked for.
pub const DEFAULT_SIDE: u32 = 256;
/// Modules of `qz`: at least the standard's 4; 20 is the width of the smallest symbol, and more
/// white than that is page layout.
pub const QUIET_ZONE_RANGE: RangeInclusive<u32> = 4..=20;
/// `dpi`: from a screen's 72 to the 2,400 of a photo setter.
pub const DPI_RANGE: RangeInclusive<u32> = 72..=2400;
/// The density of a PNG in print units when `dpi` is not given: the usual one of label printers.
pub const DEFAULT_PRINT_DPI: u32 = 300;
/// `x`, `xmin` and `xmax` in nanometres: 0.1 mm is the finest that direct marking uses; 20 keeps the largest symbol
/// (177 modules, 2 x 20 of quiet zone, the caption) inside the 5,080 mm that a PDF page may have.
pub const X_RANGE_NM: RangeInclusive<u32> = 100_000..=20_000_000;
/// `size` in nanometres: 29 modules (version 1 with its quiet zone) of 0.1 mm up to one metre.
pub const SIZE_RANGE_NM: RangeInclusive<u32> = 3_000_000..=1_000_000_000;

/// A length in nanometres, as parsed from decimal millimetres: exact, comparable, hashable.
pub(super) type Nanometres = u32;

/// One thing wrong with a query parameter; the caller answers 400 with all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrFault {
    /// The parameter's name as in the query.
    pub parameter: &'static str,
    /// What is allowed, naming the parameter and its range.
    pub message: String,
}

impl fmt::Display for QrFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A valid request in its normal form: equal requests are equal values, so it is a cache key.
///
/// Only the payload and the caption are missing to draw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QrRequest {
    format: Format,
    ecl: Ecl,
    captioned: bool,
    quiet_zone: u32,
    version: u8,
    canvas: Canvas,
    style: Style,
}

/// How large the image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Canvas {
    /// Pixels; the symbol is centred.
    Screen { width: u32, height: u32 },
    /// Millimetres.
    Print { extent: Extent, dpi: Option<u32>, x_min: Option<Nanometres>, x_max: Option<Nanometres> },
}

/// What print units fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Extent {
    /// The X-dimension: the width of one module.
    Module(Nanometres),
    /// The edge of the symbol with its quiet zone.
    Edge(Nanometres),
}

impl QrRequest {
    /// The request without any parameter: 256 x 256 pixels, level Q, no caption.
    pub const fn new(format: Format) -> Self {
        Self {
            format,
            ecl: Ecl::Q,
            captioned: false,
            quiet_zone: *QUIET_ZONE_RANGE.start(),
            version: 1,
            canvas: Canvas::Screen { width: DEFAULT_SIDE, height: DEFAULT_SIDE },
            style: Style::PLAIN,
        }
    }

    /// Reads the parameters of a query whose names and values are already percent-decoded.
    ///
    /// Unknown parameters are ignored. The README of the crate lists the known ones.
    ///
    /// # Errors
    /// Every fault found, not only the first: a value out of its range, a parameter given twice
    /// with different values, and parameters that exclude each other.
    pub fn parse<'a>(
        format: Format,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<QrFault>> {
        let mut query = Query::read(pairs);
        let default = Self::new(format);

        let width = query.whole("w", &SIDE_RANGE, "a whole number of pixels");
        let height = query.whole("h", &SIDE_RANGE, "a whole number of pixels");
        let template = query.one_of("tpl", &[("default", false), ("default-shortid", true)]);
        let text = query.one_of("hri", &[("none", false), ("shortid", true)]);
        let ecl = query.one_of("ecl", &Ecl::ALL.map(|ecl| (ecl.as_str(), ecl)));
        let quiet_zone = query.whole("qz", &QUIET_ZONE_RANGE, "a whole number of modules");
        let version = query.whole("version", &(1..=u32::from(MAX_VERSION)), "a whole number");
        query.one_of("payload", &[("short", ())]);
        let x = query.millimetres("x", &X_RANGE_NM);
        let size = query.millimetres("size", &SIZE_RANGE_NM);
        let dpi = query.whole("dpi", &DPI_RANGE, "a whole number of dots per inch");
        let x_min = query.millimetres("xmin", &X_RANGE_NM);
        let x_max = query.millimetres("xmax", &X_RANGE_NM);
        let style = Style {
            color: query.color("color").unwrap_or(default.style.color),
            background: query.color("background").unwrap_or(default.style.background),
            shape: query.one_of("shape", &Shape::ALL).unwrap_or(default.style.shape),
            logo: query.one_of("logo", &[("0", false), ("1", true)]).unwrap_or(default.style.logo),
        };

        if let (Some(template), Some(text)) = (template, text)
            && template != text
        {
            query
                .fault("hri", "hri and tpl contradict each other: give one, or shortid with default-shortid");
        }
        if query.has("x") && query.has("size") {
            query.fault("size", "size cannot be combined with x: give the module or the edge, not both");
        }
        let print = query.has("x") || query.has("size");
        for name in STYLE {
            let is_for_print = print || matches!(format, Format::Pdf | Format::Eps);
            if is_for_print && query.has(name) {
                let why = "is for PNG and SVG on screens alone: what is printed stays black on white";
                query.fault(name, &format!("{name} {why}"));
            }
        }
        for side in ["w", "h"] {
            if print && query.has(side) {
                query.fault(side, &format!("{side} is in pixels and cannot be combined with x or size"));
            }
        }
        for needy in ["dpi", "xmin", "xmax"] {
            if !print && query.has(needy) {
                query.fault(needy, &format!("{needy} needs x or size in millimetres"));
            }
        }
        if let (Some(low), Some(high)) = (x_min, x_max)
            && low > high
        {
            query.fault("xmin", "xmin must not be greater than xmax");
        } else if let Some(x) = x
            && (x_min.is_some_and(|low| x < low) || x_max.is_some_and(|high| x > high))
        {
            query.fault("x", "x must lie within xmin and xmax");
        }
        if !query.faults.is_empty() {
            return Err(query.faults);
        }

        let canvas = match x.map(Extent::Module).or(size.map(Extent::Edge)) {
            Some(extent) => {
                let dpi = match format {
                    Format::Png => Some(dpi.unwrap_or(DEFAULT_PRINT_DPI)),
                    Format::Svg | Format::Pdf | Format::Eps => dpi,
                };
                Canvas::Print { extent, dpi, x_min, x_max }
            }
            None => Canvas::Screen {
                width: width.or(height).unwrap_or(DEFAULT_SIDE),
                height: height.or(width).unwrap_or(DEFAULT_SIDE),
            },
        };
        Ok(Self {
            format,
            ecl: ecl.unwrap_or(default.ecl),
            captioned: template.or(text).unwrap_or(default.captioned),
            quiet_zone: quiet_zone.unwrap_or(default.quiet_zone),
            version: version.and_then(|version| u8::try_from(version).ok()).unwrap_or(default.version),
            canvas,
            style,
        })
    }

    /// The format of the image.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The asked error correction level.
    pub const fn ecl(&self) -> Ecl {
        self.ecl
    }

    /// Whether the short id is drawn below the symbol.
    pub const fn is_captioned(&self) -> bool {
        self.captioned
    }

    /// The smallest version allowed, 1 to 40.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// White modules around the symbol.
    pub const fn quiet_zone(&self) -> u32 {
        self.quiet_zone
    }

    /// Whether it has colours, a shape or a logo, so that it is read back before it is served.
    pub fn is_styled(&self) -> bool {
        self.style != Style::PLAIN
    }

    /// Whether it asks for the logo of the domain.
    pub const fn wants_logo(&self) -> bool {
        self.style.logo
    }

    pub(super) const fn style(&self) -> Style {
        self.style
    }

    pub(super) const fn canvas(&self) -> Canvas {
        self.canvas
    }
}

/// What only codes on screens have.
const STYLE: [&str; 4] = ["color", "background", "shape", "logo"];

const NAMES: [&str; 17] = [
    "w",
    "h",
    "tpl",
    "hri",
    "ecl",
    "qz",
    "version",
    "payload",
    "x",
    "size",
    "dpi",
    "xmin",
    "xmax",
    "color",
    "background",
    "shape",
    "logo",
];

/// The known parameters of a query, and the faults found so far.
struct Query<'a> {
    values: [Option<&'a str>; NAMES.len()],
    faults: Vec<QrFault>,
}

impl<'a> Query<'a> {
    fn read(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut query = Self { values: [None; NAMES.len()], faults: Vec::new() };
        for (name, value) in pairs {
            let Some(at) = NAMES.iter().position(|known| *known == name) else { continue };
            match query.values[at] {
                None => query.values[at] = Some(value),
                Some(first) if first == value => {}
                Some(_) => query.fault(NAMES[at], &format!("{name} is given more than once")),
            }
        }
        query
    }

    fn fault(&mut self, parameter: &'static str, message: &str) {
        let fault = QrFault { parameter, message: message.to_owned() };
        // A value repeated thousands of times is one fault.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn whole(&mut self, name: &'static str, range: &RangeInclusive<u32>, what: &str) -> Option<u32> {
        let text = self.value(name)?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            self.fault(name, &format!("{name} must be {what} from {low} to {high}"));
        }
        number
    }

    fn millimetres(&mut self, name: &'static str, range: &RangeInclusive<u32>) -> Option<Nanometres> {
        let length = nanometres(self.value(name)?).filter(|length| range.contains(length));
        if length.is_none() {
            let (low, high) = (f64::from(*range.start()) / 1e6, f64::from(*range.end()) / 1e6);
            let message = format!(
                "{name} must be a decimal number of millimetres from {low} to {high}, at most 6 decimals"
            );
            self.fault(name, &message);
        }
        length
    }

    fn color(&mut self, name: &'static str) -> Option<Rgb> {
        let color = style::parse(self.value(name)?);
        if color.is_none() {
            self.fault(name, &format!("{name} must have six hexadecimal digits, such as 1a2b3c"));
        }
        color
    }

    fn one_of<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.value(name)?;
        let choice = choices.iter().find(|(known, _)| *known == text).map(|&(_, value)| value);
        if choice.is_none() {
            let known: Vec<&str> = choices.iter().map(|&(known, _)| known).collect();
            self.fault(name, &format!("{name} must be one of {}", known.join(", ")));
        }
        choice
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        NAMES.iter().position(|known| *known == name).and_then(|at| self.values[at])
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// Reads `12`, `0.4` or `0.423333` millimetres exactly; no sign, no exponent, no bare point.
fn nanometres(text: &str) -> Option<Nanometres> {
    let (whole, decimals) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 4 || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let decimals: u32 = format!("{decimals:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(decimals)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
