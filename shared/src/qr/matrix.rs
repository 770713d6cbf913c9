//! The matrix of dark and light modules of a payload.
//!
//! `fast_qr` encodes and places the bits; the mask is chosen here (see `mask.rs`), which makes the
//! symbol equal to that of `qrcodegen` module by module. Compared over 1,000 payloads of the
//! printed form at level Q, the mask of `fast_qr` 0.14.0 is another one than the standard's in
//! 693 of them: valid and readable, but not the best.

use fast_qr::{ECL, ModuleType, QRBuilder, QRCode, Version};

use super::mask::{self, Line, Unmasked};
use super::{Ecl, capacity};

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
        let symbol = place(payload, ecl, version)?;
        let size = symbol.size;
        let rows = mask::best(&symbol, |mask, dark| draw_format(ecl, mask, size, dark));
        Some(Self { version, size, rows })
    }

    /// Whether the module at column `x`, row `y` is dark.
    pub(super) fn is_dark(&self, x: usize, y: usize) -> bool {
        self.rows.get(y).is_some_and(|row| x < self.size && mask::bit(row, x))
    }
}

/// Lets `fast_qr` encode and place the payload, and takes its mask and format off again.
///
/// Apart from the rest so that its 31 kB array leaves the stack here.
#[inline(never)]
fn place(payload: &str, ecl: Ecl, version: u8) -> Option<Unmasked> {
    let ecl = match ecl {
        Ecl::L => ECL::L,
        Ecl::M => ECL::M,
        Ecl::Q => ECL::Q,
        Ecl::H => ECL::H,
    };
    let version = *VERSIONS.get(usize::from(version).checked_sub(1)?)?;
    // The mode is left to fast_qr: a forced one panics on bytes outside it.
    let code = Box::new(QRBuilder::new(payload).ecl(ecl).version(version).build().ok()?);
    Some(unmask(&code))
}

fn unmask(code: &QRCode) -> Unmasked {
    let size = code.size;
    let empty = vec![[0; 3]; size];
    let mut symbol = Unmasked {
        size,
        rows: empty.clone(),
        columns: empty.clone(),
        data_rows: empty.clone(),
        data_columns: empty,
    };
    let used = code.mask.map_or(0, |mask| mask as usize);
    for (y, modules) in code.data[..size * size].chunks_exact(size).enumerate() {
        let pattern = mask::pattern(used, y);
        for (x, module) in modules.iter().enumerate() {
            let dark = match module.module_type() {
                ModuleType::Format => continue,
                ModuleType::Data => {
                    mask::set(&mut symbol.data_rows[y], x, true);
                    mask::set(&mut symbol.data_columns[x], y, true);
                    module.value() != mask::bit(pattern, x)
                }
                ModuleType::FinderPattern
                | ModuleType::Alignment
                | ModuleType::Timing
                | ModuleType::Version
                | ModuleType::DarkModule
                | ModuleType::Empty => module.value(),
            };
            if dark {
                mask::set(&mut symbol.rows[y], x, true);
                mask::set(&mut symbol.columns[x], y, true);
            }
        }
    }
    symbol
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

#[rustfmt::skip]
const VERSIONS: [Version; capacity::MAX_VERSION as usize] = [
    Version::V01, Version::V02, Version::V03, Version::V04, Version::V05, Version::V06, Version::V07, Version::V08,
    Version::V09, Version::V10, Version::V11, Version::V12, Version::V13, Version::V14, Version::V15, Version::V16,
    Version::V17, Version::V18, Version::V19, Version::V20, Version::V21, Version::V22, Version::V23, Version::V24,
    Version::V25, Version::V26, Version::V27, Version::V28, Version::V29, Version::V30, Version::V31, Version::V32,
    Version::V33, Version::V34, Version::V35, Version::V36, Version::V37, Version::V38, Version::V39, Version::V40,
];

#[cfg(test)]
mod tests {
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
