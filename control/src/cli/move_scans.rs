//! `control move-scans`: moves scans out of the database into ClickHouse, before that is used.

use std::process::ExitCode;

use kernel::store::Db;
use scan_store::store::move_scans;

use super::{failed, say};
use crate::{
    config::{ConfigError, Database, Place},
    failure::Failure,
    serve,
};

/// Arguments of `control move-scans`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
}

/// Moves them; a run that was broken off is simply started again.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let server = args.place.scans()?;
    let server = server.ok_or_else(|| ConfigError::new("WAYMARK_SCANS_URL", "it is required"))?;
    let db = match args.place.database()? {
        Database::Postgres(url) => serve::connect(&url).await?,
        Database::Sqlite(path) => Db::open_sqlite(&path).await.map_err(failed)?,
    };
    serve::check_schema(&db).await?;
    let says = |account, scans| say(&format!("account {account}: {scans} scans"));
    move_scans(&db, server, says).await.map_err(failed)?;
    db.close().await;
    say("All scans are in ClickHouse. Start Waymark with WAYMARK_SCANS_URL.");
    Ok(ExitCode::SUCCESS)
}
