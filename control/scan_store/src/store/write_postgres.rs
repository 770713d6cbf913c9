//! Rows for Postgres, by `COPY` in its binary form: it parses no statement and no text.

use kernel::store::StoreError;
use sqlx::PgConnection;

use super::append::Numbered;
use crate::domain::{columns::Kind, month::Month};

/// What a copy begins with: its signature, no flags, no extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What it ends with, in place of a count of columns.
const TRAILER: [u8; 2] = [0xff, 0xff];

const COLUMNS: i16 = 16;

/// Writes rows into the table of a month.
pub(super) async fn write(
    conn: &mut PgConnection,
    month: Month,
    rows: &[Numbered<'_>],
) -> Result<(), StoreError> {
    let sql = format!(
        "COPY scans_{} (created_at, seq, timestamp, account, shape, agent, place, referer, language, rule, key, thng, \
         ip, short_id, entry, redirect_url) FROM STDIN WITH (FORMAT binary)",
        month.number()
    );
    let mut bytes = HEADER.to_vec();
    rows.iter().for_each(|row| push_row(&mut bytes, row));
    bytes.extend_from_slice(&TRAILER);
    let mut copy = conn.copy_in_raw(&sql).await?;
    copy.send(bytes).await?;
    copy.finish().await?;
    Ok(())
}

fn push_row(bytes: &mut Vec<u8>, row: &Numbered<'_>) {
    let (scan, columns) = (row.scan, &row.scan.columns);
    bytes.extend_from_slice(&COLUMNS.to_be_bytes());
    for number in [row.created_at.0, row.seq, scan.timestamp.0] {
        push(bytes, Some(&number.to_be_bytes()));
    }
    push(bytes, Some(&row.account.to_be_bytes()));
    for kind in [Kind::Shape, Kind::Agent, Kind::Place, Kind::Referer, Kind::Language, Kind::Rule] {
        push(bytes, row.text(kind).map(i32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice));
    }
    push(bytes, Some(&scan.key));
    for value in [&scan.thng, &columns.ip] {
        push(bytes, value.as_deref());
    }
    for text in [&columns.short_id, &columns.entry, &columns.redirect_url] {
        push(bytes, text.as_ref().map(String::as_bytes));
    }
}

/// A value behind its length, which is -1 where there is none.
fn push(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value.unwrap_or_default());
}
