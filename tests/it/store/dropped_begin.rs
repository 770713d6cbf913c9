//! A request that is given up while its transaction begins.

use anyhow::{Result, ensure};
use futures_util::future::poll_immediate;
use kernel::{on_db, store::Ctx};
use tests::db::{Engine, TestDb};

super::super::on_both_engines!(a_connection_is_sound_after_a_begin_that_was_given_up);

/// The connection of Postgres came back in a transaction that nobody knew of: after an error nothing could be read on it.
async fn a_connection_is_sound_after_a_begin_that_was_given_up(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let db = made.db.with_own_pool(1);
    drop(db.read().await?);
    for polls in 1..=8 {
        {
            let ctx = Ctx::default();
            let mut begin = Box::pin(db.begin(&ctx));
            for _ in 0..polls {
                if poll_immediate(&mut begin).await.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let mut conn = db.read().await?;
        let failed = on_db!(&mut conn, |c| sqlx::query("SELECT * FROM absent").execute(c).await.map(|_| ()));
        ensure!(failed.is_err(), "there is no such table");
        let read: i64 =
            on_db!(&mut conn, |c| sqlx::query_scalar("SELECT CAST(7 AS BIGINT)").fetch_one(c).await)?;
        ensure!(read == 7, "{read}");
        drop(conn);
        let tx = db.begin(&Ctx::default()).await?;
        tx.commit().await?;
    }
    Ok(())
}
