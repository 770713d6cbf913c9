//! The index of a chunk: where in its body each file or page is.

use serde::{Deserialize, Serialize};

use crate::{ChunkReceipt, PrintError};

/// The form of an index; another one is refused, so that a job does not join parts of two releases.
const FORM: u32 = 1;

/// The index of a chunk, stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    form: u32,
    /// The first code.
    pub(crate) first: u64,
    pub(crate) receipt: ChunkReceipt,
    pub(crate) entries: Vec<Entry>,
}

/// A file, a page or a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// A file of a ZIP.
    #[serde(rename = "f")]
    File {
        #[serde(rename = "n")]
        name: String,
        /// Whether it is packed by deflate.
        #[serde(rename = "d")]
        deflated: bool,
        #[serde(rename = "c")]
        crc: u32,
        /// Bytes in the body.
        #[serde(rename = "l")]
        length: u32,
        /// Bytes of the file.
        #[serde(rename = "s")]
        size: u32,
    },
    /// The content of a page, packed by zlib.
    #[serde(rename = "p")]
    Page {
        #[serde(rename = "l")]
        length: u64,
        /// Nanometres.
        #[serde(rename = "w")]
        width: u64,
        #[serde(rename = "h")]
        height: u64,
    },
    /// A label of ZPL.
    #[serde(rename = "z")]
    Label {
        #[serde(rename = "l")]
        length: u64,
    },
}

impl Index {
    pub(crate) fn new(first: u64, receipt: ChunkReceipt, entries: Vec<Entry>) -> Self {
        Self { form: FORM, first, receipt, entries }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, PrintError> {
        serde_json::to_vec(self).map_err(|error| PrintError::Chunk(error.to_string()))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, PrintError> {
        let index: Self = serde_json::from_slice(bytes)
            .map_err(|error| PrintError::Chunk(format!("an index cannot be read: {error}")))?;
        match index.form {
            FORM => Ok(index),
            form => {
                Err(PrintError::Chunk(format!("an index has the form {form}, which another release wrote")))
            }
        }
    }
}
