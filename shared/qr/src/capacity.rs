//! How much a QR symbol holds, and the smallest version that holds a payload.

use super::Ecl;

/// The highest version of the standard, 177 modules a side.
pub(super) const MAX_VERSION: u8 = 40;

/// Data codewords (bytes) of versions 1 to 40 at one level: ISO/IEC 18004:2015, table 7.
type Codewords = [u16; MAX_VERSION as usize];

const L: Codewords = [
    19, 34, 55, 80, 108, 136, 156, 194, 232, 274, 324, 370, 428, 461, 523, 589, 647, 721, 795, 861, 932,
    1006, 1094, 1174, 1276, 1370, 1468, 1531, 1631, 1735, 1843, 1955, 2071, 2191, 2306, 2434, 2566, 2702,
    2812, 2956,
];
const M: Codewords = [
    16, 28, 44, 64, 86, 108, 124, 154, 182, 216, 254, 290, 334, 365, 415, 453, 507, 563, 627, 669, 714, 782,
    860, 914, 1000, 1062, 1128, 1193, 1267, 1373, 1455, 1541, 1631, 1725, 1812, 1914, 1992, 2102, 2216, 2334,
];
const Q: Codewords = [
    13, 22, 34, 48, 62, 76, 88, 110, 132, 154, 180, 206, 244, 261, 295, 325, 367, 397, 445, 485, 512, 568,
    614, 664, 718, 754, 808, 871, 911, 985, 1033, 1115, 1171, 1231, 1286, 1354, 1426, 1502, 1582, 1666,
];
const H: Codewords = [
    9, 16, 26, 36, 46, 60, 66, 86, 100, 122, 140, 158, 180, 197, 223, 253, 283, 313, 341, 385, 406, 442, 464,
    514, 538, 596, 628, 661, 701, 745, 793, 845, 901, 961, 986, 1054, 1096, 1142, 1222, 1276,
];

/// Modules along one side of a symbol of `version`, without the quiet zone.
pub(super) const fn modules(version: u8) -> u32 {
    17 + 4 * version as u32
}

fn table(ecl: Ecl) -> &'static Codewords {
    match ecl {
        Ecl::L => &L,
        Ecl::M => &M,
        Ecl::Q => &Q,
        Ecl::H => &H,
    }
}

/// The smallest version that holds `payload` at `ecl` in one segment, if any does.
pub(super) fn smallest_version(payload: &str, ecl: Ecl) -> Option<u8> {
    let mode = Mode::of(payload);
    (1..=MAX_VERSION)
        .zip(table(ecl))
        .find(|&(version, &bytes)| mode.bits(payload.len(), version) <= usize::from(bytes) * 8)
        .map(|(version, _)| version)
}

/// The densest single mode of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mode {
    /// Digits.
    Numeric,
    /// Digits, upper-case letters and nine signs.
    Alphanumeric,
    /// Anything.
    Byte,
}

impl Mode {
    /// The mode of a payload.
    pub(super) fn of(payload: &str) -> Self {
        let alphanumeric = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase() || b" $%*+-./:".contains(&b);
        if payload.bytes().all(|b| b.is_ascii_digit()) {
            Self::Numeric
        } else if payload.bytes().all(alphanumeric) {
            Self::Alphanumeric
        } else {
            Self::Byte
        }
    }

    /// Bits of the character count.
    pub(super) const fn count_bits(self, version: u8) -> u32 {
        let (small, medium, large) = match self {
            Self::Numeric => (10, 12, 14),
            Self::Alphanumeric => (9, 11, 13),
            Self::Byte => (8, 16, 16),
        };
        match version {
            0..=9 => small,
            10..=26 => medium,
            27.. => large,
        }
    }

    /// Bits of the whole segment: mode indicator, character count, data.
    pub(super) fn bits(self, length: usize, version: u8) -> usize {
        let data = match self {
            Self::Numeric => 10 * (length / 3) + [0, 4, 7][length % 3],
            Self::Alphanumeric => 11 * (length / 2) + 6 * (length % 2),
            Self::Byte => 8 * length,
        };
        4 + self.count_bits(version) as usize + data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &str, ecl: Ecl, version: Option<u8>, why: &str) {
        assert_eq!(smallest_version(payload, ecl), version, "{payload} at {ecl:?}: {why}");
    }

    #[test]
    fn versions_of_the_forms_we_print() {
        check("HTTPS://TN.GG/K7Q2M4XA9R", Ecl::Q, Some(2), "24 of at most 29 alphanumerics");
        check("HTTP://TN.GG/ABCDEFGHKM", Ecl::Q, Some(2), "23 alphanumerics");
        check("http://tn.gg/aBcDeFgHiJ", Ecl::Q, Some(3), "23 bytes of at most 20 in version 2");
        check(&"A".repeat(29), Ecl::Q, Some(2), "version 2-Q holds 29 alphanumerics");
        check(&"A".repeat(30), Ecl::Q, Some(3), "and not 30");
        check(&"a".repeat(20), Ecl::Q, Some(2), "version 2-Q holds 20 bytes");
        check(&"a".repeat(21), Ecl::Q, Some(3), "and not 21");
        check(&"1".repeat(7089), Ecl::L, Some(40), "the largest numeric symbol");
        check(&"1".repeat(7090), Ecl::L, None, "one digit too many");
        check(&"a".repeat(1273), Ecl::H, Some(40), "the largest byte symbol at H");
        check(&"a".repeat(1274), Ecl::H, None, "one byte too many");
    }

    #[test]
    fn the_table_agrees_with_another_encoder_at_every_edge() {
        for (ours, theirs) in [
            (Ecl::L, qrcodegen::QrCodeEcc::Low),
            (Ecl::M, qrcodegen::QrCodeEcc::Medium),
            (Ecl::Q, qrcodegen::QrCodeEcc::Quartile),
            (Ecl::H, qrcodegen::QrCodeEcc::High),
        ] {
            for version in 1..=MAX_VERSION {
                let fits = |length: usize| Mode::Byte.bits(length, version);
                let longest = (1..3000)
                    .rev()
                    .find(|&n| smallest_version(&"a".repeat(n), ours).is_some_and(|v| v <= version))
                    .expect("one byte fits everywhere");
                let code = |n: usize| {
                    let segment = qrcodegen::QrSegment::make_bytes("a".repeat(n).as_bytes());
                    qrcodegen::QrCode::encode_segments_advanced(
                        &[segment],
                        theirs,
                        qrcodegen::Version::new(version),
                        qrcodegen::Version::new(version),
                        Some(qrcodegen::Mask::new(0)),
                        false,
                    )
                };
                assert!(code(longest).is_ok(), "{longest} bytes in {version}-{ours:?}");
                assert!(code(longest + 1).is_err(), "{} bits in {version}-{ours:?}", fits(longest + 1));
            }
        }
    }
}
