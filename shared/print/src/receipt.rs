//! What was drawn and read back.

use serde::{Deserialize, Serialize};

/// What was drawn and read back, of a chunk or of a whole order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkReceipt {
    /// Codes that were drawn.
    pub codes: u64,
    /// Codes that were read back from the drawn bytes: equals `codes`, as drawing fails otherwise.
    pub decoded: u64,
    /// Of those, codes whose modules were sampled at their known places, as the decoder did not find the symbol.
    pub sampled: u64,
    /// Pages (sheets, labels, files) that were made.
    pub pages: u64,
    /// The narrowest module in nanometres; the largest number where there is no code yet.
    pub smallest_module_nm: u32,
    /// The widest module in nanometres.
    pub largest_module_nm: u32,
    /// Lowest version of a symbol; 255 where there is no code yet.
    pub lowest_version: u8,
    /// Highest version of a symbol.
    pub highest_version: u8,
}

impl Default for ChunkReceipt {
    fn default() -> Self {
        Self {
            codes: 0,
            decoded: 0,
            sampled: 0,
            pages: 0,
            smallest_module_nm: u32::MAX,
            largest_module_nm: 0,
            lowest_version: u8::MAX,
            highest_version: 0,
        }
    }
}

impl ChunkReceipt {
    /// Adds the receipt of another part.
    pub fn add(&mut self, other: &Self) {
        self.codes += other.codes;
        self.decoded += other.decoded;
        self.sampled += other.sampled;
        self.pages += other.pages;
        self.smallest_module_nm = self.smallest_module_nm.min(other.smallest_module_nm);
        self.largest_module_nm = self.largest_module_nm.max(other.largest_module_nm);
        self.lowest_version = self.lowest_version.min(other.lowest_version);
        self.highest_version = self.highest_version.max(other.highest_version);
    }

    /// The narrowest module in millimetres.
    pub fn smallest_module_mm(&self) -> f64 {
        f64::from(self.smallest_module_nm) / 1e6
    }

    /// The widest module in millimetres.
    pub fn largest_module_mm(&self) -> f64 {
        f64::from(self.largest_module_nm) / 1e6
    }
}
