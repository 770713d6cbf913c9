//! Webhooks: managed by operators, queued from the event log, delivered by workers.

pub mod deliver;
pub mod queue;

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use serde_json::json;
use shared::{
    id::{AccountId, WebhookId},
    time::UnixMillis,
};
use tokio::sync::Notify;
use tracing::instrument;

use super::{
    EventState,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    followers::{self, STEP},
    named,
    remaining_capacity::RemainingCapacity,
};
use crate::{
    domain::{
        access::Actor,
        common::Stamp,
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject, Verb},
        webhook::{
            MAX_OVERLAP_MS, OVERLAP_MS, SecretVersion, Status, Webhook, WebhookChange, WebhookDetails,
            secret, shown,
        },
    },
    egress::Answer,
    error::{EventsError, ServiceError},
    metrics::WebhookMetrics,
    store::{
        Ctx, Db, Tx, documents,
        listing::Selection,
        webhook_messages::{self as messages, Delivery, Range},
        webhooks as table,
    },
};

/// State that webhook workers of a process share with requests.
#[derive(Debug)]
pub struct Webhooks {
    /// Notified when something may be due.
    pub wake: Arc<Notify>,
    /// Their counters.
    pub metrics: WebhookMetrics,
    pub(super) remaining: RemainingCapacity<i64>,
    /// The account whose events were last queued after they had been put off.
    pub(super) turn: Mutex<String>,
    /// Whether the last transaction of the fan-out left out events that were put off.
    pub(super) waited: AtomicBool,
}

impl Default for Webhooks {
    fn default() -> Self {
        let (wake, metrics, remaining) =
            (Arc::default(), WebhookMetrics::default(), RemainingCapacity::default());
        Self { wake, metrics, remaining, turn: Mutex::default(), waited: AtomicBool::default() }
    }
}

/// Creates a webhook, in a project if `project` names one; it gets what happens from now on.
///
/// # Errors
/// The key lacks the permission, a member or the project is wrong, or there are too many.
#[instrument(skip_all)]
pub async fn create(
    state: &EventState,
    caller: &Caller,
    change: WebhookChange,
    project: Option<&str>,
) -> Result<Webhook, ServiceError> {
    let grant = require(caller, Verb::Create, Subject::Webhooks)?;
    // What it is sent tells exact places, and what it reacts to may be the city of a person.
    let _ = require(caller, Verb::Read, Subject::PersonalData)?;
    let now = state.clock.now();
    let (_place, mut tx) = state.begin_write(caller).await?;
    let project = followers::project_of_new(&mut tx, caller, &grant, project).await?;
    let new = Webhook {
        id: WebhookId::new(now.0, state.random16()?),
        stamp: Stamp::new(now),
        name: String::new(),
        project,
        status: Status::Active,
        reason: None,
        dropped: 0,
        details: WebhookDetails::default(),
    };
    let mut new = new.rotate(now, now).apply(change, now);
    new.stamp = Stamp::new(now);
    let webhook = followers::add(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(webhook)
}

/// Merges the members given into a webhook. One that is activated starts over with its receiver and its waiting
/// messages.
///
/// # Errors
/// It does not exist, or the database failed: then messages may keep waiting.
#[instrument(skip_all)]
pub async fn update(
    state: &EventState,
    caller: &Caller,
    id: &str,
    change: WebhookChange,
) -> Result<Webhook, ServiceError> {
    bulk::update_one(state, caller, id, change).await
}

impl Bulk<EventState> for Webhook {
    type Change = WebhookChange;

    async fn update_in(
        state: &EventState,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: WebhookChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let _ = require(actor, Verb::Read, Subject::PersonalData)?;
        let before: Self = named::find_locked(tx, actor, grant, reference).await?;
        let (was_disabled, is_resumed) =
            (before.status == Status::Disabled, change.status == Some(Status::Active));
        let webhook = before.apply(change, state.clock.now());
        followers::save(tx, actor.account, was_disabled, &webhook).await?;
        let mut after = AfterCommit::default();
        if is_resumed {
            let (db, seq) = (state.db.clone(), webhook.stamp.seq);
            table::resume(tx, seq).await?;
            let task = async move { renew_messages(&db, seq).await };
            after = after.then(format!("renew the messages of webhook {seq}"), Box::new(|| Box::pin(task)));
        }
        let wake = state.webhooks.wake.clone();
        let task = async move {
            wake.notify_one();
            Ok(())
        };
        Ok((webhook, after.then("wake webhooks", Box::new(|| Box::pin(task)))))
    }

    async fn delete_in(
        state: &EventState,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        followers::delete_in::<Self>(state, tx, actor, grant, reference).await
    }
}

/// Lets the webhooks of an account begin anew: their receivers count as healthy, and what waits is due now, with a full day
/// of retries. For an account that is about to be put into service again.
///
/// # Errors
/// The database failed; some have begun anew.
#[instrument(skip_all)]
pub async fn begin_anew(db: &Db, account: AccountId) -> Result<(), ServiceError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let webhooks = table::resume_all(&mut tx, account).await?;
    tx.commit().await?;
    for webhook in webhooks {
        renew_messages(db, webhook).await?;
    }
    Ok(())
}

