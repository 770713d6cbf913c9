//! Cut marks: short lines in the margins of a sheet, where a guillotine cuts.

use crate::{
    place::{Group, Rect},
    spec::Sheet,
};

/// A unit of the marks: a micrometre.
const UNIT_NM: u64 = 1_000;
/// Thickness and greatest length of a mark, and its distance from the labels, in units.
const THICKNESS: u64 = 100;
const LENGTH: u64 = 5_000;
const DISTANCE: u64 = 500;

/// A mark at each edge of each label, in those margins that have room for one.
pub(crate) fn groups(sheet: &Sheet) -> Vec<Group> {
    let units = |nm: u64| nm / UNIT_NM;
    let last = sheet.corner(sheet.rows - 1, sheet.columns - 1);
    let (label_width, label_height) = (u64::from(sheet.label_width), u64::from(sheet.label_height));
    let columns = (0..sheet.columns).map(|column| sheet.corner(0, column).0);
    let rows = (0..sheet.rows).map(|row| sheet.corner(row, 0).1);
    let xs = edges(columns, label_width);
    let ys = edges(rows, label_height);
    let across = margins(u64::from(sheet.left), last.0 + label_width, u64::from(sheet.width));
    let down = margins(u64::from(sheet.top), last.1 + label_height, u64::from(sheet.height));
    let mut rects = Vec::new();
    for (begin, length) in down {
        rects.extend(xs.iter().map(|&x| Rect {
            x: units(x).saturating_sub(THICKNESS / 2),
            y: begin,
            width: THICKNESS,
            height: length,
        }));
    }
    for (begin, length) in across {
        rects.extend(ys.iter().map(|&y| Rect {
            x: begin,
            y: units(y).saturating_sub(THICKNESS / 2),
            width: length,
            height: THICKNESS,
        }));
    }
    if rects.is_empty() { Vec::new() } else { vec![Group { scale: UNIT_NM, x: 0, y: 0, rects }] }
}

/// Where labels begin and end, each place once.
fn edges(begins: impl Iterator<Item = u64>, length: u64) -> Vec<u64> {
    let mut edges: Vec<u64> = begins.flat_map(|begin| [begin, begin + length]).collect();
    edges.dedup();
    edges
}

/// Begin and length, in units, of the marks in the margins before and behind the labels.
fn margins(before: u64, end: u64, sheet: u64) -> Vec<(u64, u64)> {
    let (before, end, sheet) = (before / UNIT_NM, end.div_ceil(UNIT_NM), sheet / UNIT_NM);
    let length = |margin: u64| LENGTH.min(margin.saturating_sub(DISTANCE));
    let (first, second) = (length(before), length(sheet.saturating_sub(end)));
    let marks = [(before.saturating_sub(DISTANCE + first), first), (end + DISTANCE, second)];
    marks.into_iter().filter(|(_, length)| *length > 0).collect()
}
