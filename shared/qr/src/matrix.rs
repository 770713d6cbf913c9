//! The matrix of dark and light modules of a payload.
//!
//! Encoded, placed and masked here, on rows of bits: the symbol equals that of `qrcodegen` module by
//! module. `fast_qr` 0.14.0 did the first two parts once; it scores all eight masks whatever it is told, which
//! took two thirds of the instructions of a whole PNG, and none of its parts can be had alone. Compared over 1,000
//! payloads of the printed form at level Q, its mask is another one than the standard's in 693 of them: valid and
//! readable, but not the best.

use super::mask::{self, Line};
use super::{Ecl, capacity, codewords::codewords, place::place};

/// A square of modules without its quiet zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) version: u8,
    /// Modules along one side, 21 to 177.
    pub(super) size: usize,
    rows: Vec<Line>,
}

impl Matrix {
    /// The symbol of `payload` at exactly `ecl`, of version `at_least` or the smallest above it.
    ///
    /// `None` when no version holds the payload at that level.
    pub(super) fn encode(payload: &str, ecl: Ecl, at_least: u8) -> Option<Self> {
        let version = capacity::smallest_version(payload, ecl)?.max(at_least);
        let symbol = place(version, &codewords(payload, ecl, version)?);
        let size = symbol.size;
        let rows = mask::best(&symbol, |mask, dark| draw_format(ecl, mask, size, dark));
        Some(Self { version, size, rows })
    }

    /// Whether the module at column `x`, row `y` is dark.
    pub(super) fn is_dark(&self, x: usize, y: usize) -> bool {
        self.rows.get(y).is_some_and(|row| x < self.size && mask::bit(row, x))
    }
}

/// Names the dark modules of the two copies of the format information (ISO/IEC 18004, 7.9).
fn draw_format(ecl: Ecl, mask: usize, size: usize, dark: &mut dyn FnMut(usize, usize)) {
    let level = match ecl {
        Ecl::L => 1,
        Ecl::M => 0,
        Ecl::Q => 3,
        Ecl::H => 2,
    };
    let data = level << 3 | mask as u32;
    let remainder = (0..10).fold(data, |rest, _| (rest << 1) ^ ((rest >> 9) * 0x537));
    let bits = (data << 10 | remainder) ^ 0x5412;
    for index in (0..15).filter(|index| bits >> index & 1 == 1) {
        let (x, y) = match index {
            0..=5 => (8, index),
            6..=7 => (8, index + 1),
            8 => (7, 8),
            _ => (14 - index, 8),
        };
        dark(x, y);
        if index < 8 {
            dark(size - 1 - index, 8);
        } else {
            dark(8, size - 15 + index);
        }
    }
}

#[cfg(test)]
mod tests {
    use fast_qr::{ECL, QRBuilder};
    use proptest::prelude::*;

    use super::*;

    /// The same payload by an independent encoder that follows the standard's mask rule.
    fn reference(payload: &str, ecl: Ecl, version: u8) -> qrcodegen::QrCode {
        let level = match ecl {
            Ecl::L => qrcodegen::QrCodeEcc::Low,
            Ecl::M => qrcodegen::QrCodeEcc::Medium,
            Ecl::Q => qrcodegen::QrCodeEcc::Quartile,
            Ecl::H => qrcodegen::QrCodeEcc::High,
        };
        let version = qrcodegen::Version::new(version);
        let segments = qrcodegen::QrSegment::make_segments(payload);
        qrcodegen::QrCode::encode_segments_advanced(&segments, level, version, version, None, false)
            .expect("the reference holds it too")
    }

    fn check(payload: &str, ecl: Ecl, at_least: u8) {
        let ours = Matrix::encode(payload, ecl, at_least).expect("fits");
        let theirs = reference(payload, ecl, ours.version);
        assert_eq!(ours.size as i32, theirs.size());
        for y in 0..ours.size {
            for x in 0..ours.size {
                let same = ours.is_dark(x, y) == theirs.get_module(x as i32, y as i32);
                assert!(same, "{payload} at {ecl:?}, version {}: module {x},{y}", ours.version);
            }
        }
    }

    #[test]
    fn every_level_equals_the_reference_for_the_forms_we_print() {
        for ecl in Ecl::ALL {
            check("HTTPS://TN.GG/K7Q2M4XA9R", ecl, 1);
            check("HTTP://127.0.0.1:8081/K7Q2M4XA9R", ecl, 1);
            check("https://Example.org/aB-c_9", ecl, 1);
            check("0123456789", ecl, 1);
        }
    }

    #[test]
    fn every_version_equals_the_reference() {
        for version in 1..=40 {
            check("HTTPS://A", Ecl::Q, version);
            check(&"aZ9-".repeat(usize::from(version)), Ecl::L, version);
            check("HTTPS://A", Ecl::M, version);
            check("1234567", Ecl::H, version);
        }
    }

    /// The same symbol by `fast_qr`, which chooses another mask, with its mask and format taken off again.
    fn unmasked(payload: &str, ecl: Ecl, version: u8) -> Vec<Vec<Option<bool>>> {
        let level = [ECL::L, ECL::M, ECL::Q, ECL::H][Ecl::ALL.iter().position(|each| *each == ecl).unwrap()];
        let code = QRBuilder::new(payload).ecl(level).build().expect("fits");
        assert_eq!(code.size, 17 + 4 * usize::from(version), "it chooses the same version");
        let used = code.mask.map_or(0, |mask| mask as usize);
        let module = |y: usize, x: usize| {
            let module = code.data[y * code.size + x];
            match module.module_type() {
                fast_qr::ModuleType::Format => None,
                fast_qr::ModuleType::Data => Some(module.value() != mask::bit(mask::pattern(used, y), x)),
                _ => Some(module.value()),
            }
        };
        (0..code.size).map(|y| (0..code.size).map(|x| module(y, x)).collect()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn any_payload_equals_both_references(
            payload in prop_oneof!["[0-9]{1,400}", "[0-9A-Z $%*+./:-]{1,300}", "[ -~]{1,200}", "\\PC{1,60}"],
            level in 0..4_usize,
        ) {
            let ecl = Ecl::ALL[level];
            let version = capacity::smallest_version(&payload, ecl).expect("fits");
            check(&payload, ecl, 1);
            let ours = place(version, &codewords(&payload, ecl, version).expect("fits"));
            for (y, row) in unmasked(&payload, ecl, version).into_iter().enumerate() {
                for (x, theirs) in row.into_iter().enumerate() {
                    let ours = mask::bit(&ours.rows[y], x);
                    prop_assert!(theirs.is_none_or(|theirs| theirs == ours), "{payload}: module {x},{y}");
                }
            }
        }
    }

    #[test]
    fn many_ids_equal_the_reference_and_the_share_of_other_masks_is_known() {
        let mut other = 0;
        for number in 0..1000_u32 {
            let id: String = (0..10)
                .map(|at| {
                    let step = number.wrapping_mul(2_654_435_761).rotate_left(3 * at) as usize % 31;
                    char::from(b"ABCDEFGHKMNPQRSTUVWXY0123456789"[step])
                })
                .collect();
            let payload = format!("HTTPS://TN.GG/{id}");
            check(&payload, Ecl::Q, 1);
            let ours = Matrix::encode(&payload, Ecl::Q, 1).expect("fits");
            let plain = QRBuilder::new(payload.as_str()).ecl(ECL::Q).build().expect("fits");
            let same = (0..25).all(|y| (0..25).all(|x| plain[y][x].value() == ours.is_dark(x, y)));
            other += usize::from(!same);
        }
        assert_eq!(other, 693, "update the figure in this module's documentation");
    }
}
