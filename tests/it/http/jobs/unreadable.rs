//! A job that this release cannot read, as a newer one may leave it.

use anyhow::Result;
use serde_json::json;
use tests::db::Engine;

use super::{super::Api, check, list, submit, thng, work};
use crate::store::schema::run;

// The rules are the same for both engines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_cannot_be_read_is_in_nobodys_way() {
    unreadable().await.unwrap();
}

async fn unreadable() -> Result<()> {
    let api = Api::new(Engine::Sqlite).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    run(&api.made.db.location, &["UPDATE jobs SET status = 'LATER'".to_owned()]).await?;
    let plain = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    let _work = work(&api);
    check(&api, &plain, "COMPLETED", 1, 0).await?;
    Ok(())
}
