//! Sends what is in the outbox, account by account. Any number of processes may run it.

use std::{sync::Arc, time::Duration};

use kernel::store::{Ctx, Db, StoreError};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    outbox::Outbox,
    smtp::SendError,
    store::mails::{self, Claimed},
};

/// Mails that one process sends concurrently, each over a connection of its own.
const MAX_CONCURRENT: usize = 8;
/// Mails per claim.
const CLAIM_SIZE: usize = 4;
/// How long a claim holds: longer than a try may take.
const LEASE: Duration = Duration::from_secs(180);
/// After this time a mail that cannot be sent is given up.
const GIVE_UP: Duration = Duration::from_secs(24 * 60 * 60);
/// The pauses between tries: from the first to the longest, each twice the one before.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60 * 60));
/// Poll interval without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// How long tries may take at shutdown; one that takes longer is sent again by the next process.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Works until `stop`.
///
/// Where mail is not sent, what a process with other settings left is given up in the end.
pub async fn run(outbox: Arc<Outbox>, db: Db, stop: CancellationToken) {
    // Tries in flight end when this is dropped.
    let mut sending = JoinSet::new();
    stop.run_until_cancelled(work(&outbox, &db, &mut sending)).await;
    let rest = async { while sending.join_next().await.is_some() {} };
    if timeout(SHUTDOWN_GRACE, rest).await.is_err() {
        tracing::debug!("mails that were on their way wait for their leases to run out");
    }
}

async fn work(outbox: &Arc<Outbox>, db: &Db, sending: &mut JoinSet<()>) {
    loop {
        while sending.try_join_next().is_some() {}
        if sending.len() >= MAX_CONCURRENT {
            sending.join_next().await;
            continue;
        }
        let claimed = match claim(outbox, db, (MAX_CONCURRENT - sending.len()).min(CLAIM_SIZE)).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "mails cannot be claimed");
                tokio::time::sleep(FAILURE_PAUSE).await;
                continue;
            }
        };
        if claimed.is_empty() {
            let _ = timeout(POLL_INTERVAL, outbox.wake.notified()).await;
        }
        for claimed in claimed {
            let (outbox, db) = (outbox.clone(), db.clone());
            sending.spawn(async move {
                if let Err(error) = attempt(&outbox, &db, &claimed).await {
                    tracing::warn!(%error, mail = claimed.id, "a mail waits for its lease to run out");
                }
            });
        }
    }
}

async fn claim(outbox: &Outbox, db: &Db, room: usize) -> Result<Vec<Claimed>, StoreError> {
    let least_age = if outbox.is_on() { Duration::ZERO } else { GIVE_UP };
    if !mails::is_due(&mut db.read().await?, least_age).await? {
        return Ok(Vec::new());
    }
    let limit = u32::try_from(room).unwrap_or(1);
    let mut tx = db.begin(&Ctx::default()).await?;
    let claimed = mails::claim(&mut tx, limit, LEASE, least_age).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn attempt(outbox: &Outbox, db: &Db, claimed: &Claimed) -> Result<(), StoreError> {
    let failed = |text: &str| Err(SendError::Failed(text.to_owned()));
    let mail = outbox.open(&claimed.id, &claimed.sealed);
    let has_expired = mail.as_ref().is_some_and(|mail| mail.has_expired(claimed.age));
    let sent = match (&outbox.smtp, mail) {
        (Some(_), Some(_)) if has_expired => failed("its code has expired"),
        (Some(smtp), Some(mail)) => smtp.send(&claimed.id, &mail).await,
        (Some(_), None) => failed("the mail does not decrypt"),
        (None, _) => failed("this server sends no mail"),
    };
    let mut tx = db.begin(&Ctx::default()).await?;
    match &sent {
        Ok(()) => {
            outbox.metrics.sent.inc();
            mails::delete(&mut tx, claimed).await?;
        }
        Err(error) => {
            outbox.metrics.failed.inc();
            let is_refused = matches!(error, SendError::Refused(_));
            if is_refused || has_expired || claimed.age >= GIVE_UP {
                let count = if is_refused { &outbox.metrics.refused } else { &outbox.metrics.given_up };
                count.inc();
                tracing::warn!(%error, mail = claimed.id, tries = claimed.tries, "a mail was given up");
                mails::delete(&mut tx, claimed).await?;
            } else {
                tracing::info!(%error, mail = claimed.id, tries = claimed.tries, "a mail is sent again later");
                mails::postpone(&mut tx, claimed, jittered(outbox, pause(claimed.tries))).await?;
            }
        }
    }
    tx.commit().await
}

/// The pause after so many tries.
fn pause(tries: i64) -> Duration {
    let doublings = u32::try_from(tries.clamp(1, 16) - 1).unwrap_or_default();
    RETRY_PAUSES.0.saturating_mul(1 << doublings).min(RETRY_PAUSES.1)
}

/// Up to a quarter longer, so that mails do not come all at once to a server that is up again.
fn jittered(outbox: &Outbox, pause: Duration) -> Duration {
    let mut random = [0];
    // Without random bits there is no jitter.
    let _ = outbox.random.fill(&mut random);
    pause + pause.mul_f64(f64::from(random[0]) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        for (tries, seconds) in [(0, 5), (1, 5), (2, 10), (3, 20), (8, 640), (11, 3_600), (1_000_000, 3_600)]
        {
            assert_eq!(pause(tries), Duration::from_secs(seconds), "{tries}");
        }
    }
}
