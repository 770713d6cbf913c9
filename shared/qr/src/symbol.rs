//! The modules of a payload and the glyphs of a text, for crates that draw them in another way than `render` does.

use crate::{
    Ecl, QrError,
    caption::{self, GLYPH_HEIGHT},
    matrix::Matrix,
};

/// A square of dark and light modules without its quiet zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol(Matrix);

impl Symbol {
    /// The symbol of `payload` at exactly `ecl`, of version `at_least` (1 to 40) or the smallest above it.
    ///
    /// # Errors
    /// [`QrError::TooLarge`] when no version holds it.
    pub fn encode(payload: &str, ecl: Ecl, at_least: u8) -> Result<Self, QrError> {
        let matrix = Matrix::encode(payload, ecl, at_least);
        matrix.map(Self).ok_or(QrError::TooLarge { length: payload.len(), ecl })
    }

    /// The version, 1 to 40.
    pub fn version(&self) -> u8 {
        self.0.version
    }

    /// Modules along one side, 21 to 177.
    pub fn modules(&self) -> u32 {
        self.0.size as u32
    }

    /// Whether the module in column `x` of row `y` is dark; all outside of the symbol are light.
    pub fn is_dark(&self, x: u32, y: u32) -> bool {
        self.0.is_dark(x as usize, y as usize)
    }
}

/// Dots of a glyph: 5 wide, 7 high.
pub const GLYPH_SIZE: (u32, u32) = (5, GLYPH_HEIGHT);

/// The glyph of one of `[A-Za-z0-9_/-]`: its rows from the top, bit 4 being the leftmost dot.
pub fn glyph(byte: u8) -> Option<[u8; 7]> {
    caption::glyph(byte).copied()
}
