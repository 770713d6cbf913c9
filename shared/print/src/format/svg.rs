//! SVG: a white ground and a path for each scale, in millimetres.

use std::fmt::Write as _;

use super::{Read, millimetres};
use crate::place::{Group, Rect};

const PATH: &str = "<path fill=\"#000\" transform=\"translate(";

/// The whole document; lengths in nanometres. One path a scale, so that neighbouring rows show no seams.
pub(crate) fn draw(width: u64, height: u64, groups: &[Group]) -> Vec<u8> {
    let (width, height) = (millimetres(width), millimetres(height));
    let mut svg =
        String::with_capacity(400 + groups.iter().map(|group| group.rects.len() * 18).sum::<usize>());
    svg.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}mm\" height=\"{height}mm\" \
         viewBox=\"0 0 {width} {height}\" shape-rendering=\"crispEdges\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
    );
    for Group { scale, x, y, rects } in groups {
        let (x, y, scale) = (millimetres(*x), millimetres(*y), millimetres(*scale));
        let _ = write!(svg, "\n{PATH}{x} {y}) scale({scale})\" d=\"");
        for Rect { x, y, width, height } in rects {
            let _ = write!(svg, "M{x} {y}h{width}v{height}h-{width}z");
        }
        svg.push_str("\"/>");
    }
    svg.push_str("\n</svg>\n");
    svg.into_bytes()
}

/// The rectangles of a document of `draw`.
pub(crate) fn read(svg: &[u8]) -> Option<Vec<Read>> {
    let text = std::str::from_utf8(svg).ok()?;
    text.split(PATH).skip(1).map(read_path).collect()
}

fn read_path(path: &str) -> Option<Read> {
    let (corner, rest) = path.split_once(") scale(")?;
    let (scale, rest) = rest.split_once(")\" d=\"")?;
    let (data, _) = rest.split_once('"')?;
    let (x, y) = corner.split_once(' ')?;
    let nanometres = |text: &str| Some(text.parse::<f64>().ok()? * 1e6);
    let rects = data.split_terminator('z').map(read_rect).collect::<Option<_>>()?;
    Some(Read::new(nanometres(scale)?, nanometres(x)?, nanometres(y)?, rects))
}

fn read_rect(rect: &str) -> Option<[f64; 4]> {
    let (corner, rest) = rect.strip_prefix('M')?.split_once('h')?;
    let (width, rest) = rest.split_once('v')?;
    let (height, back) = rest.split_once("h-")?;
    let (x, y) = corner.split_once(' ')?;
    if width != back {
        return None;
    }
    Some([x.parse().ok()?, y.parse().ok()?, width.parse().ok()?, height.parse().ok()?])
}
