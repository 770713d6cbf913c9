//! Where symbol and caption lie: one set of whole rectangles that every format draws.
//!
//! Lengths are in units. On screen a unit is a pixel; in print it is a device dot when a density
//! is given, else a module, or a fraction of it that lets a caption fit.

use super::{
    QrError,
    caption::{self, GLYPH_HEIGHT},
    matrix::Matrix,
    request::{Canvas, Extent, Nanometres, QrRequest},
};

/// Pixels a side that a PNG may have: 212 mm at 1,200 dpi; its reader needs 12.5 MB for that.
pub const MAX_PNG_SIDE: u32 = 10_000;
/// The least height of a printed caption in millimetres: capitals of 3 point type.
pub const MIN_CAPTION_MM: f64 = 0.75;

/// Nanometres in an inch.
const INCH: u64 = 25_400_000;
/// Units of a printed module beside a caption: lets 64 characters fill the width to 2 %.
const FINE: u32 = 64;
/// Dots of white beside and below the caption's line; above it lies the quiet zone.
const CAPTION_MARGIN: u32 = 2;
const BAND: u32 = GLYPH_HEIGHT + CAPTION_MARGIN;

/// A dark rectangle, in units from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// The geometry of one image.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// The canvas, in units.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) scale: Scale,
    /// Units of a module.
    pub(super) module: u32,
    /// The upper left module, in units.
    pub(super) left: u32,
    pub(super) top: u32,
    text: Option<Text>,
}

/// How long a unit is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// A pixel, 1/72 inch in PDF and EPS.
    Pixel,
    /// Millimetres; with the density when a unit is a device dot.
    Millimetres { unit: f64, dpi: Option<u32> },
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Text {
    left: u32,
    top: u32,
    /// Units of a font dot.
    dot: u32,
}

impl Layout {
    /// Places the symbol and, when asked for, the caption.
    pub(super) fn new(matrix: &Matrix, caption: &str, request: &QrRequest) -> Result<Self, QrError> {
        if request.is_captioned() && !caption::is_printable(caption) {
            return Err(QrError::CaptionUnprintable);
        }
        let caption = request.is_captioned().then_some(caption);
        let symbol = Symbol { matrix, quiet: request.quiet_zone(), request };
        match request.canvas() {
            Canvas::Screen { width, height } => symbol.on_screen(width, height, caption),
            Canvas::Print { extent, dpi, x_min, x_max } => {
                symbol.in_print(extent, dpi, [x_min, x_max], caption)
            }
        }
    }

    /// A symbol with its quiet zone, in pixels.
    pub(super) fn bare(matrix: &Matrix, quiet_zone: u32, module: u32) -> Self {
        let side = (matrix.size as u32 + 2 * quiet_zone) * module;
        let start = quiet_zone * module;
        Self { width: side, height: side, scale: Scale::Pixel, module, left: start, top: start, text: None }
    }

    /// The dark rectangles: runs of modules row by row, then the runs of the caption's dots.
    pub(super) fn rects(&self, matrix: &Matrix, caption: &str) -> Vec<Rect> {
        let mut rects = Vec::with_capacity(matrix.size * matrix.size / 3);
        for y in 0..matrix.size {
            let mut x = 0;
            while x < matrix.size {
                let length = (x..matrix.size).take_while(|&x| matrix.is_dark(x, y)).count();
                if length > 0 {
                    rects.push(Rect {
                        x: self.left + x as u32 * self.module,
                        y: self.top + y as u32 * self.module,
                        width: length as u32 * self.module,
                        height: self.module,
                    });
                }
                x += length.max(1);
            }
        }
        rects.extend(self.text_rects(caption));
        rects
    }

    /// The dark rectangles of the caption, if there is one.
    pub(super) fn text_rects(&self, caption: &str) -> impl Iterator<Item = Rect> {
        self.text.into_iter().flat_map(move |Text { left, top, dot }| {
            caption::runs(caption).into_iter().map(move |run| Rect {
                x: left + run.x * dot,
                y: top + run.y * dot,
                width: run.width * dot,
                height: dot,
            })
        })
    }

    /// The width of a module on paper, in print units only.
    pub(super) fn x_dimension_mm(&self) -> Option<f64> {
        match self.scale {
            Scale::Pixel => None,
            Scale::Millimetres { unit, .. } => Some(unit * f64::from(self.module)),
        }
    }
}

struct Symbol<'a> {
    matrix: &'a Matrix,
    quiet: u32,
    request: &'a QrRequest,
}

