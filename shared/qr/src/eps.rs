//! EPS: the path of the PDF for label software that takes nothing newer.

use std::fmt::Write;

use super::{
    layout::{Layout, Rect},
    pdf::points_per_unit,
    svg::decimal,
};

/// The whole document, EPSF-3.0.
pub(super) fn draw(layout: &Layout, rects: &[Rect]) -> Vec<u8> {
    let unit = points_per_unit(layout.scale);
    let (width, height) = (unit * f64::from(layout.width), unit * f64::from(layout.height));
    let mut eps = String::with_capacity(400 + rects.len() * 20);
    // Writing to a String cannot fail. `R` appends one rectangle: x y width height.
    let _ = write!(
        eps,
        "%!PS-Adobe-3.0 EPSF-3.0\n\
         %%BoundingBox: 0 0 {} {}\n\
         %%HiResBoundingBox: 0 0 {} {}\n\
         %%LanguageLevel: 2\n\
         %%EndComments\n\
         gsave\n\
         /R {{ 4 2 roll moveto 1 index 0 rlineto 0 exch rlineto neg 0 rlineto closepath }} bind def\n\
         0 {} translate {unit} -{unit} scale\n\
         0 setgray newpath\n",
        width.ceil(),
        height.ceil(),
        decimal(width, 4),
        decimal(height, 4),
        decimal(height, 6),
        unit = decimal(unit, 9),
    );
    for Rect { x, y, width, height } in rects {
        let _ = writeln!(eps, "{x} {y} {width} {height} R");
    }
    eps.push_str("fill\ngrestore\nshowpage\n%%EOF\n");
    eps.into_bytes()
}
