//! Actions as a Parquet file.
//!
//! A row is the document of an action as the API shows it. Members that many actions have are columns with a type; what
//! else a document has is JSON in a column `more`, so that nothing is lost. The one exception is `location.position`, which
//! is left out where it repeats latitude and longitude. Pure: the caller takes the bytes and writes them.
//!
//! A writer holds one row group at most, and some 4 KB for each that it has written. A file without its end has no footer,
//! which no reader takes for a file.

mod columns;
mod row_group;
mod writer;

pub use self::writer::{Error, Writer};
