//! Wake-up calls between control replicas by LISTEN and NOTIFY. Any of them may be lost.
//!
//! The channel is named after the schema, so two fleets in one database do not wake each other.

use sqlx::postgres::PgListener;

use super::{Conn, Db, Raw, StoreError, Tx};

const PG_CHANNEL: &str = "SELECT 'waymark_' || md5(current_schema())";
const PG_CALL: &str = "SELECT pg_notify('waymark_' || md5(current_schema()), $1)";

/// Listens for calls of the replicas of a fleet; holds a database connection.
pub struct Calls(PgListener);

impl Calls {
    /// Listens from now on.
    ///
    /// # Errors
    /// The database is not Postgres.
    pub async fn listen(db: &Db) -> Result<Self, StoreError> {
        let Db::Pg(pool) = db else { return Err(one_process()) };
        let channel: String = match db.read().await?.raw() {
            Raw::Pg(c) => sqlx::query_scalar(PG_CHANNEL).fetch_one(c).await?,
            Raw::Sqlite(_) => return Err(one_process()),
        };
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(&channel).await?;
        Ok(Self(listener))
    }

    /// The next call; `None` after a gap in which some may have been missed. Not cancel-safe.
    ///
    /// # Errors
    /// The database is away.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.0.try_recv().await?.map(|call| call.payload().to_owned()))
    }
}

/// Calls every replica that listens when the transaction commits, this one too.
///
/// All that call in one database commit one after the other: so no change of a link does.
///
/// # Errors
/// The database is not Postgres.
pub async fn call(tx: &mut Tx, text: &str) -> Result<(), StoreError> {
    let conn: &mut Conn = tx;
    match conn.raw() {
        Raw::Pg(c) => sqlx::query(PG_CALL).bind(text).execute(c).await?,
        Raw::Sqlite(_) => return Err(one_process()),
    };
    Ok(())
}

fn one_process() -> StoreError {
    StoreError::Row("a SQLite database serves one process".to_owned())
}
