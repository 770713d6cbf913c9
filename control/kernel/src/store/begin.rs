//! Begins transactions of Postgres, for who may be given up meanwhile.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use sqlx::{PgPool, Postgres, SqlStr, Transaction};
use tokio::runtime::Handle;

type Begun = Result<Transaction<'static, Postgres>, sqlx::Error>;

/// A transaction that began by a statement, or by `BEGIN`.
pub(super) async fn begin(pool: &PgPool, statement: Option<SqlStr>) -> Begun {
    let conn = pool.acquire().await?;
    Begin(Some(Transaction::<Postgres>::begin(conn, statement))).await
}

/// Goes on in a task of its own when it is dropped half-way, and rolls back then. The connection would else go back to the pool
/// in a transaction that sqlx does not know, and nobody could read on it after an error.
struct Begin(Option<Pin<Box<dyn Future<Output = Begun> + Send>>>);

impl Future for Begin {
    type Output = Begun;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Begun> {
        let Some(running) = &mut self.0 else { return Poll::Pending };
        let polled = running.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Begin {
    fn drop(&mut self) {
        if let Some(running) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(running);
        }
    }
}
