//! Delivers the queued messages of one webhook and records the results.
//!
//! A message that was sent but not recorded, because a process died, is sent again with the same id: delivery is at
//! least once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::{
        webhook::{Status, Webhook, secret, sign},
        webhook_tries::{Retry, Verdict, retry},
    },
    egress::{Answer, Post},
    error::ServiceError,
    service::EventState,
    store::{
        Ctx, documents,
        webhook_messages::{self as messages, Due, Tried},
        webhooks::{self, Claimed},
    },
};

/// Duration of a claim: longer than a batch, whose requests run concurrently and take at most 15 s each. For ordered
/// webhooks: the last request starts within two seconds.
pub const LEASE: Duration = Duration::from_secs(20);

/// Concurrent requests to one receiver.
const AT_ONCE: u32 = 16;

/// How long a worker stays with one webhook while others may wait.
const TURN: Duration = Duration::from_secs(2);

/// The status by which a receiver unsubscribes for ever.
const GONE: u16 = 410;

/// Works on a claimed webhook for its time slice or until `stop`, then releases it.
///
/// # Errors
/// The database failed; the claim expires then.
pub async fn work(
    state: &EventState,
    mut claimed: Claimed,
    stop: &CancellationToken,
) -> Result<(), ServiceError> {
    let begun = Instant::now();
    let is_over = || begun.elapsed() >= TURN || stop.is_cancelled();
    while !is_over() {
        match round(state, &mut claimed, &is_over).await? {
            Next::Batch => {}
            Next::Release => break,
            Next::Released => return Ok(()),
        }
    }
    let mut tx = state.db.begin(&Ctx::default()).await?;
    webhooks::release(&mut tx, &claimed).await?;
    Ok(tx.commit().await?)
}

/// What follows a batch.
enum Next {
    /// Another one at once.
    Batch,
    /// The webhook is to be released.
    Release,
    /// Nothing: the results were written with the release, in one transaction.
    Released,
}

/// One batch. `is_over`: no other one follows.
async fn round(
    state: &EventState,
    claimed: &mut Claimed,
    is_over: &(impl Fn() -> bool + Sync),
) -> Result<Next, ServiceError> {
    let mut conn = state.db.read().await?;
    let found: Option<Webhook> = documents::find(&mut conn, claimed.account, claimed.id).await?;
    let Some(webhook) = found.filter(|webhook| webhook.status == Status::Active) else {
        return Ok(Next::Release);
    };
    let ordered = webhook.details.ordered;
    let room = claimed.health.room(AT_ONCE);
    let (due, waits) = messages::list_due(&mut conn, claimed.seq, ordered, room).await?;
    drop(conn);
    if due.is_empty() {
        if let Some(pause) = waits {
            // Those behind it are due, but not before it is.
            let verdict = Verdict { health: claimed.health, pause, is_dead: false };
            let mut tx = state.db.begin(&Ctx::default()).await?;
            webhooks::settle(&mut tx, claimed, Duration::ZERO, &verdict, None).await?;
            tx.commit().await?;
            return Ok(Next::Released);
        }
        return Ok(Next::Release);
    }
    let answers = if ordered {
        send_in_order(state, &webhook, &due).await
    } else {
        join_all(due.iter().map(|due| send(state, &webhook, &due.message_id, &due.body))).await
    };
    let mut tried = Vec::with_capacity(answers.len());
    for (due, answer) in due.iter().zip(&answers) {
        tried.push(outcome(state, due, answer)?);
    }
    let was_taken = tried.iter().any(|one| one.status == "delivered");
    let mut verdict = claimed.health.after(was_taken, claimed.now_ms);
    if let Some(waits) = tried.iter().find(|one| one.status == "pending").filter(|_| ordered) {
        // The others wait for it, so the webhook does.
        verdict.pause = verdict.pause.max(waits.pause);
    }
    let is_gone = answers.iter().flatten().any(|answer| answer.status == GONE);
    let reason = match (is_gone, verdict.is_dead) {
        (true, _) => Some("The receiver answered 410 (Gone)."),
        (false, true) => Some("The receiver took nothing for 24 hours."),
        (false, false) => None,
    };
    let is_last = is_over() || !verdict.pause.is_zero();
    let lease = if is_last { Duration::ZERO } else { LEASE };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let Some((is_active, now_ms)) = webhooks::settle(&mut tx, claimed, lease, &verdict, reason).await? else {
        return Ok(Next::Release);
    };
    messages::settle(&mut tx, &tried).await?;
    tx.commit().await?;
    count(state, &tried, &due, reason.is_some());
    if let Some(reason) = reason {
        tracing::warn!(webhook = %webhook.id, account = %claimed.account, reason, "a webhook is paused");
    }
    (claimed.health, claimed.now_ms) = (verdict.health, now_ms);
    Ok(match (is_last, is_active) {
        (true, _) => Next::Released,
        (false, true) => Next::Batch,
        (false, false) => Next::Release,
    })
}

