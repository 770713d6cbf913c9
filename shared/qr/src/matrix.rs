//! The matrix of dark and light modules of a payload.
//!
//! `fast_qr` makes the data, the error correction and their places. The mask is chosen here, by the penalty of the
//! standard: `fast_qr` 0.14.0 chooses another one in 693 of 1,000 payloads of the printed form at level Q (see the
//! crate's README). So the symbol equals that of `qrcodegen` module by module.

use fast_qr::{ECL, Mask, ModuleType, QRBuilder, QRCode, Version};

use super::{
    Ecl, capacity,
    mask::{self, Line, Unmasked, set},
};

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
        let symbol = unmasked(payload, ecl, version)?;
        let size = symbol.size;
        let rows = mask::best(&symbol, |mask, dark| draw_format(ecl, mask, size, dark));
        Some(Self { version, size, rows })
    }

    /// Whether the module at column `x`, row `y` is dark.
    pub(super) fn is_dark(&self, x: usize, y: usize) -> bool {
        self.rows.get(y).is_some_and(|row| x < self.size && mask::bit(row, x))
    }
}

/// The symbol that `fast_qr` makes, with its mask and its format information taken off.
///
/// The mode is left to `fast_qr`: it panics where the alphanumeric one is forced on another letter.
fn unmasked(payload: &str, ecl: Ecl, version: u8) -> Option<Unmasked> {
    let level = match ecl {
        Ecl::L => ECL::L,
        Ecl::M => ECL::M,
        Ecl::Q => ECL::Q,
        Ecl::H => ECL::H,
    };
    let version = *VERSIONS.get(usize::from(version).checked_sub(1)?)?;
    let mut builder = QRBuilder::new(payload);
    // The pattern that is cheapest to take off again: every second module.
    let code: QRCode = builder.ecl(level).version(version).mask(Mask::Checkerboard).build().ok()?;
    let size = code.size;
    let empty = || vec![[0; 3]; size];
    let mut symbol =
        Unmasked { size, rows: empty(), columns: empty(), data_rows: empty(), data_columns: empty() };
    for (y, row) in code.data.chunks_exact(size).take(size).enumerate() {
        for (x, module) in row.iter().enumerate() {
            let is_dark = match module.module_type() {
                ModuleType::Data => {
                    set(&mut symbol.data_rows[y], x, true);
                    set(&mut symbol.data_columns[x], y, true);
                    module.value() != (x + y).is_multiple_of(2)
                }
                // Each mask has its own, which is drawn later.
                ModuleType::Format => false,
                _ => module.value(),
            };
            if is_dark {
                set(&mut symbol.rows[y], x, true);
                set(&mut symbol.columns[x], y, true);
            }
        }
    }
    Some(symbol)
}

/// The versions 1 to 40 as `fast_qr` names them.
const VERSIONS: [Version; 40] = {
    use Version::*;
    [
        V01, V02, V03, V04, V05, V06, V07, V08, V09, V10, V11, V12, V13, V14, V15, V16, V17, V18, V19, V20,
        V21, V22, V23, V24, V25, V26, V27, V28, V29, V30, V31, V32, V33, V34, V35, V36, V37, V38, V39, V40,
    ]
};

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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn any_payload_equals_the_reference(
            payload in prop_oneof!["[0-9]{1,400}", "[0-9A-Z $%*+./:-]{1,300}", "[ -~]{1,200}", "\\PC{1,60}"],
            level in 0..4_usize,
        ) {
            let ecl = Ecl::ALL[level];
            check(&payload, ecl, 1);
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
        assert_eq!(other, 693, "update the figure in this module's and the crate's documentation");
    }
}
