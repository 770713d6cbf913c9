//! Measures of common label sheets and rolls, in nanometres.
//!
//! Named by sheet and label. Several makers sell each of these; margins are those that centre the labels where makers
//! differ by tenths of a millimetre.

/// A sheet of labels, or a roll with one.
#[derive(Debug)]
pub(super) struct Size {
    pub(super) name: &'static str,
    /// Width and height; so are all pairs.
    pub(super) sheet: [u32; 2],
    pub(super) columns: u32,
    pub(super) rows: u32,
    pub(super) label: [u32; 2],
    pub(super) gap: [u32; 2],
    pub(super) margin: [u32; 2],
}

const A4: [u32; 2] = [210_000_000, 297_000_000];
const LETTER: [u32; 2] = [215_900_000, 279_400_000];

/// Labels centred on the sheet; lengths in micrometres.
const fn sheet(
    name: &'static str,
    sheet: [u32; 2],
    [columns, rows]: [u32; 2],
    label: [u32; 2],
    gap: [u32; 2],
) -> Size {
    let label = [label[0] * 1_000, label[1] * 1_000];
    let gap = [gap[0] * 1_000, gap[1] * 1_000];
    let margin = [
        (sheet[0] - columns * label[0] - (columns - 1) * gap[0]) / 2,
        (sheet[1] - rows * label[1] - (rows - 1) * gap[1]) / 2,
    ];
    Size { name, sheet, columns, rows, label, gap, margin }
}

/// A roll of labels; lengths in micrometres.
const fn roll(name: &'static str, label: [u32; 2]) -> Size {
    let label = [label[0] * 1_000, label[1] * 1_000];
    Size { name, sheet: label, columns: 1, rows: 1, label, gap: [0, 0], margin: [0, 0] }
}

/// Every known size.
pub(super) const ALL: &[Size] = &[
    sheet("a4-199.6x289.1", A4, [1, 1], [199_600, 289_100], [0, 0]),
    sheet("a4-199.6x143.5", A4, [1, 2], [199_600, 143_500], [0, 0]),
    sheet("a4-210x148.5", A4, [1, 2], [210_000, 148_500], [0, 0]),
    sheet("a4-105x148.5", A4, [2, 2], [105_000, 148_500], [0, 0]),
    sheet("a4-99.1x139", A4, [2, 2], [99_100, 139_000], [2_500, 0]),
    sheet("a4-99.1x93.1", A4, [2, 3], [99_100, 93_100], [2_500, 0]),
    sheet("a4-105x74", A4, [2, 4], [105_000, 74_000], [0, 0]),
    sheet("a4-99.1x67.7", A4, [2, 4], [99_100, 67_700], [2_500, 0]),
    sheet("a4-99.1x57", A4, [2, 5], [99_100, 57_000], [2_500, 0]),
    sheet("a4-99.1x42.3", A4, [2, 6], [99_100, 42_300], [2_500, 0]),
    sheet("a4-63.5x72", A4, [3, 4], [63_500, 72_000], [2_500, 0]),
    sheet("a4-99.1x38.1", A4, [2, 7], [99_100, 38_100], [2_500, 0]),
    sheet("a4-99.1x33.9", A4, [2, 8], [99_100, 33_900], [2_500, 0]),
    sheet("a4-63.5x46.6", A4, [3, 6], [63_500, 46_600], [2_500, 0]),
    sheet("a4-63.5x38.1", A4, [3, 7], [63_500, 38_100], [2_500, 0]),
    sheet("a4-70x42.3", A4, [3, 7], [70_000, 42_300], [0, 0]),
    sheet("a4-63.5x33.9", A4, [3, 8], [63_500, 33_900], [2_500, 0]),
    sheet("a4-70x37", A4, [3, 8], [70_000, 37_000], [0, 0]),
    sheet("a4-70x29.7", A4, [3, 10], [70_000, 29_700], [0, 0]),
    sheet("a4-52.5x29.7", A4, [4, 10], [52_500, 29_700], [0, 0]),
    sheet("a4-48.5x25.4", A4, [4, 10], [48_500, 25_400], [0, 0]),
    sheet("a4-45.7x21.2", A4, [4, 12], [45_700, 21_200], [2_500, 0]),
    sheet("a4-38.1x21.2", A4, [5, 13], [38_100, 21_200], [2_500, 0]),
    sheet("a4-35.6x16.9", A4, [5, 16], [35_600, 16_900], [2_500, 0]),
    sheet("a4-25.4x10", A4, [7, 27], [25_400, 10_000], [2_500, 0]),
    sheet("letter-215.9x139.7", LETTER, [1, 2], [215_900, 139_700], [0, 0]),
    sheet("letter-101.6x84.7", LETTER, [2, 3], [101_600, 84_666], [4_762, 0]),
    sheet("letter-101.6x50.8", LETTER, [2, 5], [101_600, 50_800], [4_762, 0]),
    sheet("letter-101.6x33.9", LETTER, [2, 7], [101_600, 33_866], [4_762, 0]),
    sheet("letter-101.6x25.4", LETTER, [2, 10], [101_600, 25_400], [4_762, 0]),
    sheet("letter-66.7x25.4", LETTER, [3, 10], [66_675, 25_400], [3_175, 0]),
    sheet("letter-44.5x12.7", LETTER, [4, 20], [44_450, 12_700], [7_937, 0]),
    roll("roll-25x10", [25_000, 10_000]),
    roll("roll-25x25", [25_000, 25_000]),
    roll("roll-30x20", [30_000, 20_000]),
    roll("roll-38x25", [38_000, 25_000]),
    roll("roll-40x30", [40_000, 30_000]),
    roll("roll-50x25", [50_000, 25_000]),
    roll("roll-50x30", [50_000, 30_000]),
    roll("roll-57x32", [57_000, 32_000]),
    roll("roll-57x51", [57_000, 51_000]),
    roll("roll-60x40", [60_000, 40_000]),
    roll("roll-70x32", [70_000, 32_000]),
    roll("roll-76x51", [76_000, 51_000]),
    roll("roll-100x50", [100_000, 50_000]),
    roll("roll-100x70", [100_000, 70_000]),
    roll("roll-100x100", [100_000, 100_000]),
    roll("roll-100x150", [100_000, 150_000]),
    roll("roll-25.4x25.4", [25_400, 25_400]),
    roll("roll-50.8x25.4", [50_800, 25_400]),
    roll("roll-76.2x50.8", [76_200, 50_800]),
    roll("roll-101.6x152.4", [101_600, 152_400]),
];
