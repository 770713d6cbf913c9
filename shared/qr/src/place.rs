//! Where everything stands in a symbol before it is masked (ISO/IEC 18004:2015, 5.3 and 7.7.3).

use super::mask::{Line, Unmasked, bit, set};

/// Modules that no data may take.
struct Canvas {
    symbol: Unmasked,
    taken: Vec<Line>,
}

impl Canvas {
    /// A module of a pattern; what lies beyond the edge is left out.
    fn put(&mut self, x: usize, y: usize, dark: bool) {
        if x >= self.symbol.size || y >= self.symbol.size {
            return;
        }
        set(&mut self.taken[y], x, true);
        set(&mut self.symbol.rows[y], x, dark);
        set(&mut self.symbol.columns[x], y, dark);
    }

    /// A finder in a corner, with what separates it; the corner is its outermost module.
    fn put_finder(&mut self, x: usize, y: usize) {
        // From one module before to one behind; what is before the edge wraps, and is beyond it.
        for dy in 0..9_usize {
            for dx in 0..9_usize {
                let ring = dx.abs_diff(4).max(dy.abs_diff(4));
                self.put((x + dx).wrapping_sub(1), (y + dy).wrapping_sub(1), ring != 2 && ring != 4);
            }
        }
    }

    fn put_alignment(&mut self, x: usize, y: usize) {
        for dy in 0..5_usize {
            for dx in 0..5_usize {
                let ring = dx.abs_diff(2).max(dy.abs_diff(2));
                self.put(x + dx - 2, y + dy - 2, ring != 1);
            }
        }
    }

    /// The two copies of the version, from version 7 on.
    fn put_version(&mut self, version: u8) {
        if version < 7 {
            return;
        }
        let data = u32::from(version);
        let remainder = (0..12).fold(data, |rest, _| (rest << 1) ^ ((rest >> 11) * 0x1F25));
        let bits = data << 12 | remainder;
        for index in 0..18 {
            let (far, near) = (self.symbol.size - 11 + index % 3, index / 3);
            let dark = bits >> index & 1 == 1;
            self.put(far, near, dark);
            self.put(near, far, dark);
        }
    }

    /// Keeps the places of the format information free; only the one module beside it is always dark.
    fn keep_format(&mut self) {
        let size = self.symbol.size;
        for at in 0..9 {
            if at != 6 {
                self.put(8, at, false);
                self.put(at, 8, false);
            }
        }
        for at in 1..=8 {
            self.put(size - at, 8, false);
            self.put(8, size - at, at == 8);
        }
    }
}

/// A symbol of a version with its codewords.
pub(super) fn place(version: u8, codewords: &[u8]) -> Unmasked {
    let size = 17 + 4 * usize::from(version);
    let empty = vec![[0; 3]; size];
    let symbol = Unmasked {
        size,
        rows: empty.clone(),
        columns: empty.clone(),
        data_rows: empty.clone(),
        data_columns: empty.clone(),
    };
    let mut canvas = Canvas { symbol, taken: empty };
    for at in 0..size {
        canvas.put(6, at, at.is_multiple_of(2));
        canvas.put(at, 6, at.is_multiple_of(2));
    }
    for (x, y) in [(0, 0), (size - 7, 0), (0, size - 7)] {
        canvas.put_finder(x, y);
    }
    let centres = alignments(version, size);
    let last = centres.len().saturating_sub(1);
    for (row, y) in centres.iter().enumerate() {
        for (column, x) in centres.iter().enumerate() {
            // Finders are there.
            if !matches!((row, column), (0, 0)) && (row, column) != (0, last) && (row, column) != (last, 0) {
                canvas.put_alignment(*x, *y);
            }
        }
    }
    canvas.keep_format();
    canvas.put_version(version);
    fill(canvas, codewords)
}

/// Where the centres of alignment patterns are, in both directions (annex E).
fn alignments(version: u8, size: usize) -> Vec<usize> {
    if version == 1 {
        return Vec::new();
    }
    let count = usize::from(version) / 7 + 2;
    // Even, and the same between all but the first two.
    let step = match version {
        32 => 26,
        version => (usize::from(version) * 4 + count * 2 + 1) / (count * 2 - 2) * 2,
    };
    let mut centres: Vec<usize> = (0..count - 1).rev().map(|at| size - 7 - at * step).collect();
    centres.insert(0, 6);
    centres
}

/// Lets the codewords run up and down in pairs of columns, from the right; what is left over stays light.
fn fill(canvas: Canvas, codewords: &[u8]) -> Unmasked {
    let Canvas { mut symbol, taken } = canvas;
    let size = symbol.size;
    let mut bits = codewords.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1));
    let pairs = (1..size).rev().step_by(2).map(|right| if right <= 6 { right - 1 } else { right });
    for (number, right) in pairs.enumerate() {
        for step in 0..size {
            let y = if number.is_multiple_of(2) { size - 1 - step } else { step };
            for x in [right, right - 1] {
                if bit(&taken[y], x) {
                    continue;
                }
                set(&mut symbol.data_rows[y], x, true);
                set(&mut symbol.data_columns[x], y, true);
                if bits.next() == Some(true) {
                    set(&mut symbol.rows[y], x, true);
                    set(&mut symbol.columns[x], y, true);
                }
            }
        }
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::{super::capacity, *};

    #[test]
    fn every_version_has_room_for_its_codewords_and_no_more() {
        for version in 1..=capacity::MAX_VERSION {
            let symbol = place(version, &[]);
            let free: u32 = symbol.data_rows.iter().flatten().map(|word| word.count_ones()).sum();
            assert_eq!(free as usize, capacity::data_modules(version), "version {version}");
        }
    }

    #[test]
    fn alignments_stand_where_the_standard_says() {
        for (version, centres) in [
            (1, &[][..]),
            (2, &[6, 18]),
            (7, &[6, 22, 38]),
            (32, &[6, 34, 60, 86, 112, 138]),
            (40, &[6, 30, 58, 86, 114, 142, 170]),
        ] {
            assert_eq!(alignments(version, 17 + 4 * usize::from(version)), centres, "version {version}");
        }
    }
}
