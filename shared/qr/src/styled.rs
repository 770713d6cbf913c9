//! Codes on screens in colours and shapes, with a logo: drawn only if they can be read back.

use std::fmt::Write as _;

use super::{
    Ecl, Format, QrError, QrRequest,
    layout::{Layout, Rect},
    logo::{self, Logo},
    matrix::Matrix,
    picture::Picture,
    png,
    style::{Shape, Style},
    svg::decimal,
};

/// Modules along a side of the smallest hole for a logo, of which it has all but one.
const LEAST_HOLE: usize = 5;
/// Most sizes of a hole that are tried: up to version 11 all of them. Each takes milliseconds, at version 40 some 20.
const MAX_TRIES: usize = 8;
/// Modules along a side of a finder pattern. They stay squares, because readers find a code by them.
const FINDER: usize = 7;
/// Pixels of a module where it is looked whether a code with a hole can be read.
const TRIED_MODULE: u32 = 4;

/// What is drawn.
pub(super) struct Drawing<'a> {
    matrix: &'a Matrix,
    pub(super) style: Style,
    /// Modules along a side of the hole in the middle.
    hole: usize,
}

/// The whole file.
///
/// # Errors
/// The colours have too little contrast or are inverted, there is no logo, it would cover too much, or the code cannot be read back.
pub(super) fn draw(
    matrix: &Matrix,
    layout: &Layout,
    (payload, caption): (&str, &str),
    request: &QrRequest,
    logo: Option<&str>,
) -> Result<Vec<u8>, QrError> {
    let style = request.style();
    style.check()?;
    let logo = match (style.logo, logo) {
        (false, _) => None,
        (true, Some(url)) if logo::is_url(url) => Some(url),
        (true, _) => return Err(QrError::NoLogo),
    };
    // Before the search for a hole, which takes longer.
    let pixels = logo.filter(|_| request.format() == Format::Png).map(Logo::read).transpose()?;
    let hole = if logo.is_some() { hole(matrix, payload, request)? } else { 0 };
    let drawing = Drawing { matrix, style, hole };
    let mut picture = Picture::draw(&drawing, layout, caption);
    match request.format() {
        Format::Png => {
            if let Some(pixels) = &pixels {
                picture.paste(pixels, drawing.logo_rect(layout));
            }
            readable(&picture, payload)?;
            png::draw_colored(&picture)
        }
        // A request for PDF or EPS has no style.
        Format::Svg | Format::Pdf | Format::Eps => {
            readable(&picture, payload)?;
            Ok(drawing.svg(layout, caption, logo))
        }
    }
}

fn readable(picture: &Picture, payload: &str) -> Result<(), QrError> {
    if picture.reads_as(payload) { Ok(()) } else { Err(QrError::Unreadable) }
}

/// The largest hole with which the code can still be read, whatever is in it: no larger than a third of what the level restores.
fn hole(matrix: &Matrix, payload: &str, request: &QrRequest) -> Result<usize, QrError> {
    let ecl = request.ecl();
    let per_mille = match ecl {
        Ecl::L => 20,
        Ecl::M => 40,
        Ecl::Q => 70,
        Ecl::H => 100,
    };
    let most = matrix.size * matrix.size * per_mille / 1_000;
    let layout = Layout::bare(matrix, request.quiet_zone(), TRIED_MODULE);
    // A hole in the middle has an odd number of modules, as a symbol has.
    let holes = (LEAST_HOLE..=matrix.size).step_by(2).take_while(|hole| hole * hole <= most);
    let is_read = |hole: usize| {
        let drawing = Drawing { matrix, style: request.style(), hole };
        let mut picture = Picture::draw(&drawing, &layout, "");
        picture.reads_as(payload) && {
            picture.fill(drawing.logo_rect(&layout), drawing.style.color);
            picture.reads_as(payload)
        }
    };
    let holes: Vec<usize> = holes.collect();
    let found = holes.into_iter().rev().take(MAX_TRIES).find(|&hole| is_read(hole));
    found.ok_or(QrError::LogoCovers { version: matrix.version, ecl })
}

