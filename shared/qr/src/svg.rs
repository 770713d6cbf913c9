//! SVG: a white ground and one path of rectangles.

use std::fmt::Write;

use super::layout::{Layout, Rect, Scale};

/// The whole document. One path, so that neighbouring rows show no seams when it is scaled.
pub(super) fn draw(layout: &Layout, rects: &[Rect]) -> Vec<u8> {
    let (width, height) = (layout.width, layout.height);
    let edge = |units: u32| match layout.scale {
        Scale::Pixel => units.to_string(),
        Scale::Millimetres { unit, .. } => format!("{}mm", decimal(unit * f64::from(units), 4)),
    };
    let mut svg = String::with_capacity(300 + rects.len() * 20);
    svg.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
         shape-rendering=\"crispEdges\"><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\
         <path fill=\"#000\" d=\"",
        edge(width),
        edge(height),
    );
    for Rect { x, y, width, height } in rects {
        let _ = write!(svg, "M{x} {y}h{width}v{height}h-{width}z");
    }
    svg.push_str("\"/></svg>\n");
    svg.into_bytes()
}

/// A number with at most `places` decimals and no trailing zeros.
pub(super) fn decimal(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
