//! The account of this service at the authority, when it is not accepted any more.

use std::fs;

use anyhow::{Result, ensure};
use certificates::{
    domain::certificate::{Fault, FaultKind},
    service::order::Ended,
};
use kernel::store::Db;
use tests::{db::Engine, pebble::Pebble};

use super::{super::Setting, Front, HOST};

const DUE: &str = "UPDATE domain_certificates SET next_try = 0";
const NO_PAUSE: &str = "UPDATE certificate_authorities SET paused_until = 0";

impl Setting {
    /// What is stored of the account.
    async fn account(&self) -> Result<String> {
        let sql = "SELECT credentials FROM certificate_authorities";
        Ok(match &self.api.made.app.core.db {
            Db::Pg(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
            Db::Sqlite { write, .. } => sqlx::query_scalar(sql).fetch_one(write).await?,
        })
    }

    /// Lets the certificate be ordered once more, whatever waits; gives how that failed.
    async fn order_again(&self) -> Result<Option<FaultKind>> {
        self.run(DUE).await?;
        self.run(NO_PAUSE).await?;
        let ended = self.order().await?;
        ensure!(ended.len() == 1, "{ended:?}");
        Ok(match &ended[0] {
            Ended::Failed(Fault { kind, .. }) => Some(*kind),
            Ended::Issued | Ended::Lost => None,
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_was_deactivated_is_replaced_once_a_day() -> Result<()> {
    let pebble = Pebble::start().await?;
    let front = Front::start(&pebble).await?;
    let all = Setting::at(Engine::Sqlite, &front.directory(), &pebble).await?;
    all.prove(HOST).await?;
    ensure!(all.order().await? == [Ended::Issued]);
    let first = all.account().await?;
    ensure!(!first.contains(' '), "{first}");

    // An order that may not be made is no fault of the account.
    fs::write(&front.refuse, "")?;
    ensure!(all.order_again().await? == Some(FaultKind::Refused));
    ensure!(all.account().await? == first);

    fs::write(&front.deactivated, "")?;
    ensure!(all.order_again().await? == Some(FaultKind::NoAccount));
    ensure!(all.account().await? == "0");
    ensure!(all.order().await?.is_empty(), "the authority is left alone");
    let accept = || -> Result<()> {
        fs::remove_file(&front.refuse)?;
        Ok(fs::remove_file(&front.deactivated)?)
    };
    accept()?;
    ensure!(all.order_again().await?.is_none(), "by another account");
    let second = all.account().await?;
    ensure!(second.contains(' ') && !second.contains(&first), "{second}");

    fs::write(&front.refuse, "")?;
    fs::write(&front.deactivated, "")?;
    ensure!(all.order_again().await? == Some(FaultKind::NoAccount));
    accept()?;
    let lost = all.account().await?;
    ensure!(second.split_once(' ').map(|(time, _)| time) == Some(lost.as_str()), "{lost}");
    all.run(DUE).await?;
    all.run(NO_PAUSE).await?;
    ensure!(all.order().await?.is_empty() && all.account().await? == lost, "no other one on this day");
    all.run("UPDATE certificate_authorities SET credentials = CAST(CAST(credentials AS BIGINT) - 86400000 AS TEXT)")
        .await?;
    ensure!(all.order_again().await?.is_none(), "a day later");
    ensure!(all.account().await?.contains(' '));
    Ok(())
}
