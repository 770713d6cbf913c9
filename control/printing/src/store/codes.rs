//! The codes of orders that are under way, some in each row.

use kernel::{
    execute, fetch_all,
    store::{Conn, StoreError, Tx},
};

use crate::domain::code::Code;

const INSERT: &str = "INSERT INTO print_codes (print_order, first, count, codes) VALUES ($1, $2, $3, $4)";
// By `IN_ROW` the rows before are not read: of a large order they are thousands, for each chunk.
const LIST: &str = "SELECT first, codes FROM print_codes WHERE print_order = $1 AND first < $3 \
    AND first > $2 - 500 AND first + count > $2 ORDER BY first";
const CLEAR: &str = "DELETE FROM print_codes WHERE print_order = $1 AND first IN \
    (SELECT first FROM print_codes WHERE print_order = $1 ORDER BY first LIMIT $2)";

/// Most codes of a row; `LIST` has it, too.
const IN_ROW: usize = 500;

/// Notes codes of an order, whose first one is at a place of it.
pub async fn insert(tx: &mut Tx, order: i64, first: u64, codes: &[Code]) -> Result<(), StoreError> {
    let mut at = first.cast_signed();
    for row in codes.chunks(IN_ROW) {
        let count = i64::try_from(row.len()).unwrap_or(i64::MAX);
        let text = serde_json::to_string(row).map_err(|error| StoreError::Row(error.to_string()))?;
        execute!(&mut **tx, INSERT, order, at, count, text)?;
        at += count;
    }
    Ok(())
}

/// The codes of an order from a place up to another one, which does not belong to them.
///
/// # Errors
/// Not all are noted.
pub async fn list(conn: &mut Conn, order: i64, from: u64, to: u64) -> Result<Vec<Code>, StoreError> {
    let rows: Vec<(i64, String)> = fetch_all!(conn, LIST, order, from.cast_signed(), to.cast_signed())?;
    let mut found = Vec::new();
    for (first, text) in rows {
        let codes: Vec<Code> =
            serde_json::from_str(&text).map_err(|error| StoreError::Row(format!("codes: {error}")))?;
        let placed = (first.cast_unsigned()..).zip(codes);
        found.extend(placed.filter(|(at, _)| (from..to).contains(at)).map(|(_, code)| code));
    }
    if found.len() as u64 != to.saturating_sub(from) {
        return Err(StoreError::Row(format!("{} of the codes {from} to {to} of a print order", found.len())));
    }
    Ok(found)
}

/// Removes up to `limit` rows of an order; returns how many.
pub async fn clear(tx: &mut Tx, order: i64, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, CLEAR, order, i64::from(limit))?)
}
