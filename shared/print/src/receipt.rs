//! What was drawn and read back.

use serde::{Deserialize, Serialize};

/// What was drawn and read back, of a chunk or of a whole order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkReceipt {
    /// Codes that were drawn.
    pub codes: u64,
    /// Codes that `rqrr` read back from the drawn bytes; equals `codes`, else drawing has failed.
    pub decoded: u64,
    /// Of those, codes whose modules had to be sampled at their known places, as `rqrr` did not find the symbol.
    pub sampled: u64,
    /// Pages (sheets, labels, files) that were made.
    pub pages: u64,
    /// The narrowest module in nanometres.
    pub smallest_module_nm: u32,
    /// The widest module in nanometres.
    pub largest_module_nm: u32,
    /// Lowest version of a symbol.
    pub lowest_version: u8,
    /// Highest version of a symbol.
    pub highest_version: u8,
}
