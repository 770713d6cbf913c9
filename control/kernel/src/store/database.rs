//! Queries on the database as a whole.

use super::{Conn, Raw, StoreError};

const PG_SIZE: &str = "SELECT pg_database_size(current_database())";
const SQLITE_SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";

/// Bytes that the database takes on its disk; on SQLite without the write-ahead log.
pub async fn size(conn: &mut Conn) -> Result<i64, StoreError> {
    let (bytes,): (i64,) = match conn.raw() {
        Raw::Pg(c) => sqlx::query_as(PG_SIZE).fetch_one(c).await?,
        Raw::Sqlite(c) => sqlx::query_as(SQLITE_SIZE).fetch_one(c).await?,
    };
    Ok(bytes)
}