impl Symbol<'_> {
    /// The largest module that leaves room for a caption in proportion to the canvas.
    fn on_screen(&self, width: u32, height: u32, caption: Option<&str>) -> Result<Layout, QrError> {
        let Some(caption) = caption else {
            let module = width.min(height) / self.side();
            return self.place(width, height, module, None, Scale::Pixel, width.min(height));
        };
        let line = caption::width(caption) + CAPTION_MARGIN;
        let widest = width / line;
        if widest == 0 {
            let needed = format!("a width of {line} pixels");
            return Err(QrError::CaptionDoesNotFit { characters: caption.len(), needed });
        }
        // A dot for each 128 pixels keeps the text at a twentieth of the height and more, unless
        // the id is too long for that.
        let dot = (width.min(height) / 128).clamp(1, widest);
        let available = width.min(height.saturating_sub(BAND * dot));
        let module = available / self.side();
        // What the symbol leaves over goes to the text, up to four modules high.
        let spare = height.saturating_sub(self.side() * module) / BAND;
        let dot = spare.min(widest).min(4 * module / GLYPH_HEIGHT).max(dot);
        self.place(width, height, module, Some((caption, dot)), Scale::Pixel, available)
    }

    fn in_print(
        &self,
        extent: Extent,
        dpi: Option<u32>,
        limits: [Option<Nanometres>; 2],
        caption: Option<&str>,
    ) -> Result<Layout, QrError> {
        let (width, module, unit) = match dpi {
            Some(dpi) => {
                let (width, module) = self.dots(extent, u64::from(dpi), limits)?;
                (width, module, INCH as f64 / f64::from(dpi) / 1e6)
            }
            None => {
                let x = match extent {
                    Extent::Module(x) => f64::from(x),
                    Extent::Edge(edge) => f64::from(edge) / f64::from(self.side()),
                };
                let [low, high] = limits;
                if low.is_some_and(|low| x < f64::from(low)) || high.is_some_and(|high| x > f64::from(high)) {
                    return Err(self.x_dimension(x));
                }
                let module = if caption.is_some() { FINE } else { 1 };
                (self.side() * module, module, x / f64::from(module) / 1e6)
            }
        };
        let scale = Scale::Millimetres { unit, dpi };
        let Some(caption) = caption else {
            return self.place(width, width, module, None, scale, width);
        };
        let line = caption::width(caption) + CAPTION_MARGIN;
        let dot = (width / line).min(4 * module / GLYPH_HEIGHT);
        if f64::from(dot * GLYPH_HEIGHT) * unit < MIN_CAPTION_MM {
            let least = (MIN_CAPTION_MM / f64::from(GLYPH_HEIGHT) / unit).ceil();
            let needed = format!("a width of {:.1} mm", least * unit * f64::from(line));
            return Err(QrError::CaptionDoesNotFit { characters: caption.len(), needed });
        }
        // The asked edge is the symbol's; the caption comes below it.
        self.place(width, width + BAND * dot, module, Some((caption, dot)), scale, width)
    }

    /// Width of the canvas and of a module in whole device dots.
    fn dots(&self, extent: Extent, dpi: u64, limits: [Option<Nanometres>; 2]) -> Result<(u32, u32), QrError> {
        let side = u64::from(self.side());
        let [low, high] = limits;
        let least = low.map_or(1, |low| (u64::from(low) * dpi).div_ceil(INCH).max(1));
        let most = high.map_or(u64::MAX, |high| u64::from(high) * dpi / INCH);
        let (width, wanted) = match extent {
            // Nearest, a half rounded up.
            Extent::Module(x) => (None, (2 * u64::from(x) * dpi + INCH).div_euclid(2 * INCH)),
            Extent::Edge(edge) => {
                let width = (2 * u64::from(edge) * dpi + INCH).div_euclid(2 * INCH);
                if width < side {
                    return Err(self.does_not_fit(width as u32));
                }
                (Some(width), width / side)
            }
        };
        let module = wanted.max(least).min(most);
        // A module may shrink inside a given edge, never grow beyond it.
        if module < least || width.is_some_and(|width| module * side > width) {
            return Err(self.x_dimension((wanted.max(1) * INCH) as f64 / dpi as f64));
        }
        Ok((width.unwrap_or(module * side) as u32, module as u32))
    }

    /// Centres symbol and caption as one block.
    fn place(
        &self,
        width: u32,
        height: u32,
        module: u32,
        text: Option<(&str, u32)>,
        scale: Scale,
        available: u32,
    ) -> Result<Layout, QrError> {
        if module == 0 {
            return Err(self.does_not_fit(available));
        }
        let side = self.side() * module;
        let band = text.map_or(0, |(_, dot)| BAND * dot);
        let block_top = (height - side - band) / 2;
        let text = text.map(|(caption, dot)| Text {
            left: (width - caption::width(caption) * dot) / 2,
            top: block_top + side,
            dot,
        });
        let left = (width - side) / 2 + self.quiet * module;
        Ok(Layout { width, height, scale, module, left, top: block_top + self.quiet * module, text })
    }

    /// Modules along one side with both quiet zones.
    fn side(&self) -> u32 {
        self.matrix.size as u32 + 2 * self.quiet
    }

    fn does_not_fit(&self, available_px: u32) -> QrError {
        QrError::DoesNotFit {
            version_needed: self.matrix.version,
            modules: self.matrix.size as u32,
            ecl: self.request.ecl(),
            needed_px: self.side(),
            available_px,
        }
    }

    fn x_dimension(&self, nanometres: f64) -> QrError {
        QrError::XDimension { version_needed: self.matrix.version, x_mm: nanometres / 1e6 }
    }
}
