//! Writes a file, a row group at a time.

use std::sync::Arc;

use parquet::{
    basic::Compression,
    errors::ParquetError,
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::types::ColumnPath,
};
use serde_json::Value;

use super::{columns::schema, row_group::RowGroup};

/// Bytes of values after which a row group is written: of scans some 15,000. It is in memory once as values and, while it is
/// written, once more as pages.
const GROUP_BYTES: usize = 8 * 1_024 * 1_024;

/// Most rows of a group, for rows with few values.
const GROUP_ROWS: usize = 50_000;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document is no object.
    #[error("the document of an action is no object")]
    NoObject,
    /// A document lacks a member that each action has.
    #[error("the document of an action lacks {0}")]
    Lacks(&'static str),
    /// The columns do not fit the schema.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// Writes the file of some actions, in the order in which they come.
#[derive(Debug)]
pub struct Writer {
    file: SerializedFileWriter<Vec<u8>>,
    rows: RowGroup,
}

impl Writer {
    /// A file without rows.
    ///
    /// # Errors
    /// The schema is wrong.
    pub fn new() -> Result<Self, Error> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("waymark ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            // Each id is another one.
            .set_column_dictionary_enabled(ColumnPath::from("id"), false)
            .build();
        let file = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
        Ok(Self { file, rows: RowGroup::new() })
    }

    /// Adds the document of an action.
    ///
    /// # Errors
    /// It is no document of an action; nothing is added.
    pub fn push(&mut self, document: Value) -> Result<(), Error> {
        let Value::Object(document) = document else { return Err(Error::NoObject) };
        self.rows.push(document)
    }

    /// Writes the rows if they fill a group, and gives the bytes that came since the last call; mostly there are none. It
    /// encodes a whole group: call it where that may take some 100 ms.
    ///
    /// # Errors
    /// The columns do not fit the schema.
    pub fn write_full(&mut self) -> Result<Vec<u8>, Error> {
        if self.rows.size_bytes < GROUP_BYTES && self.rows.rows < GROUP_ROWS {
            return Ok(Vec::new());
        }
        self.rows.write(&mut self.file)?;
        self.file.flush().map_err(ParquetError::from)?;
        Ok(std::mem::take(self.file.inner_mut()))
    }

    /// Writes the rows that are left and the footer; gives the last bytes of the file.
    ///
    /// # Errors
    /// The columns do not fit the schema.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        if self.rows.rows > 0 {
            self.rows.write(&mut self.file)?;
        }
        Ok(self.file.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::{Row, RowAccessor},
    };
    use serde_json::json;

    use super::*;

    fn file(documents: &[Value]) -> Vec<u8> {
        let (mut writer, mut bytes) = (Writer::new().unwrap(), Vec::new());
        for document in documents {
            writer.push(document.clone()).unwrap();
            bytes.extend(writer.write_full().unwrap());
        }
        bytes.extend(writer.finish().unwrap());
        bytes
    }

    fn rows(bytes: Vec<u8>) -> Vec<Row> {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    fn action(id: usize) -> Value {
        json!({"id": format!("{id:024}"), "createdAt": id, "timestamp": -1, "type": "scans"})
    }

    #[test]
    fn what_has_no_column_is_json() {
        let mut document = action(7);
        for (name, value) in [
            ("tags", json!(["ä", ""])),
            ("thng", json!(7)),
            ("reactions", json!([])),
            (
                "location",
                json!({"latitude": 46.9, "longitude": 7, "position": {"type": "Point", "coordinates": [7, 46.9]}}),
            ),
            ("context", json!({"city": "Bern", "language": null})),
            ("customFields", json!({"bot": true, "shortId": 5, "more": "x"})),
            ("own", json!(null)),
        ] {
            document[name] = value;
        }
        let rows = rows(file(&[document, action(8)]));
        let text = rows[0].to_string();
        for part in [
            "tags: [\"ä\", \"\"]",
            "thng: null",
            "reactions: \"[]\"",
            "location: {latitude: 46.9, longitude: 7.0, place: null, more: null}",
            "city: \"Bern\"",
            r#"more: "{"language":null}""#,
            "bot: true",
            r#""more":"x""#,
            r#""shortId":5"#,
            r#""thng":7"#,
            r#""own":null"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(rows[1].get_string(0).unwrap(), &format!("{:024}", 8));
        assert_eq!(rows[1].get_timestamp_millis(1).unwrap(), 8);
        assert!(rows[1].to_string().contains("context: null"), "{}", rows[1]);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn many_rows_are_several_groups_in_order() {
        let documents: Vec<Value> = (0..GROUP_ROWS + 10).map(action).collect();
        let bytes = file(&documents);
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let counts: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(counts, [GROUP_ROWS as i64, 10]);
        let ids = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_string(0).unwrap().clone());
        assert!(ids.eq((0..documents.len()).map(|id| format!("{id:024}"))));
    }

    #[test]
    fn long_rows_are_written_early() {
        let mut document = action(1);
        document["customFields"] = json!({"text": "x".repeat(GROUP_BYTES)});
        let mut writer = Writer::new().unwrap();
        writer.push(document).unwrap();
        assert!(!writer.write_full().unwrap().is_empty());
        assert!(writer.write_full().unwrap().is_empty(), "nothing is kept of what was written");
    }

    #[test]
    fn no_part_of_a_file_is_a_file() {
        let whole = file(&[action(1), action(2)]);
        assert_eq!(rows(whole.clone()).len(), 2);
        for cut in 0..whole.len() {
            assert!(SerializedFileReader::new(Bytes::copy_from_slice(&whole[..cut])).is_err(), "{cut}");
        }
        assert_eq!(rows(file(&[])).len(), 0);
    }

    #[test]
    fn a_document_without_an_id_adds_nothing() {
        let mut writer = Writer::new().unwrap();
        for (document, fault) in [
            (json!([]), "no object"),
            (json!({}), "lacks id"),
            (json!({"id": "x", "createdAt": 1.5, "timestamp": 1, "type": "scans"}), "lacks createdAt"),
        ] {
            let error = writer.push(document).unwrap_err().to_string();
            assert!(error.contains(fault), "{error}");
        }
        assert_eq!(rows(writer.finish().unwrap()).len(), 0);
    }
}
