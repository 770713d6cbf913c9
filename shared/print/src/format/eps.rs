//! EPS: the rectangles of the PDF for software that takes nothing newer.

use std::fmt::Write as _;

use super::{Read, operators, points};
use crate::place::{Group, INCH, Rect};

/// The whole document, EPSF-3.0; lengths in nanometres.
pub(crate) fn draw(width: u64, height: u64, groups: &[Group]) -> Vec<u8> {
    let mut eps =
        String::with_capacity(500 + groups.iter().map(|group| group.rects.len() * 14).sum::<usize>());
    let whole = |nm: u64| (nm * 72).div_ceil(INCH);
    // Writing to a String cannot fail. `R` appends one rectangle: x y width height.
    let _ = write!(
        eps,
        "%!PS-Adobe-3.0 EPSF-3.0\n\
         %%BoundingBox: 0 0 {} {}\n\
         %%HiResBoundingBox: 0 0 {} {}\n\
         %%LanguageLevel: 2\n\
         %%EndComments\n\
         /R {{ 4 2 roll moveto 1 index 0 rlineto 0 exch rlineto neg 0 rlineto closepath }} bind def\n\
         0 setgray\n",
        whole(width),
        whole(height),
        points(width),
        points(height),
    );
    for Group { scale, x, y, rects } in groups {
        let (x, y, scale) = (points(*x), points(height - y), points(*scale));
        let _ = writeln!(eps, "gsave {x} {y} translate {scale} -{scale} scale newpath");
        for Rect { x, y, width, height } in rects {
            let _ = writeln!(eps, "{x} {y} {width} {height} R");
        }
        eps.push_str("fill grestore\n");
    }
    eps.push_str("showpage\n%%EOF\n");
    eps.into_bytes()
}

/// The rectangles of a document of `draw`; `height` as it was given there.
pub(crate) fn read(eps: &[u8], height: u64) -> Option<Vec<Read>> {
    operators::read(eps, height as f64)
}
