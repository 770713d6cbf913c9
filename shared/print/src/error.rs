//! Why an order cannot be drawn or joined.

/// Why an order cannot be drawn or joined.
///
/// Those with an `index` (from 0) are faults of one code: the order's answer names it. `Io` is of the reader or writer
/// that was handed in, `Chunk` says that stored parts are damaged or of another order.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The payload does not fit a symbol.
    #[error("code {} ({short_id}): {source}", .index + 1)]
    Symbol {
        /// Index of the code, from 0.
        index: u64,
        /// Its short id.
        short_id: String,
        /// What the encoder says.
        source: qr::QrError,
    },
    /// The code cannot be drawn as asked.
    #[error("code {} ({short_id}): {problem}", .index + 1)]
    Code {
        /// Index of the code, from 0.
        index: u64,
        /// Its short id.
        short_id: String,
        /// What is wrong, with the measures.
        problem: String,
    },
    /// The code was drawn and could not be read back from the drawn bytes.
    #[error("code {} ({short_id}) could not be read back from what was drawn", .index + 1)]
    NotDecoded {
        /// Index of the code, from 0.
        index: u64,
        /// Its short id.
        short_id: String,
    },
    /// Two files of the order would have one name.
    #[error("two files would have the name {name}: put {{index}} into naming")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Nobody waits for the chunk any more.
    #[error("the drawing was stopped")]
    Stopped,
    /// The stored chunks do not make up the order.
    #[error("the parts of the order do not fit together: {0}")]
    Chunk(String),
    /// A reader or writer failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
