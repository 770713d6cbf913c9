//! Coloured pixels: drawn, and read back by `rqrr`.

use std::array;

use super::{
    layout::{Layout, Rect},
    logo::Logo,
    style::Rgb,
    styled::Drawing,
};

/// Samples of a pixel along a side: 16 of them tell how much of it a round corner covers.
const SAMPLES: u32 = 4;
const FULL: u32 = SAMPLES * SAMPLES;

/// A picture, row by row.
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<Rgb>,
}

impl Picture {
    /// A code with its caption, without its logo.
    pub(super) fn draw(drawing: &Drawing<'_>, layout: &Layout, caption: &str) -> Self {
        let (width, height) = (layout.width as usize, layout.height as usize);
        let style = drawing.style;
        let mut picture = Self { width, height, pixels: vec![style.background; width * height] };
        // By the corners that are round.
        let mut cells: [Option<Vec<u32>>; 16] = array::from_fn(|_| None);
        for (x, y, corners) in drawing.modules() {
            let cell = cells[corners].get_or_insert_with(|| cell(corners, layout.module));
            let (left, top) = (layout.left + x as u32 * layout.module, layout.top + y as u32 * layout.module);
            let covered = cell.chunks_exact(layout.module as usize);
            for (row, covered) in (top as usize..).zip(covered) {
                let at = row * width + left as usize;
                for (pixel, covered) in picture.pixels[at..].iter_mut().zip(covered) {
                    *pixel = mixed(style.background, style.color, *covered, FULL);
                }
            }
        }
        for rect in layout.text_rects(caption) {
            picture.fill(rect, style.color);
        }
        picture
    }

    /// Fills a rectangle, which lies within the picture.
    pub(super) fn fill(&mut self, rect: Rect, color: Rgb) {
        for y in rect.y..rect.y + rect.height {
            let at = y as usize * self.width + rect.x as usize;
            self.pixels[at..at + rect.width as usize].fill(color);
        }
    }

    /// Puts a logo into the middle of a rectangle, as large as it fits.
    pub(super) fn paste(&mut self, logo: &Logo, rect: Rect) {
        let (width, height) = logo.fitting(rect.width as usize, rect.height as usize);
        let left = rect.x as usize + (rect.width as usize - width) / 2;
        let top = rect.y as usize + (rect.height as usize - height) / 2;
        for y in 0..height {
            for x in 0..width {
                let pixel = &mut self.pixels[(top + y) * self.width + left + x];
                let (color, alpha) = logo.average((x, width), (y, height));
                *pixel = mixed(*pixel, color, alpha, 255);
            }
        }
    }

    /// Whether `rqrr` reads the payload, at this size or at twice of it: it does not find some codes with small modules.
    pub(super) fn reads_as(&self, payload: &str) -> bool {
        [1, 2].into_iter().any(|zoom| self.read(zoom).is_some_and(|text| text == payload))
    }

    fn read(&self, zoom: usize) -> Option<String> {
        let luma = |x: usize, y: usize| {
            let [red, green, blue] = self.pixels[y / zoom * self.width + x / zoom].map(u32::from);
            ((299 * red + 587 * green + 114 * blue) / 1_000) as u8
        };
        let mut picture =
            rqrr::PreparedImage::prepare_from_greyscale(self.width * zoom, self.height * zoom, luma);
        let grids = picture.detect_grids();
        grids.iter().find_map(|grid| grid.decode().ok()).map(|(_, text)| text)
    }
}

/// How much of each pixel of a module is dark, row by row, of [`FULL`]; bit 0 of `corners` says whether the upper left one is
/// round, and so on clockwise.
fn cell(corners: usize, module: u32) -> Vec<u32> {
    let side = module * SAMPLES;
    let is_dark = |x: u32, y: u32| {
        let (x, y) = (2 * x + 1, 2 * y + 1);
        let corner = match (x < side, y < side) {
            (true, true) => 0,
            (false, true) => 1,
            (false, false) => 2,
            (true, false) => 3,
        };
        corners >> corner & 1 == 0 || x.abs_diff(side).pow(2) + y.abs_diff(side).pow(2) <= side.pow(2)
    };
    let covered = |x: u32, y: u32| {
        let samples = (0..SAMPLES).flat_map(|row| (0..SAMPLES).map(move |column| (column, row)));
        samples.filter(|(column, row)| is_dark(x * SAMPLES + column, y * SAMPLES + row)).count() as u32
    };
    (0..module).flat_map(|y| (0..module).map(move |x| (x, y))).map(|(x, y)| covered(x, y)).collect()
}

/// Something between two colours: `part` of `whole` is the second.
fn mixed(under: Rgb, over: Rgb, part: u32, whole: u32) -> Rgb {
    array::from_fn(|at| {
        let (under, over) = (u32::from(under[at]), u32::from(over[at]));
        ((under * (whole - part) + over * part + whole / 2) / whole) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_round_where_they_are_free() {
        assert_eq!(cell(0, 2), [16; 4], "a square");
        let dot = cell(15, 4);
        let rows: Vec<u32> = dot.chunks(4).map(|row| row.iter().sum()).collect();
        assert!(rows[0] == rows[3] && rows[1] == rows[2] && rows[0] < rows[1], "{dot:?}");
        let one = cell(1, 4);
        assert!(one[0] < 16 && one[3] == 16 && one[12] == 16 && one[15] == 16, "{one:?}");
    }

    #[test]
    fn colours_are_mixed_by_parts() {
        let (white, blue) = ([255; 3], [0, 0, 255]);
        assert_eq!(mixed(white, blue, 0, 16), white);
        assert_eq!(mixed(white, blue, 16, 16), blue);
        assert_eq!(mixed(white, blue, 8, 16), [128, 128, 255]);
    }
}
