//! Where the symbol and the text of a code lie on its label.
//!
//! Lengths are in units: a dot where the format is made of dots, else a nanometre.

use qr::Symbol;

use crate::{
    PrintError, PrintItem, PrintSpec,
    spec::{CodeSize, HriText},
    text,
};

/// Nanometres in an inch.
pub(crate) const INCH: u64 = 25_400_000;
/// The module when neither code nor label has a size: read by any phone, held by any printer.
const DEFAULT_MODULE_NM: u32 = 500_000;
/// Narrowest module that cameras of phones read well, in nanometres.
const LEAST_MODULE_NM: u64 = 250_000;
/// Dots a module needs so that a printer's growth of dots does not close it.
const LEAST_DOTS: u64 = 2;
/// Widest and tallest picture in nanometres: what a page of a PDF may have.
const MAX_SIDE_NM: u64 = 4_200_000_000;
/// Glyph rows of a capital.
const CAPITAL_DOTS: u64 = 7;

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device {
    /// The density, where modules are whole dots.
    dpi: Option<u64>,
    /// Whether a unit is a dot.
    is_raster: bool,
}

impl Device {
    pub(crate) fn of(spec: &PrintSpec) -> Self {
        Self { dpi: spec.dpi.map(u64::from), is_raster: spec.format.is_raster() }
    }

    /// The density where a unit is a dot.
    fn raster(self) -> Option<u64> {
        self.dpi.filter(|_| self.is_raster)
    }

    /// The whole units of a length.
    fn units(self, nm: u32) -> u64 {
        self.raster().map_or(u64::from(nm), |dpi| u64::from(nm) * dpi / INCH)
    }

    /// The nearest units of a length, a half rounded up.
    fn nearest(self, nm: u64) -> u64 {
        self.raster().map_or(nm, |dpi| (2 * nm * dpi + INCH) / (2 * INCH))
    }

    /// The length of some units in nanometres.
    pub(crate) fn nanometres(self, units: u64) -> u64 {
        self.raster().map_or(units, |dpi| (2 * units * INCH + dpi) / (2 * dpi))
    }

    /// A module in units: the nearest to `nm` that has whole dots, at least one.
    pub(crate) fn module(self, nm: u32) -> u64 {
        match self.dpi {
            Some(dpi) => self.of_dots(((2 * u64::from(nm) * dpi + INCH) / (2 * INCH)).max(1), dpi),
            None => u64::from(nm),
        }
    }

    /// The largest module in units, with whole dots, of which `count` fit `units`; 0 where none does.
    fn fit(self, units: u64, count: u64) -> u64 {
        match self.dpi {
            Some(_) if self.is_raster => units / count,
            // Rounded down, so that all modules together fit.
            Some(dpi) => units * dpi / INCH / count * INCH / dpi,
            None => units / count,
        }
    }

    fn of_dots(self, dots: u64, dpi: u64) -> u64 {
        if self.is_raster { dots } else { (2 * dots * INCH + dpi) / (2 * dpi) }
    }
}

/// Why a module of some units is refused, if it is.
pub(crate) fn too_small(spec: &PrintSpec, module: u64) -> Option<String> {
    let nm = Device::of(spec).nanometres(module);
    if spec.allow_small {
        return None;
    }
    let mm = nm as f64 / 1e6;
    if nm < LEAST_MODULE_NM {
        return Some(format!(
            "a module would be {mm:.3} mm wide, below 0.25 mm, which many phones do not read; allowSmall permits it"
        ));
    }
    let dpi = u64::from(spec.dpi?);
    // Rounded to the nearest whole dot, as a vector's module is one to a nanometre.
    let dots = (2 * nm * dpi + INCH) / (2 * INCH);
    (dots < LEAST_DOTS).then(|| {
        format!("a module would be {mm:.3} mm wide, less than {LEAST_DOTS} dots at {dpi} dpi; allowSmall permits it")
    })
}

/// A code with its place, in units from the upper left corner of its label.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) symbol: Symbol,
    /// The label, or what the code needs where no label has a size.
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) module: u64,
    /// White modules around the symbol.
    pub(crate) quiet_zone: u64,
    /// The upper left module.
    pub(crate) left: u64,
    pub(crate) top: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) module_nm: u32,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) left: u64,
    pub(crate) top: u64,
    /// Units of a dot of its glyphs.
    pub(crate) dot: u64,
}

/// A dark rectangle in whole units of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// Rectangles of one scale: a symbol by modules, a line of text by dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Length of a unit of `rects`.
    pub(crate) scale: u64,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) rects: Vec<Rect>,
}

impl Placed {
    /// What is dark: the symbol, then each line.
    pub(crate) fn groups(&self, (x, y): (u64, u64)) -> Vec<Group> {
        let symbol =
            Group { scale: self.module, x: x + self.left, y: y + self.top, rects: modules(&self.symbol) };
        let lines = self.lines.iter().map(|line| {
            let rects = text::runs(&line.text);
            let rects = rects.iter().map(|run| Rect { x: run.x, y: run.y, width: run.width, height: 1 });
            Group { scale: line.dot, x: x + line.left, y: y + line.top, rects: rects.collect() }
        });
        std::iter::once(symbol).chain(lines).collect()
    }

    /// Modules of an edge with the quiet zone.
    pub(crate) fn side(&self) -> u64 {
        u64::from(self.symbol.modules()) + 2 * self.quiet_zone
    }
}

