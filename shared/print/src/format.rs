//! The formats: each writes a label and reads back what it wrote.
//!
//! Vector formats give the rectangles they read, raster formats the dots.

pub(crate) mod eps;
pub(crate) mod operators;
pub(crate) mod pdf;
pub(crate) mod png;
pub(crate) mod svg;
pub(crate) mod tiff;
pub(crate) mod zpl;

use crate::place::INCH;

/// Rectangles that were read, of one scale. Lengths in nanometres from the upper left corner of the page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub(crate) scale: f64,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Left, top, width and height in units of `scale`.
    pub(crate) rects: Vec<[f64; 4]>,
    /// Left, top, right and bottom of all together.
    pub(crate) bounds: [f64; 4],
}

impl Read {
    fn new(scale: f64, x: f64, y: f64, rects: Vec<[f64; 4]>) -> Self {
        let none = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        let [left, top, right, bottom] = rects.iter().fold(none, |bounds, [x, y, width, height]| {
            [bounds[0].min(*x), bounds[1].min(*y), bounds[2].max(x + width), bounds[3].max(y + height)]
        });
        let bounds = [x + left * scale, y + top * scale, x + right * scale, y + bottom * scale];
        Self { scale, x, y, rects, bounds }
    }
}

/// A length of nanometres in millimetres, exactly.
pub(crate) fn millimetres(nm: u64) -> String {
    trimmed(format!("{}.{:06}", nm / 1_000_000, nm % 1_000_000))
}

/// A length of nanometres in points of 1/72 inch, with an error below 0.2 nm.
pub(crate) fn points(nm: u64) -> String {
    trimmed(format!("{:.6}", nm as f64 * 72.0 / INCH as f64))
}

/// Points as nanometres.
pub(crate) fn from_points(points: f64) -> f64 {
    points * INCH as f64 / 72.0
}

/// A decimal number without trailing zeros.
fn trimmed(number: String) -> String {
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}
