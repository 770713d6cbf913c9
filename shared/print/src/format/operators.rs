//! Reads the operators that our PDF pages and EPS files consist of.

use super::{Read, from_points};

/// The rectangles of a page of `height` nanometres.
///
/// Knows `q … cm … re … f Q` of PDF and `gsave … translate … scale … R … fill grestore` of our EPS. A PDF's matrix must
/// be a scale with a shift. `None` where the page is something else.
pub(crate) fn read(content: &[u8], height: f64) -> Option<Vec<Read>> {
    let text = std::str::from_utf8(content).ok()?;
    let mut groups = Vec::new();
    let (mut scale, mut x, mut y, mut rects) = (0.0, 0.0, 0.0, Vec::new());
    let mut numbers: Vec<f64> = Vec::with_capacity(8);
    let lines = text.lines().filter(|line| !line.starts_with('%') && !line.starts_with('/'));
    for token in lines.flat_map(str::split_ascii_whitespace) {
        if let Ok(number) = token.parse() {
            numbers.push(number);
            continue;
        }
        match (token, numbers.as_slice()) {
            ("q" | "gsave", &[]) => rects.clear(),
            ("cm", &[factor, 0.0, 0.0, flipped, right, up]) if flipped == -factor => {
                (scale, x, y) = (from_points(factor), from_points(right), height - from_points(up));
            }
            ("translate", &[right, up]) => (x, y) = (from_points(right), height - from_points(up)),
            ("scale", &[factor, flipped]) if flipped == -factor => scale = from_points(factor),
            ("re" | "R", &[left, top, width, height]) => rects.push([left, top, width, height]),
            ("f" | "fill", &[]) => groups.push(Read::new(scale, x, y, std::mem::take(&mut rects))),
            ("Q" | "grestore" | "newpath" | "showpage", &[]) | ("g" | "setgray", &[0.0]) => {}
            _ => return None,
        }
        numbers.clear();
    }
    Some(groups)
}
