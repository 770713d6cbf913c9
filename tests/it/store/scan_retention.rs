//! Scans whose time is over are removed: by account, and as whole months.

use anyhow::{Result, ensure};
use control::worker::scan_retention::{self, Removed};
use kernel::{
    domain::listing::ListRequest,
    store::{Ctx, Db},
};
use shared::{id::AccountId, time::UnixMillis};
use tenants::{domain::tenant::AccountChange, service::tenants as service};
use tests::db::{Engine, Location, TestApp, random16};

use super::scan_lists::{SCANS, copy, insert};

super::super::on_both_engines!(old_scans_are_removed_by_account_and_month);

const DAY_MS: i64 = 86_400_000;

async fn old_scans_are_removed_by_account_and_month(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let other = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    tenants::store::accounts::insert(&mut tx, other, "Other", true, 1).await?;
    tx.commit().await?;
    // On 2025-12-31 and 2026-01-01, three at each time.
    for _ in 0..10 {
        insert(&made, made.account).await?;
    }
    let others = insert(&made, other).await?;
    copy(&made).await?;
    delete_actions(&made).await?;
    let scans = &made.app.actions.scans.alone;
    let shown = |made: &TestApp| {
        let metrics = control::http::Admin::new(made.app.clone(), None, None).metrics_text();
        move |name: &str| -> i64 {
            let line =
                metrics.lines().find_map(|line| line.strip_prefix(&format!("waymark_control_{name} ")));
            line.and_then(|value| value.parse().ok()).unwrap_or(-1)
        }
    };
    let keep = async |days: u16| -> Result<()> {
        let change = AccountChange { scan_retention_days: Some(days), ..AccountChange::default() };
        let account =
            service::update_account(&made.app.core, &made.caller(), made.account.as_str(), change).await?;
        ensure!(account.scan_retention_days == days);
        Ok(())
    };
    // 2026-01-02T12:00:00Z
    let now = made.app.core.clock.now().0;
    made.clock.advance(1_767_355_200_000 - now);
    ensure!(scan_retention::run(&made.app).await? == Removed::default(), "400 days are not over");
    let (size, metric) = (scans.describe().await?, shown(&made));
    ensure!(size.months.len() == 2 && size.oldest == Some(UnixMillis(1_767_139_200_000)), "{size:?}");
    ensure!(metric("scans_size_bytes") == size.bytes && size.bytes > 0);
    ensure!(metric("scans_oldest_timestamp_seconds") == 1_767_139_200);
    ensure!(metric("scans_next_drop_timestamp_seconds") == 1_767_225_600 + 400 * 86_400);

    // Most of them are older than a day; the other account keeps its own.
    keep(1).await?;
    let removed = scan_retention::run(&made.app).await?;
    ensure!(removed.months == 0 && removed.scans > 0 && removed.scans < 10 * SCANS as u64, "{removed:?}");
    let limit = kernel::domain::grant::Limit::Account;
    let request = ListRequest::default();
    let oldest = scans.find_first_since(made.account, UnixMillis(0)).await?;
    ensure!(oldest >= Some(UnixMillis(1_767_355_200_000 - DAY_MS)), "{oldest:?}");
    ensure!(scans.find_many(other, &others).await?.len() == others.len());

    // The first month is over for everybody, and the second one later.
    made.clock.advance(400 * DAY_MS);
    let removed = scan_retention::run(&made.app).await?;
    ensure!(removed.months == 1 && removed.scans > 0, "{removed:?}");
    made.clock.advance(40 * DAY_MS);
    scan_retention::run(&made.app).await?;
    let left = scans.describe().await?;
    ensure!(left.months.is_empty() && left.oldest.is_none(), "{left:?}");
    ensure!(left.bytes < size.bytes / 2, "{} of {} bytes", left.bytes, size.bytes);
    ensure!(shown(&made)("scans_next_drop_timestamp_seconds") == 0);
    for account in [made.account, other] {
        let selection =
            kernel::store::listing::Selection { account, limit: &limit, request: &request, within: &[] };
        ensure!(scans.page(&selection).await?.is_empty());
    }
    // New scans come into months that are made again.
    insert(&made, made.account).await?;
    copy(&made).await?;
    ensure!(scans.describe().await?.months.len() == 2);
    if let Location::Sqlite(path) = &made.db.location {
        use std::os::unix::fs::PermissionsExt as _;
        let file = scan_store::store::file_of(path);
        ensure!(std::fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600);
    }
    Ok(())
}

async fn delete_actions(made: &TestApp) -> Result<()> {
    match &made.app.core.db {
        Db::Pg(pool) => sqlx::query("DELETE FROM actions").execute(pool).await.map(|_| ())?,
        Db::Sqlite { write, .. } => {
            sqlx::query("DELETE FROM actions").execute(write).await.map(|_| ())?;
        }
    }
    Ok(())
}
