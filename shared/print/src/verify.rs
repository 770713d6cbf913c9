//! Reads codes back from what was drawn, by `rqrr`.

use qr::Ecl;
use rqrr::{Grid, MetaData, PreparedImage, SimpleGrid};

use crate::{
    bitmap::Bitmap,
    format::Read,
    place::{Placed, Rect},
};

/// How a code was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// `rqrr` found the symbol in the picture and read it.
    Located,
    /// It did not find it, but read the modules that were sampled at their places in the picture.
    Sampled,
}

/// What a code must say.
pub(crate) struct Expected<'a> {
    pub(crate) payload: &'a str,
    pub(crate) ecl: Ecl,
    pub(crate) placed: &'a Placed,
}

/// Pixels a module in which vector formats are rasterised, one after the other until one is read.
const SCALES: [u64; 2] = [4, 7];

/// Reads a code from the rectangles of its page; `corner` is that of its label.
///
/// The area of the symbol with its quiet zone is rasterised: a pixel is dark if its middle is in a rectangle.
pub(crate) fn vector(read: &[Read], corner: (u64, u64), expected: &Expected<'_>) -> Option<Found> {
    let placed = expected.placed;
    let quiet = placed.quiet_zone * placed.module;
    let left = (corner.0 + placed.left) as f64 - quiet as f64;
    let top = (corner.1 + placed.top) as f64 - quiet as f64;
    let mut last = None;
    for scale in SCALES {
        let pixel = placed.module as f64 / scale as f64;
        let bitmap = rasterise(read, (left, top), pixel, placed.side() * scale);
        let area = Area { left: 0, top: 0, module: scale as usize, side: placed.side() as usize };
        if area.locate(&bitmap, 1, expected) {
            return Some(Found::Located);
        }
        last = Some((area, bitmap));
    }
    last.and_then(|(area, bitmap)| area.sample(&bitmap, expected).then_some(Found::Sampled))
}

/// Reads a code from the dots of its label.
pub(crate) fn raster(bitmap: &Bitmap, expected: &Expected<'_>) -> Option<Found> {
    let placed = expected.placed;
    let quiet = placed.quiet_zone * placed.module;
    let area = Area {
        left: (placed.left - quiet) as usize,
        top: (placed.top - quiet) as usize,
        module: placed.module as usize,
        side: placed.side() as usize,
    };
    // Every dot of small modules, some of those of large ones: a decoder needs four or five a module.
    let mut steps = SCALES.map(|scale| (area.module / scale as usize).max(1)).into_iter();
    if steps.any(|step| area.locate(bitmap, step, expected)) {
        return Some(Found::Located);
    }
    area.sample(bitmap, expected).then_some(Found::Sampled)
}

/// The dark pixels of a square of `side` pixels, each `pixel` nanometres wide.
fn rasterise(read: &[Read], (left, top): (f64, f64), pixel: f64, side: u64) -> Bitmap {
    let mut bitmap = Bitmap::new(side as usize, side as usize);
    // The first pixel whose middle is at or behind a place; a cast of what lies outside saturates.
    let first = |nm: f64| (nm / pixel - 0.5).ceil().clamp(0.0, side as f64) as u64;
    let end = side as f64 * pixel;
    let touches = |[x0, y0, x1, y1]: [f64; 4]| x0 < left + end && y0 < top + end && x1 > left && y1 > top;
    for group in read.iter().filter(|group| touches(group.bounds)) {
        for [x, y, width, height] in &group.rects {
            let (x0, y0) = (group.x + x * group.scale - left, group.y + y * group.scale - top);
            let (x1, y1) = (x0 + width * group.scale, y0 + height * group.scale);
            let (x, y) = (first(x0), first(y0));
            bitmap.fill(&Rect {
                x,
                y,
                width: first(x1).saturating_sub(x),
                height: first(y1).saturating_sub(y),
            });
        }
    }
    bitmap
}

/// Where in a picture a symbol lies, its quiet zone included, in pixels.
struct Area {
    left: usize,
    top: usize,
    module: usize,
    /// Modules of an edge.
    side: usize,
}

impl Area {
    /// Whether `rqrr` finds and reads the symbol, looking at every `step`-th pixel.
    fn locate(&self, bitmap: &Bitmap, step: usize, expected: &Expected<'_>) -> bool {
        let side = self.side * self.module / step;
        let at = |begin: usize, nth: usize| begin + nth * step + step / 2;
        let dark = |x: usize, y: usize| bitmap.is_dark(at(self.left, x), at(self.top, y));
        let mut picture = PreparedImage::prepare_from_bitmap(side, side, dark);
        picture.detect_grids().iter().any(|grid| expected.is(grid.decode().ok()))
    }

    /// Whether `rqrr` reads the modules, each sampled at its middle.
    fn sample(&self, bitmap: &Bitmap, expected: &Expected<'_>) -> bool {
        let quiet = expected.placed.quiet_zone as usize;
        let middle = |begin: usize, nth: usize| begin + (nth + quiet) * self.module + self.module / 2;
        let modules = expected.placed.symbol.modules() as usize;
        let dark = |x: usize, y: usize| bitmap.is_dark(middle(self.left, x), middle(self.top, y));
        expected.is(Grid::new(SimpleGrid::from_func(modules, dark)).decode().ok())
    }
}

impl Expected<'_> {
    /// Whether a decoder read the payload, the version and the level that were asked for.
    fn is(&self, read: Option<(MetaData, String)>) -> bool {
        // The two bits of the format information (ISO/IEC 18004, table 12).
        const LEVELS: [Ecl; 4] = [Ecl::M, Ecl::L, Ecl::H, Ecl::Q];
        read.is_some_and(|(meta, payload)| {
            payload == self.payload
                && meta.version.0 == usize::from(self.placed.symbol.version())
                && LEVELS.get(usize::from(meta.ecc_level)) == Some(&self.ecl)
        })
    }
}