impl Drawing<'_> {
    /// The dark modules that are drawn: column, row, and which corners are round ([`super::picture`]).
    pub(super) fn modules(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let size = self.matrix.size;
        let all = (0..size).flat_map(move |y| (0..size).map(move |x| (x, y)));
        all.filter(move |&(x, y)| self.is_drawn(x, y)).map(move |(x, y)| (x, y, self.corners(x, y)))
    }

    fn is_drawn(&self, x: usize, y: usize) -> bool {
        let start = (self.matrix.size - self.hole) / 2;
        let hole = start..start + self.hole;
        self.matrix.is_dark(x, y) && !(hole.contains(&x) && hole.contains(&y))
    }

    fn corners(&self, x: usize, y: usize) -> usize {
        let far = self.matrix.size - FINDER;
        let is_finder = (x < FINDER && (y < FINDER || y >= far)) || (x >= far && y < FINDER);
        match self.style.shape {
            Shape::Square => 0,
            Shape::Rounded | Shape::Dots if is_finder => 0,
            Shape::Dots => 0b1111,
            Shape::Rounded => {
                let [left, up] = [
                    x.checked_sub(1).is_some_and(|x| self.is_drawn(x, y)),
                    y.checked_sub(1).is_some_and(|y| self.is_drawn(x, y)),
                ];
                let [right, down] = [self.is_drawn(x + 1, y), self.is_drawn(x, y + 1)];
                let free = [(left, up), (up, right), (right, down), (down, left)];
                let free = free.into_iter().enumerate().filter(|(_, (one, other))| !one && !other);
                free.map(|(corner, _)| 1_usize << corner).sum()
            }
        }
    }

    /// Where the logo is: within the hole, with half a module around it.
    fn logo_rect(&self, layout: &Layout) -> Rect {
        let start = ((self.matrix.size - self.hole) / 2) as u32 * layout.module + layout.module / 2;
        let side = (self.hole as u32).saturating_sub(1) * layout.module;
        Rect { x: layout.left + start, y: layout.top + start, width: side, height: side }
    }

    /// One path, so that neighbouring modules show no seams when it is scaled.
    fn svg(&self, layout: &Layout, caption: &str, logo: Option<&str>) -> Vec<u8> {
        let (width, height, module) = (layout.width, layout.height, layout.module);
        let hex = |[red, green, blue]: [u8; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
        let rendering = match self.style.shape {
            Shape::Square => " shape-rendering=\"crispEdges\"",
            Shape::Rounded | Shape::Dots => "",
        };
        let mut svg = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        // Writing to a String cannot fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\"{rendering}><rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\
             <path fill=\"{}\" d=\"",
            hex(self.style.background),
            hex(self.style.color),
        );
        for (x, y, corners) in self.modules() {
            module_path(
                &mut svg,
                (layout.left + x as u32 * module, layout.top + y as u32 * module),
                module,
                corners,
            );
        }
        for Rect { x, y, width, height } in layout.text_rects(caption) {
            let _ = write!(svg, "M{x} {y}h{width}v{height}h-{width}z");
        }
        svg.push_str("\"/>");
        if let Some(url) = logo {
            let Rect { x, y, width, height } = self.logo_rect(layout);
            let _ = write!(
                svg,
                "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"{url}\"/>"
            );
        }
        svg.push_str("</svg>\n");
        svg.into_bytes()
    }
}

/// The outline of a module, clockwise from its upper left corner.
fn module_path(svg: &mut String, (left, top): (u32, u32), module: u32, corners: usize) {
    if corners == 0 {
        let _ = write!(svg, "M{left} {top}h{module}v{module}h-{module}z");
        return;
    }
    let half = f64::from(module) / 2.0;
    let radius = decimal(half, 1);
    // The middle of each side, from which an arc or two straight lines lead around a corner.
    let _ = write!(svg, "M{left} {}", decimal(f64::from(top) + half, 1));
    for (corner, (x, y)) in [(1, -1), (1, 1), (-1, 1), (-1, -1)].into_iter().enumerate() {
        let step = |sign: i32| if sign < 0 { format!("-{radius}") } else { radius.clone() };
        if corners >> corner & 1 == 1 {
            let _ = write!(svg, "a{radius} {radius} 0 0 1 {} {}", step(x), step(y));
        } else if corner.is_multiple_of(2) {
            let _ = write!(svg, "v{}h{}", step(y), step(x));
        } else {
            let _ = write!(svg, "h{}v{}", step(x), step(y));
        }
    }
    svg.push('z');
}
