//! Retention looks which texts of deleted scans others still have, while somebody deletes those, too.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use kernel::store::Db;
use shared::time::UnixMillis;
use tests::{db::Engine, wait::until};

use super::scan_retention::{DAY_MS, number, prepared};

/// On SQLite retention cannot be seen to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_loses_its_last_scan_meanwhile_stays_loose() -> Result<()> {
    let (made, other, others) = prepared(Engine::Postgres).await?;
    let scans = &made.app.actions.scans.pool;
    let Db::Pg(pool) = &made.app.core.db else { bail!("not Postgres") };
    let count = async |condition: &str| {
        let sql = format!(
            "SELECT COUNT(*) FROM scan_texts_202512 x JOIN scan_accounts a ON a.id = x.account \
             WHERE a.account_id = '{other}' AND {condition}"
        );
        number(&made.app.core.db, &sql).await
    };
    // Others have its browser, its referer and its language.
    ensure!(scans.delete(other, &others[..1]).await? == 1);
    let (loose, tight) = (count("x.is_loose").await?, count("NOT x.is_loose").await?);
    ensure!(loose > 0, "nothing is loose");

    // Somebody deletes them all, and has not committed.
    let mut deletion = pool.begin().await?;
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *deletion).await?;
    for sql in [
        "DELETE FROM scans_202512 t USING scan_accounts a WHERE a.id = t.account AND a.account_id = $1",
        "SELECT x.id FROM scan_texts_202512 x JOIN scan_accounts a ON a.id = x.account \
         WHERE a.account_id = $1 AND x.is_loose ORDER BY x.id FOR UPDATE OF x",
    ] {
        sqlx::query(sql).bind(other.as_str()).execute(&mut *deletion).await?;
    }
    let kept = BTreeMap::new();
    let day = UnixMillis(made.app.core.clock.now().0 + 2 * DAY_MS);
    let commit = async {
        const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        until("retention waits for the deletion", async || {
            Ok(sqlx::query_scalar::<_, i64>(WAITING).bind(pid).fetch_one(pool).await? > 0)
        })
        .await?;
        anyhow::Ok(deletion.commit().await?)
    };
    let (retained, committed) = tokio::join!(scans.delete_before(&kept, day), commit);
    committed?;
    ensure!(retained? == 0);
    ensure!(count("NOT x.is_loose").await? == tight, "a text without a scan is taken for one in use");

    // The next day they go.
    scans.delete_before(&kept, day).await?;
    ensure!(count("x.is_loose").await? == 0);
    Ok(())
}
