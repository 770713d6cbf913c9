//! The choice of the mask: ISO/IEC 18004:2015, 7.8, on rows of bits.
//!
//! `fast_qr` 0.14.0 scores the symbol before the format information is drawn, so its mask often is not the
//! standard's (figures in the crate's README). This scores the whole symbol, as the standard says and as `qrcodegen`
//! does.

/// One row or column of modules, dark is 1, module 0 in the lowest bit of the first word.
pub(super) type Line = [u64; 3];

/// Penalty weights N1 to N4 of the standard.
const N1: u32 = 3;
const N2: u32 = 3;
const N3: u32 = 40;
const N4: u32 = 10;

/// All mask patterns repeat every 12 lines (lcm of their periods 2, 3, 4 and 6).
const PERIOD: usize = 12;

/// `PATTERNS[mask][y % 12]` has bit x set where the mask flips module (x, y).
const PATTERNS: [[Line; PERIOD]; 8] = patterns(false);
/// The same by columns: `TRANSPOSED[mask][x % 12]` has bit y set.
const TRANSPOSED: [[Line; PERIOD]; 8] = patterns(true);

/// Reads one bit of a line.
pub(super) const fn bit(line: &Line, index: usize) -> bool {
    line[index / 64] >> (index % 64) & 1 == 1
}

/// Writes one bit of a line.
pub(super) const fn set(line: &mut Line, index: usize, dark: bool) {
    if dark {
        line[index / 64] |= 1 << (index % 64);
    } else {
        line[index / 64] &= !(1 << (index % 64));
    }
}

/// A symbol before masking, by rows and by columns.
pub(super) struct Unmasked {
    pub(super) size: usize,
    /// Modules with data bits unmasked; format modules are light.
    pub(super) rows: Vec<Line>,
    pub(super) columns: Vec<Line>,
    /// Where a mask applies.
    pub(super) data_rows: Vec<Line>,
    pub(super) data_columns: Vec<Line>,
}

/// The mask of the lowest penalty (the first among equals) and the finished rows.
///
/// `format` draws the format information of a mask: it gives (x, y) of its dark modules.
pub(super) fn best(symbol: &Unmasked, format: impl Fn(usize, &mut dyn FnMut(usize, usize))) -> Vec<Line> {
    let mut best: Option<(u32, Vec<Line>)> = None;
    for mask in 0..8 {
        let mut rows = apply(&symbol.rows, &symbol.data_rows, &PATTERNS[mask]);
        let mut columns = apply(&symbol.columns, &symbol.data_columns, &TRANSPOSED[mask]);
        format(mask, &mut |x, y| {
            set(&mut rows[y], x, true);
            set(&mut columns[x], y, true);
        });
        let penalty = penalty(&rows, &columns, symbol.size);
        if best.as_ref().is_none_or(|(lowest, _)| penalty < *lowest) {
            best = Some((penalty, rows));
        }
    }
    best.map(|(_, rows)| rows).unwrap_or_default()
}

fn apply(lines: &[Line], data: &[Line], pattern: &[Line; PERIOD]) -> Vec<Line> {
    let masked = |((line, data), mask): ((&Line, &Line), &Line)| {
        [line[0] ^ (data[0] & mask[0]), line[1] ^ (data[1] & mask[1]), line[2] ^ (data[2] & mask[2])]
    };
    lines.iter().zip(data).zip(pattern.iter().cycle()).map(masked).collect()
}

fn penalty(rows: &[Line], columns: &[Line], size: usize) -> u32 {
    let runs: u32 = rows.iter().chain(columns).map(|line| line_penalty(line, size)).sum();
    let blocks: u32 = rows.windows(2).map(|pair| blocks(&pair[0], &pair[1], size)).sum();
    let words = size.div_ceil(64);
    let dark: u32 = rows.iter().flat_map(|row| &row[..words]).map(|word| word.count_ones()).sum();
    let total = (size * size) as u32;
    // Each started 5 % away from half costs N4; the side is odd, so dark is never exactly half.
    let steps = (dark * 20).abs_diff(total * 10).div_ceil(total).saturating_sub(1);
    runs + blocks * N2 + steps * N4
}