/// The dark runs of a symbol, row by row.
fn modules(symbol: &Symbol) -> Vec<Rect> {
    let side = symbol.modules();
    let mut rects = Vec::with_capacity((side * side / 3) as usize);
    for y in 0..side {
        let mut x = 0;
        while x < side {
            let width = (x..side).take_while(|&x| symbol.is_dark(x, y)).count() as u32;
            if width > 0 {
                rects.push(Rect { x: x.into(), y: y.into(), width: width.into(), height: 1 });
            }
            x += width.max(1);
        }
    }
    rects
}

/// Places a code.
///
/// # Errors
/// `Symbol` where the payload fits no version; `Code` where the text cannot be drawn, the module would be too small or
/// the label too small.
pub(crate) fn place(spec: &PrintSpec, index: u64, item: &PrintItem) -> Result<Placed, PrintError> {
    let short_id = || item.short_id.clone();
    let fault = |problem: String| PrintError::Code { index, short_id: short_id(), problem };
    let symbol = Symbol::encode(&item.url, spec.code.ecl, spec.code.version)
        .map_err(|source| PrintError::Symbol { index, short_id: short_id(), source })?;
    let device = Device::of(spec);
    let quiet_zone = u64::from(spec.code.quiet_zone);
    let side = u64::from(symbol.modules()) + 2 * quiet_zone;
    let pieces = pieces(spec, item).map_err(fault)?;
    if let Some(letter) = pieces.iter().find_map(|piece| text::unprintable(piece)) {
        return Err(fault(format!("the text has the character {letter:?}, which cannot be drawn")));
    }
    let dot = device.nearest(u64::from(spec.hri.font) / CAPITAL_DOTS).max(1);
    let label =
        spec.layout.as_ref().map(|sheet| (device.units(sheet.label_width), device.units(sheet.label_height)));
    // A text takes two lines where one would be wider than the label, or than the code where no label has a size.
    let one_line: u64 = text::width(&pieces.concat()) * dot;
    let lines = |limit: u64| if one_line <= limit { vec![pieces.concat()] } else { pieces.clone() };
    let band = |lines: &[String]| {
        lines.iter().filter(|line| !line.is_empty()).count() as u64 * text::LINE_DOTS * dot
    };

    let (module, edge) = match (spec.code.size, label) {
        (CodeSize::Module(nm), _) => (device.module(nm), 0),
        (CodeSize::Edge(nm), _) => (device.fit(device.units(nm), side), device.units(nm)),
        (CodeSize::Fit, None) => (device.module(DEFAULT_MODULE_NM), 0),
        (CodeSize::Fit, Some((width, height))) => {
            let height = height.saturating_sub(band(&lines(width)));
            (device.fit(width.min(height), side), 0)
        }
    };
    let mm = |units: u64| device.nanometres(units) as f64 / 1e6;
    if module == 0 {
        let modules = symbol.modules();
        return Err(fault(format!(
            "{modules} modules with {quiet_zone} of white around do not fit the size"
        )));
    }
    if let Some(problem) = too_small(spec, module) {
        return Err(fault(problem));
    }
    let block = edge.max(side * module);
    let mut lines = lines(label.map_or(block, |(width, _)| width));
    lines.retain(|line| !line.is_empty());
    let text_width = lines.iter().map(|line| text::width(line) * dot).max().unwrap_or(0);
    let needed = (block.max(text_width), block + band(&lines));
    let (width, height) = label.unwrap_or(needed);
    if needed.0 > width || needed.1 > height {
        return Err(fault(format!(
            "code and text need {:.2} x {:.2} mm; the label has {:.2} x {:.2} mm",
            mm(needed.0),
            mm(needed.1),
            mm(width),
            mm(height)
        )));
    }
    let most = if spec.format.is_raster() { u64::from(qr::MAX_PNG_SIDE) } else { MAX_SIDE_NM };
    if width.max(height) > most {
        let side = mm(width.max(height));
        return Err(fault(format!(
            "a side of {side:.1} mm is more than the {:.1} mm that are drawn",
            mm(most)
        )));
    }

    let block_top = (height - needed.1) / 2;
    let inset = (block - side * module) / 2 + quiet_zone * module;
    let first_line = block_top + block;
    let lines = lines.into_iter().zip(0_u64..).map(|(text, nth)| Line {
        left: (width - text::width(&text) * dot) / 2,
        top: first_line + nth * text::LINE_DOTS * dot,
        dot,
        text,
    });
    Ok(Placed {
        lines: lines.collect(),
        width,
        height,
        module,
        quiet_zone,
        left: (width - block) / 2 + inset,
        top: block_top + inset,
        module_nm: u32::try_from(device.nanometres(module)).unwrap_or(u32::MAX),
        symbol,
    })
}

/// The parts of the text that may stand in lines of their own.
fn pieces(spec: &PrintSpec, item: &PrintItem) -> Result<Vec<String>, String> {
    let serial = || item.serial.clone().filter(|serial| !serial.is_empty()).ok_or("the text needs a serial");
    Ok(match spec.hri.text {
        HriText::None => Vec::new(),
        HriText::ShortId => vec![item.short_id.clone()],
        HriText::Serial => vec![serial()?],
        HriText::Gs1 => {
            let gtin = item.gtin.as_deref().ok_or("the text needs a GTIN")?;
            if gtin.is_empty() || gtin.len() > 14 || !gtin.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err("the GTIN must have at most 14 digits".to_owned());
            }
            vec![format!("(01){gtin:0>14}"), format!("(21){}", serial()?)]
        }
    })
}