/// Makes the waiting messages of an activated webhook due again, in steps.
async fn renew_messages(db: &Db, webhook: i64) -> Result<(), ServiceError> {
    let mut after = Some(0);
    while let Some(behind) = after {
        let mut tx = db.begin(&Ctx::default()).await?;
        after = messages::renew(&mut tx, webhook, behind, STEP).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// A secret with its value.
#[derive(Debug, Clone)]
pub struct Secret {
    /// Which one it is.
    pub version: SecretVersion,
    /// Its value, as receivers take it.
    pub value: String,
}

/// The secrets that sign now, newest first.
///
/// # Errors
/// The webhook does not exist.
#[instrument(skip_all)]
pub async fn list_secrets(state: &EventState, actor: &Actor, id: &str) -> Result<Vec<Secret>, ServiceError> {
    // A caller that may change a webhook may see its signing secret.
    let grant = require(actor, Verb::Update, Subject::Webhooks)?;
    let webhook: Webhook = named::find(&mut state.db.read().await?, actor, &grant, id).await?;
    Ok(secrets(state, &webhook))
}

/// Puts a new secret into use; those before it sign beside it for `overlap_ms`.
///
/// # Errors
/// The webhook does not exist or the time is out of range.
#[instrument(skip_all)]
pub async fn rotate(
    state: &EventState,
    caller: &Caller,
    id: &str,
    overlap_ms: Option<i64>,
) -> Result<Vec<Secret>, ServiceError> {
    let grant = require(caller, Verb::Update, Subject::Webhooks)?;
    let overlap = overlap_ms.unwrap_or(OVERLAP_MS);
    if !(0..=MAX_OVERLAP_MS).contains(&overlap) {
        return Err(EventsError::Overlap.into());
    }
    let now = state.clock.now();
    let (_place, mut tx) = state.begin_write(caller).await?;
    let webhook: Webhook = named::find_locked(&mut tx, caller, &grant, id).await?;
    let webhook = webhook.rotate(now, UnixMillis(now.0.saturating_add(overlap)));
    documents::update(&mut tx, caller.account, &webhook).await?;
    tx.commit().await?;
    Ok(secrets(state, &webhook))
}

fn secrets(state: &EventState, webhook: &Webhook) -> Vec<Secret> {
    let value = |version: SecretVersion| Secret {
        version,
        value: shown(&secret(&state.secrets.webhook, webhook.id, version.version)),
    };
    webhook.signing(state.clock.now()).into_iter().map(value).collect()
}

/// Sends a test event at once, whatever the webhook's state; returns the receiver's response, or why there is none.
///
/// # Errors
/// The webhook does not exist, or too many test events are in flight.
#[instrument(skip_all)]
pub async fn ping(
    state: &EventState,
    actor: &Actor,
    id: &str,
) -> Result<Result<Answer, String>, ServiceError> {
    let grant = require(actor, Verb::Update, Subject::Webhooks)?;
    let webhook: Webhook = named::find(&mut state.db.read().await?, actor, &grant, id).await?;
    let _place = state.capacity.ping(actor)?;
    let now = state.clock.now();
    let message = format!("ping_{}", WebhookId::new(now.0, state.random16()?));
    let body = json!({"type": "ping", "timestamp": now.0, "data": {"webhook": webhook.id}}).to_string();
    Ok(deliver::send(state, &webhook, &message, &body).await)
}

/// Lists the waiting and sent messages of a webhook.
///
/// # Errors
/// The webhook does not exist.
#[instrument(skip_all)]
pub async fn deliveries(
    state: &EventState,
    actor: &Actor,
    id: &str,
    request: &ListRequest,
) -> Result<Page<Delivery>, ServiceError> {
    let grant = require(actor, Verb::Read, Subject::Webhooks)?;
    // They hold what was sent.
    let _ = require(actor, Verb::Read, Subject::PersonalData)?;
    let mut conn = state.db.read().await?;
    let webhook: Webhook = named::find(&mut conn, actor, &grant, id).await?;
    let within = messages::within(&webhook.id);
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(messages::list(&mut conn, &selection).await?)
}

/// Sends one message again, be it delivered or given up.
///
/// # Errors
/// The webhook or message does not exist.
#[instrument(skip_all)]
pub async fn send_again(
    state: &EventState,
    caller: &Caller,
    id: &str,
    message: &str,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Subject::Webhooks)?;
    let (_place, mut tx) = state.begin_write(caller).await?;
    let webhook: Webhook = named::find_locked(&mut tx, caller, &grant, id).await?;
    if message.contains('\0') || !messages::send_again(&mut tx, webhook.stamp.seq, message).await? {
        return Err(ServiceError::not_found("delivery", shorten(message)));
    }
    tx.note(caller.account, ("delivery", message), || (None, Some(json!({"webhook": webhook.id}))));
    tx.commit().await?;
    state.webhooks.wake.notify_one();
    Ok(())
}

/// Sends every message of a range again that is not under way; returns how many.
///
/// # Errors
/// The webhook does not exist, or the database failed: some of them are sent again then.
#[instrument(skip_all)]
pub async fn send_range_again(
    state: &EventState,
    caller: &Caller,
    id: &str,
    range: &Range,
) -> Result<u64, ServiceError> {
    let grant = require(caller, Verb::Update, Subject::Webhooks)?;
    let webhook: Webhook = named::find(&mut state.db.read().await?, caller, &grant, id).await?;
    let (mut all, mut after) = (0, 0);
    loop {
        let (_place, mut tx) = state.begin_write(caller).await?;
        let (count, last) =
            messages::send_range_again(&mut tx, webhook.stamp.seq, range, after, STEP).await?;
        let id = webhook.id.to_string();
        tx.note(caller.account, ("delivery", &id), || (None, Some(json!({"webhook": id, "count": count}))));
        tx.commit().await?;
        (all, after) = (all + count, last);
        state.webhooks.wake.notify_one();
        if count < u64::from(STEP) {
            return Ok(all);
        }
    }
}