/// Sends one after the other, and stops at the first that is not taken.
async fn send_in_order(state: &EventState, webhook: &Webhook, due: &[Due]) -> Vec<Result<Answer, String>> {
    let begun = Instant::now();
    let mut answers = Vec::new();
    for due in due {
        let answer = send(state, webhook, &due.message_id, &due.body).await;
        let is_taken = answer.as_ref().is_ok_and(is_taken);
        answers.push(answer);
        // The whole batch must end before the lease does.
        if !is_taken || begun.elapsed() > TURN {
            break;
        }
    }
    answers
}

/// Sends one message, signed with every secret in use.
pub(super) async fn send(
    state: &EventState,
    webhook: &Webhook,
    message: &str,
    body: &str,
) -> Result<Answer, String> {
    let now = state.clock.now();
    let secrets: Vec<[u8; 32]> = webhook
        .signing(now)
        .iter()
        .map(|version| secret(&state.secrets.webhook, webhook.id, version.version))
        .collect();
    let timestamp_s = now.0.div_euclid(1_000);
    let signature = sign(&secrets, message, timestamp_s, body.as_bytes());
    let timestamp = timestamp_s.to_string();
    let headers =
        [("webhook-id", message), ("webhook-timestamp", &timestamp), ("webhook-signature", &signature)];
    state.egress.post(Post { url: &webhook.details.url, headers: &headers, body }).await
}

const fn is_taken(answer: &Answer) -> bool {
    matches!(answer.status, 200..300)
}

fn outcome(state: &EventState, due: &Due, answer: &Result<Answer, String>) -> Result<Tried, ServiceError> {
    let (http_status, excerpt, error) = match answer {
        Ok(answer) => (Some(answer.status), Some(answer.excerpt.clone()), None),
        Err(error) => (None, None, Some(error.clone())),
    };
    let base =
        Tried { seq: due.seq, status: "delivered", pause: Duration::ZERO, http_status, excerpt, error };
    if answer.as_ref().is_ok_and(is_taken) {
        return Ok(base);
    }
    let chance = f64::from(state.random16()?[0]) / 255.0;
    Ok(match retry(due.attempts + 1, due.age_ms, chance) {
        Retry::After(pause) => Tried { status: "pending", pause, ..base },
        Retry::Dead => Tried { status: "dead", ..base },
    })
}

fn count(state: &EventState, tried: &[Tried], due: &[Due], is_paused: bool) {
    let metrics = &state.webhooks.metrics;
    for (one, due) in tried.iter().zip(due) {
        match one.status {
            "delivered" => {
                metrics.delivered.inc();
                let delay = state.clock.now().0.saturating_sub(due.created_at.0).max(0);
                metrics.delay_seconds.observe(delay as f64 / 1_000.0);
            }
            "dead" => {
                metrics.dead.inc();
            }
            _ => {
                metrics.failed.inc();
            }
        }
    }
    metrics.paused.inc_by(u64::from(is_paused));
}
