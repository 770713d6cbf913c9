//! The clock of the database, by which certificates are ordered. By the clock of one control that is wrong, all of them would be
//! ordered, again and again, or none.

use kernel::store::{
    Conn, StoreError, fetch_one,
    lease::{Timed, timed},
};
use shared::time::UnixMillis;

macro_rules! read_now {
    ($now:expr) => {
        concat!("SELECT ", $now)
    };
}

const NOW: Timed = timed!(read_now);

/// The time of the database.
pub async fn now(conn: &mut Conn) -> Result<UnixMillis, StoreError> {
    let sql = NOW.of(conn);
    let (now,): (i64,) = fetch_one!(conn, sql)?;
    Ok(UnixMillis(now))
}