/// Runs of five and more (N1) and finder lookalikes of any scale (N3) in one line.
fn line_penalty(line: &Line, size: usize) -> u32 {
    match short_line_penalty(line[0], size) {
        Some(penalty) => penalty,
        None => long_line_penalty(line, size),
    }
}

/// The same for a line of one word, all modules at once: nearly every line of the symbols that are printed.
///
/// `None` where a lookalike may be of twice the size or larger, or the line is longer.
fn short_line_penalty(line: u64, size: usize) -> Option<u32> {
    if size > u64::BITS as usize {
        return None;
    }
    let pairs = line & line >> 1;
    let threes = pairs & line >> 2;
    // The middle of a larger lookalike is a dark run of six at least.
    if threes & threes >> 3 != 0 {
        return None;
    }
    let same = !(line ^ line >> 1) & ((1 << (size - 1)) - 1);
    // Bit i: the five modules from i on are of one colour; a run of n has n - 4 of them in a row.
    let fives = same & same >> 1 & same >> 2 & same >> 3;
    let runs = match fives {
        0 => 0,
        fives => fives.count_ones() + (N1 - 1) * (fives & !(fives << 1)).count_ones(),
    };
    let found = line & !line >> 1 & threes >> 2 & !line >> 5 & line >> 6;
    if found == 0 {
        return Some(runs);
    }
    // With room for what is light beyond both ends.
    let (light, found) = (!(u128::from(line) << 8), u128::from(found) << 8);
    let (before, after) = (light << 1, light >> 7);
    let (before_four, after_four) =
        (before & light << 2 & light << 3 & light << 4, after & light >> 8 & light >> 9 & light >> 10);
    let lookalikes = (found & before_four & after).count_ones() + (found & after_four & before).count_ones();
    Some(runs + lookalikes * N3)
}

fn long_line_penalty(line: &Line, size: usize) -> u32 {
    let mut penalty = 0;
    // The last seven runs, a byte each, the newest lowest. The quiet zone before the line counts
    // as light of any length; runs saturate, which is harmless: four times the widest possible
    // lookalike's unit (177 / 7 = 25 modules) stays under 255.
    let mut history: u64 = 0;
    let mut start = 0;
    let mut dark = false;
    let mut push = |run: usize, dark: bool, edge: bool| {
        let seen = if edge || history == 0 { run + size } else { run };
        history = history << 8 | seen.min(255) as u64;
        let long = if run >= 5 { N1 + run as u32 - 5 } else { 0 };
        long + if dark { 0 } else { lookalikes(history) * N3 }
    };
    let mut carry = 0;
    for (index, &word) in line.iter().enumerate().take(size.div_ceil(64)) {
        let mut toggles = word ^ (word << 1 | carry);
        carry = word >> 63;
        while toggles != 0 {
            let at = index * 64 + toggles.trailing_zeros() as usize;
            // A dark last module toggles once more, just beyond the line.
            if at < size {
                penalty += push(at - start, dark, false);
                start = at;
                dark = !dark;
            }
            toggles &= toggles - 1;
        }
    }
    if dark {
        penalty += push(size - start, true, false);
        penalty += push(0, false, true);
    } else {
        penalty += push(size - start, false, true);
    }
    penalty
}

/// How many of 1:1:3:1:1 with four light before, or four light after, end here (0 to 2).
fn lookalikes(history: u64) -> u32 {
    let unit = history >> 8 & 0xff;
    if unit == 0 || history >> 8 & 0xff_ffff_ffff != unit.wrapping_mul(0x01_0103_0101) {
        return 0;
    }
    let (after, before) = (history & 0xff, history >> 48 & 0xff);
    u32::from(after >= 4 * unit && before >= unit) + u32::from(before >= 4 * unit && after >= unit)
}

