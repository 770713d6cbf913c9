//! The workers of webhooks: one shares the log out, many send. As many processes as wanted do both.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    domain::event::Position,
    error::ServiceError,
    service::{
        App,
        webhooks::{
            deliver::{self, LEASE},
            share_out,
        },
    },
    store::{
        event_log,
        webhooks::{self, Claimed, Fit},
    },
};

/// Webhooks that one process sends to at once: each waits for its receiver mostly, and one that hangs takes one
/// place for 15 s, then none for longer and longer.
const LANES: usize = 256;

/// Of these, places of webhooks whose receivers failed last: however many hang, the others have the rest.
const SICK_LANES: usize = LANES / 2;

/// Webhooks that are claimed at once.
const CLAIM: usize = 32;

/// Time between two looks for what is due, where nobody tells of it.
const LOOK: Duration = Duration::from_millis(250);

/// Time between two notes of the place where there is no webhook at all.
const IDLE: Duration = Duration::from_secs(10);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// How long what is on its way may take at a stop; what takes longer is sent again by whoever comes next.
const LAST: Duration = Duration::from_secs(2);

/// Works until `stop`.
pub async fn run(app: Arc<App>, stop: CancellationToken) {
    if let Err(error) = webhooks::free_all(&app.db).await {
        tracing::warn!(%error, "webhooks that were held before wait for their leases to run out");
    }
    // What is on its way ends with this.
    let mut lanes = JoinSet::new();
    let work = async { tokio::join!(share(&app), send(&app, &mut lanes, &stop)) };
    stop.run_until_cancelled(work).await;
    let rest = async { while lanes.join_next().await.is_some() {} };
    if timeout(LAST, rest).await.is_err() {
        tracing::debug!("webhooks that were on their way wait for their leases to run out");
    }
}

async fn share(app: &App) {
    let mut settled = app.feed.settled();
    let mut noted: Option<Instant> = None;
    loop {
        let head = *settled.borrow_and_update();
        match share_once(app, head, &mut noted).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "events were not shared out and are tried again");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
        // The feed lives as long as the process; the floor is for what another process left.
        let _ = timeout(LOOK, settled.changed()).await;
    }
}

async fn share_once(app: &App, head: Position, noted: &mut Option<Instant>) -> Result<bool, ServiceError> {
    let mut conn = app.db.read().await?;
    let has_any = webhooks::has_any(&mut conn).await?;
    let place = event_log::find_place(&mut conn, share_out::PLACE).await?;
    drop(conn);
    if place.is_some_and(|place| place >= head) {
        return Ok(false);
    }
    if has_any {
        return share_out::step(app).await;
    }
    // Whoever is made later gets what happens later: nothing is lost if the place stays behind a little.
    if noted.is_none_or(|at| at.elapsed() >= IDLE) && share_out::pass(app, head).await? {
        *noted = Some(Instant::now());
    }
    Ok(false)
}

async fn send(app: &Arc<App>, lanes: &mut JoinSet<()>, stop: &CancellationToken) {
    let sick = Arc::new(Semaphore::new(SICK_LANES));
    loop {
        while lanes.try_join_next().is_some() {}
        if lanes.len() >= LANES {
            lanes.join_next().await;
            continue;
        }
        // Fewer are claimed than there are places for sick ones, or only those that are well.
        let room = (LANES - lanes.len()).min(CLAIM);
        let (room, fit) = match sick.available_permits() {
            0 => (room, Fit::Healthy),
            places => (room.min(places), Fit::Any),
        };
        let claimed = match claim(app, room, fit).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "webhooks cannot be looked for");
                tokio::time::sleep(FAILURE_PAUSE).await;
                continue;
            }
        };
        if claimed.is_empty() {
            let _ = timeout(LOOK, app.webhooks.wake.notified()).await;
            continue;
        }
        for claimed in claimed {
            let place =
                (claimed.health.failures > 0).then(|| sick.clone().try_acquire_owned().ok()).flatten();
            lanes.spawn(lane(app.clone(), claimed, place, stop.clone()));
        }
    }
}

async fn lane(app: Arc<App>, claimed: Claimed, place: Option<OwnedSemaphorePermit>, stop: CancellationToken) {
    if let Err(error) = deliver::work(&app, claimed, &stop).await {
        tracing::warn!(%error, webhook = %claimed.id, "a webhook waits for its lease to run out");
    }
    drop(place);
}

async fn claim(app: &App, room: usize, fit: Fit) -> Result<Vec<Claimed>, ServiceError> {
    let mut conn = app.db.read().await?;
    let is_due = webhooks::is_due(&mut conn, fit).await?;
    drop(conn);
    if !is_due {
        return Ok(Vec::new());
    }
    let limit = u32::try_from(room).unwrap_or(1);
    let mut tx = app.db.begin().await?;
    let claimed = webhooks::claim(&mut tx, limit, LEASE, fit).await?;
    tx.commit().await?;
    Ok(claimed)
}
