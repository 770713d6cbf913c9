//! Texts below codes, drawn from glyphs of dots.
//!
//! Dots rather than outlines of a font: every format shows the same text, no viewer and no printer needs a font, and
//! the width is known exactly.

mod signs;

use qr::GLYPH_SIZE;

/// Dots of a line with the white below it.
pub(crate) const LINE_DOTS: u64 = GLYPH_SIZE.1 as u64 + 2;
/// Dots from one glyph to the next.
const ADVANCE: u64 = GLYPH_SIZE.0 as u64 + 1;

/// A run of dark dots in one row of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) width: u64,
}

/// The first character that has no glyph.
pub(crate) fn unprintable(text: &str) -> Option<char> {
    text.chars().find(|&letter| glyph(letter).is_none())
}

/// Dots from the left of the first to the right of the last glyph.
pub(crate) fn width(text: &str) -> u64 {
    (text.chars().count() as u64 * ADVANCE).saturating_sub(1)
}

/// The dark runs of a text, row by row.
pub(crate) fn runs(text: &str) -> Vec<Run> {
    let glyphs: Vec<[u8; 7]> = text.chars().filter_map(glyph).collect();
    let mut runs = Vec::with_capacity(glyphs.len() * 12);
    for y in 0..GLYPH_SIZE.1 as usize {
        for (at, glyph) in glyphs.iter().enumerate() {
            let left = at as u64 * ADVANCE;
            let mut x = 0;
            while x < GLYPH_SIZE.0 {
                // Bit 4 is the leftmost dot; the dots from x on, at the top of a byte.
                let width = (glyph[y] << (3 + x)).leading_ones();
                if width > 0 {
                    runs.push(Run { x: left + u64::from(x), y: y as u64, width: u64::from(width) });
                }
                x += width.max(1);
            }
        }
    }
    runs
}

fn glyph(letter: char) -> Option<[u8; 7]> {
    let byte = u8::try_from(letter).ok()?;
    qr::glyph(byte).or_else(|| signs::glyph(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_a_gs1_serial_has_its_own_glyph() {
        let mut seen = Vec::new();
        for byte in b' '..=b'~' {
            match glyph(char::from(byte)) {
                Some(glyph) => {
                    assert!(!seen.contains(&glyph), "{:?} looks like another", char::from(byte));
                    seen.push(glyph);
                }
                None => assert!(b"$@[\\]^`{|}~".contains(&byte), "{:?}", char::from(byte)),
            }
        }
        assert_eq!(unprintable("(01)04012345678901(21)A/1"), None);
        assert_eq!(unprintable("Aä"), Some('ä'));
    }

    #[test]
    fn runs_are_the_dots_of_the_glyphs() {
        let mut drawn = vec![vec![b'.'; 11]; 7];
        for Run { x, y, width } in runs("(1") {
            drawn[y as usize][x as usize..(x + width) as usize].fill(b'#');
        }
        let drawn: Vec<String> =
            drawn.into_iter().map(|row| String::from_utf8_lossy(&row).into_owned()).collect();
        let expected = [
            "...#....#..",
            "..#....##..",
            ".#......#..",
            ".#......#..",
            ".#......#..",
            "..#.....#..",
            "...#...###.",
        ];
        assert_eq!(drawn, expected);
        assert_eq!(width("(1"), 11);
    }
}
