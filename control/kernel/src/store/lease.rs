//! Leases by the clock of the database, so that no clock of a replica decides.

/// Now in milliseconds, on Postgres.
#[macro_export]
macro_rules! pg_now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub use pg_now;
/// Now in milliseconds, on SQLite.
#[macro_export]
macro_rules! sqlite_now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}
pub use sqlite_now;
