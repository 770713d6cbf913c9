//! An edge on a full disk starts, redirects, and counts scans.

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use tests::{campaign::disk::SmallDisk, fleet::Fleet};

use super::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_starts_on_a_full_disk() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let mut edge = fleet.add_edge("e1")?;
    ensure!(edge.stop().await?.success());
    let disk = match SmallDisk::mount(&edge.data_dir()?) {
        Ok(disk) => disk,
        Err(error) => {
            // As in the campaign, which says so too: a machine may refuse to mount.
            eprintln!("not run: {error:#}");
            return Ok(());
        }
    };
    edge.start_again()?;
    let wait = "?wait=edges&timeout=20s";
    let (status, body) = fleet.create_redirection(0, &product, Some("ONE"), wait).await?;
    ensure!(status == StatusCode::CREATED && body["acked"] == 1, "{status} {body}");
    ensure!(edge.scan(&fleet.http, "ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    ensure!(edge.stop().await?.success());
    let file = edge.data_dir()?.join("boot");
    let number = || std::fs::read_to_string(&file);
    let before = number()?;

    disk.fill_up()?;
    edge.start_again()?;
    ensure!(number()? != before, "each start has a number of its own");
    for _ in 0..5 {
        ensure!(edge.scan(&fleet.http, "ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    }
    edge.until_live(&fleet.http, 0).await?;
    disk.make_room()?;
    // All six, one by one or in a sum: the last of them come at the stop.
    ensure!(edge.stop().await?.success());
    edge.start_again()?;
    until("every hit is counted", async || {
        Ok(fleet.call(0, Method::GET, "/redirections/ONE", None).await?.1["hits"] == 6)
    })
    .await
}
