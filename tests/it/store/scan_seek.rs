//! A search for scans from a network looks at months in which something happened in its time.

use anyhow::{Context, Result, ensure};
use scan_store::Sought;
use shared::time::UnixMillis;
use tests::db::Engine;

use super::scan_retention::prepared;

super::super::on_both_engines!(a_search_by_network_passes_over_months_of_other_times);

/// The end of 2025, in milliseconds since 1970.
const NEW_YEAR: i64 = 1_767_225_600_000;

async fn a_search_by_network_passes_over_months_of_other_times(engine: Engine) -> Result<()> {
    let (made, other, _) = prepared(engine).await?;
    let scans = &made.app.actions.scans.pool;
    let seek = async |from: i64, to: i64| {
        let (first, last) = ("192.0.2.0".parse()?, "192.0.2.255".parse()?);
        let sought = Sought::Network { first, last, from: UnixMillis(from), to: UnixMillis(to) };
        anyhow::Ok(scans.seek(other, &sought, None).await?)
    };
    let all = seek(0, i64::MAX).await?;
    ensure!(all.end.context("an end")?.month == 202_512 && !all.found.is_empty(), "{all:?}");
    let later = seek(NEW_YEAR, i64::MAX).await?;
    ensure!(later.end.context("an end")?.month == 202_601 && !later.found.is_empty(), "{later:?}");
    let nothing = seek(1, 2).await?;
    ensure!(nothing.end.is_none() && nothing.found.is_empty(), "no month is walked: {nothing:?}");
    Ok(())
}
