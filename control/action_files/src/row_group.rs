//! Rows that are collected by column until they are written as a row group.

use std::collections::HashMap;

use bytes::Bytes;
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::writer::{SerializedColumnWriter, SerializedFileWriter},
};
use serde_json::{Map, Value, json};

use super::{
    columns::{COLUMNS, Column, GROUPS, Kind, LATITUDE, LOCATION, LONGITUDE, MORE},
    writer::Error,
};

/// The rows of a group.
#[derive(Debug)]
pub(crate) struct RowGroup {
    columns: Vec<Values>,
    /// How many there are.
    pub(crate) rows: usize,
    /// Bytes of their values and levels.
    pub(crate) size_bytes: usize,
}

impl RowGroup {
    pub(crate) fn new() -> Self {
        let columns = COLUMNS.iter().map(|column| Values::new(column.kind)).collect();
        Self { columns, rows: 0, size_bytes: 0 }
    }

    /// Adds the document of an action.
    pub(crate) fn push(&mut self, mut document: Map<String, Value>) -> Result<(), Error> {
        let mut groups: HashMap<&str, Map<String, Value>> = HashMap::new();
        for name in GROUPS {
            if let Some(Value::Object(_)) = document.get(name)
                && let Some(Value::Object(members)) = document.remove(name)
            {
                groups.insert(name, members);
            }
        }
        if let Some(location) = groups.get_mut(LOCATION) {
            remove_repeated_position(location);
        }
        // A required member that is missing would leave columns of different lengths behind.
        let lacks = |column: &&Column| {
            column.is_required && !document.get(column.name).is_some_and(|value| fits(column.kind, value))
        };
        if let Some(column) = COLUMNS.iter().find(lacks) {
            return Err(Error::Lacks(column.name));
        }
        for (column, values) in COLUMNS.iter().zip(&mut self.columns) {
            let members = match column.group {
                Some(group) => groups.get_mut(group),
                None => Some(&mut document),
            };
            let is_there = members.is_some();
            let value = members.and_then(|members| take(members, column));
            let value = match column.kind {
                Kind::Json => value.map(|value| Value::String(value.to_string())),
                Kind::Text | Kind::Millis | Kind::Number | Kind::Boolean | Kind::Texts => value,
            };
            let levels = Levels {
                required: column.is_required,
                absent: i16::from(column.group.is_some() && is_there),
                present: 1 + i16::from(column.group.is_some()),
            };
            self.size_bytes += values.push(value, levels);
        }
        self.rows += 1;
        Ok(())
    }

    /// Writes the rows, and is empty afterwards.
    pub(crate) fn write(&mut self, file: &mut SerializedFileWriter<Vec<u8>>) -> Result<(), ParquetError> {
        let rows = std::mem::replace(self, Self::new());
        let mut group = file.next_row_group()?;
        for values in rows.columns {
            let missing = || ParquetError::General("the schema has fewer columns".to_owned());
            let mut column = group.next_column()?.ok_or_else(missing)?;
            values.write(&mut column)?;
            column.close()?;
        }
        group.close().map(drop)
    }
}

/// Takes the position out where it says what latitude and longitude say.
fn remove_repeated_position(location: &mut Map<String, Value>) {
    if let (Some(latitude), Some(longitude)) = (location.get(LATITUDE), location.get(LONGITUDE))
        && location.get("position") == Some(&json!({"type": "Point", "coordinates": [longitude, latitude]}))
    {
        location.remove("position");
    }
}

/// The value of a column, if it is there and of its kind; what stays is for the last column, `more`.
fn take(members: &mut Map<String, Value>, column: &Column) -> Option<Value> {
    if column.name == MORE {
        return (!members.is_empty()).then(|| Value::Object(std::mem::take(members)));
    }
    members.get(column.name).filter(|value| fits(column.kind, value))?;
    members.remove(column.name)
}

fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Text => value.is_string(),
        Kind::Millis => value.is_i64(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        Kind::Json => true,
    }
}

/// Definition levels of a value.
#[derive(Clone, Copy)]
struct Levels {
    /// Whether it is always there: then it has no level.
    required: bool,
    /// Without a value: whether the group around it is there.
    absent: i16,
    /// With a value.
    present: i16,
}

/// The values of a column with their levels.
#[derive(Debug)]
struct Values {
    data: Data,
    definition: Vec<i16>,
    /// Of lists only: 0 begins a row, 1 goes on with its list.
    repetition: Option<Vec<i16>>,
}

#[derive(Debug)]
enum Data {
    /// All texts in a row, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Booleans(Vec<bool>),
}

impl Values {
    fn new(kind: Kind) -> Self {
        let data = match kind {
            Kind::Text | Kind::Texts | Kind::Json => Data::Texts(Vec::new(), Vec::new()),
            Kind::Millis => Data::Integers(Vec::new()),
            Kind::Number => Data::Numbers(Vec::new()),
            Kind::Boolean => Data::Booleans(Vec::new()),
        };
        let repetition = (kind == Kind::Texts).then(Vec::new);
        Self { data, definition: Vec::new(), repetition }
    }

    /// Adds the value of a row, which fits; gives the bytes that it takes.
    fn push(&mut self, value: Option<Value>, levels: Levels) -> usize {
        if let Some(repetition) = &mut self.repetition {
            // No list, an empty one, or one with items.
            let items = match value {
                Some(Value::Array(items)) => Some(items),
                _ => None,
            };
            let (first, count) = items
                .as_ref()
                .map_or((levels.absent, 1), |items| (1 + i16::from(!items.is_empty()), items.len().max(1)));
            self.definition.push(first);
            repetition.push(0);
            self.definition.extend(std::iter::repeat_n(2, count - 1));
            repetition.extend(std::iter::repeat_n(1, count - 1));
            let bytes: usize = items.iter().flatten().map(|item| self.data.push(item)).sum();
            return bytes + 4 * count;
        }
        if !levels.required {
            self.definition.push(if value.is_some() { levels.present } else { levels.absent });
        }
        value.as_ref().map_or(0, |value| self.data.push(value)) + 2
    }

    fn write(self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let definition = Some(self.definition.as_slice()).filter(|levels| !levels.is_empty());
        let repetition = self.repetition.as_deref();
        match self.data {
            Data::Texts(bytes, ends) => {
                let bytes = Bytes::from(bytes);
                let begins = std::iter::once(0).chain(ends.iter().copied());
                let texts: Vec<ByteArray> =
                    begins.zip(&ends).map(|(begin, end)| bytes.slice(begin..*end).into()).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, definition, repetition)?
            }
            Data::Integers(all) => column.typed::<Int64Type>().write_batch(&all, definition, repetition)?,
            Data::Numbers(all) => column.typed::<DoubleType>().write_batch(&all, definition, repetition)?,
            Data::Booleans(all) => column.typed::<BoolType>().write_batch(&all, definition, repetition)?,
        };
        Ok(())
    }
}

impl Data {
    /// Adds a value; gives the bytes that it takes.
    fn push(&mut self, value: &Value) -> usize {
        match self {
            Self::Texts(bytes, ends) => {
                let before = bytes.len();
                bytes.extend_from_slice(value.as_str().unwrap_or_default().as_bytes());
                ends.push(bytes.len());
                bytes.len() - before + size_of::<usize>()
            }
            Self::Integers(all) => {
                all.push(value.as_i64().unwrap_or_default());
                size_of::<i64>()
            }
            Self::Numbers(all) => {
                all.push(value.as_f64().unwrap_or_default());
                size_of::<f64>()
            }
            Self::Booleans(all) => {
                all.push(value.as_bool().unwrap_or_default());
                1
            }
        }
    }
}
