//! Static stability: held links are served while everything behind the edges is down.

use std::time::Duration;

use anyhow::{Result, ensure};
use tests::campaign::stability::{self, Plan};

/// Redis, every control and Postgres are killed under load; the figures are `tests/campaign/run --stability`'s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_keeps_serving_when_its_backends_are_killed() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let logs = tempfile::tempdir()?;
    let plan = Plan {
        ids: 200,
        probe: Duration::from_secs(1),
        part: Duration::from_secs(2),
        connections: 4,
        at_most: 600.0,
    };
    let report = stability::run(plan, logs.path()).await?;
    ensure!(report.is_right(), "{report}");
    Ok(())
}