/// 2x2 blocks of one colour between two neighbouring rows.
fn blocks(upper: &Line, lower: &Line, size: usize) -> u32 {
    let mut count = 0;
    for index in 0..size.div_ceil(64) {
        let next = |line: &Line| line[index] >> 1 | line.get(index + 1).map_or(0, |word| word << 63);
        let same =
            !(upper[index] ^ lower[index]) & !(upper[index] ^ next(upper)) & !(lower[index] ^ next(lower));
        // The last module of a row has no right neighbour.
        let pairs = (size - 1).saturating_sub(index * 64);
        let valid = if pairs >= 64 { u64::MAX } else { (1 << pairs) - 1 };
        count += (same & valid).count_ones();
    }
    count
}

const fn flips(mask: usize, x: usize, y: usize) -> bool {
    match mask {
        0 => (x + y).is_multiple_of(2),
        1 => y.is_multiple_of(2),
        2 => x.is_multiple_of(3),
        3 => (x + y).is_multiple_of(3),
        4 => (x / 3 + y / 2).is_multiple_of(2),
        5 => x * y % 2 + x * y % 3 == 0,
        6 => (x * y % 2 + x * y % 3).is_multiple_of(2),
        _ => ((x + y) % 2 + x * y % 3).is_multiple_of(2),
    }
}

const fn patterns(transposed: bool) -> [[Line; PERIOD]; 8] {
    let mut all = [[[0; 3]; PERIOD]; 8];
    let mut mask = 0;
    while mask < 8 {
        let mut line = 0;
        while line < PERIOD {
            let mut at = 0;
            while at < 192 {
                let dark = if transposed { flips(mask, line, at) } else { flips(mask, at, line) };
                set(&mut all[mask][line], at, dark);
                at += 1;
            }
            line += 1;
        }
        mask += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn the_fast_line_penalty_equals_the_slow_one(
            // Words of short runs, as masks leave them, with lookalikes among them.
            parts in prop::collection::vec(prop_oneof![0..2_u64, Just(0b101_1101), Just(0b1_0111_0100_0010), any::<u64>()], 9),
            shift in 0..9_u32, size in 21..=64_usize,
        ) {
            let line = parts.iter().fold(0_u64, |line, part| line.rotate_left(5 + shift) ^ part);
            let line = if size == 64 { line } else { line & ((1 << size) - 1) };
            let slow = long_line_penalty(&[line, 0, 0], size);
            prop_assert!(short_line_penalty(line, size).is_none_or(|fast| fast == slow), "{line:b}, {size}");
        }
    }

    #[test]
    fn long_lines_are_counted_one_by_one() {
        assert_eq!(short_line_penalty(0, 65), None);
        assert_eq!(short_line_penalty(0b11_0011_1111_0011, 21), None, "a lookalike of twice the size");
    }

    fn line(text: &str) -> (Line, usize) {
        let mut line = [0; 3];
        for (index, module) in text.bytes().enumerate() {
            set(&mut line, index, module == b'#');
        }
        (line, text.len())
    }

    fn check(text: &str, expected: u32, why: &str) {
        let (line, size) = line(text);
        assert_eq!(line_penalty(&line, size), expected, "{text}: {why}");
    }

    #[test]
    fn line_penalties_follow_the_standard() {
        check("#.#.#.#.#.#.#.#.#.#.#", 0, "no run of five");
        check("#####.#.#.#.#.#.#.#.#", 3, "five in a row");
        check("#######.#.#.#.#.#.#.#", 5, "seven in a row");
        check(".......#.#.#.#.#.#.#.", 5, "light runs count too");
        check("#.###.#..##..##..##..", 40, "light before by the quiet zone, only two after");
        check("#.###.#....#..##..##.", 80, "four light on both sides");
        check("##..######..##........#", 4 + 6 + 80, "a lookalike of twice the size");
        check("#..##..##..##.#.###.#", 40, "at the far edge");
    }

    #[test]
    fn blocks_are_counted_across_words() {
        let upper = [u64::MAX, 0b11, 0];
        assert_eq!(blocks(&upper, &upper, 66), 65);
        assert_eq!(blocks(&upper, &[0; 3], 66), 0);
    }
}
