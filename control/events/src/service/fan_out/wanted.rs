//! Who wants which events of the log, and what goes into their queues.

use crate::{
    domain::{
        event::{Cause, Event, Position, Recorded},
        grant::Limit,
        reaction::Reaction,
        webhook::Webhook,
    },
    messages::Message,
    service::EventState,
    store::{
        StoreError, Tx,
        followers::{self, Follower, Following},
        reaction_tasks::New as Task,
        webhook_messages::New,
    },
};

/// A row of the log to be queued.
pub(super) struct Waiting {
    /// Behind it.
    pub(super) at: Position,
    /// The first item that is not queued.
    pub(super) from: usize,
    /// It.
    pub(super) recorded: Recorded,
}

/// What goes into the queues.
#[derive(Default)]
pub(super) struct Shares {
    pub(super) messages: Vec<New>,
    pub(super) tasks: Vec<Task>,
    /// How many these are, and events that nobody got.
    pub(super) work: usize,
    /// What counters get once this is committed.
    pub(super) counts: Counts,
}

/// What counters get when a transaction is committed: one that is done again counts once.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) deferred: u64,
    pub(super) resumed: u64,
    pub(super) lost: u64,
    /// Events that were not reacted to, as a loop would come of it.
    pub(super) cut: u64,
    /// Messages and tasks that found their queue full.
    pub(super) dropped: (u64, u64),
}

impl Counts {
    pub(super) fn add_to(&self, state: &EventState) {
        let (webhooks, reactions) = (&state.webhooks.metrics, &state.reactions.metrics);
        webhooks.deferred.inc_by(self.deferred);
        webhooks.resumed.inc_by(self.resumed);
        webhooks.deferred_lost.inc_by(self.lost);
        webhooks.dropped.inc_by(self.dropped.0);
        reactions.dropped.inc_by(self.dropped.1);
        reactions.cut.inc_by(self.cut);
    }
}

/// The subscribers of some accounts.
pub(super) struct Subscribers {
    receivers: Vec<Following<Webhook>>,
    reacting: Vec<Following<Reaction>>,
}

impl Subscribers {
    pub(super) async fn of(tx: &mut Tx, accounts: &[String]) -> Result<Self, StoreError> {
        Ok(Self {
            receivers: followers::list(tx, accounts).await?,
            reacting: followers::list(tx, accounts).await?,
        })
    }

    /// How many may want a row.
    pub(super) fn count(&self, Waiting { at, recorded, .. }: &Waiting) -> usize {
        let receivers = self.receivers.iter().filter(|one| may_want(*at, recorded, one));
        let reacting = self.reacting.iter().filter(|one| may_want(*at, recorded, one));
        (if recorded.quiet.notifications { 0 } else { receivers.count() })
            + (if recorded.quiet.reactions { 0 } else { reacting.count() })
    }

    pub(super) fn may_want(&self, row: &Waiting) -> bool {
        self.count(row) > 0
    }
}

/// Subscribers that may want the events of a row.
pub(super) struct Wanted<'a> {
    recorded: &'a Recorded,
    receivers: Vec<&'a Following<Webhook>>,
    reacting: Vec<(&'a Following<Reaction>, Cause)>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(
        at: Position,
        recorded: &'a Recorded,
        subscribers: &'a Subscribers,
        counts: &mut Counts,
    ) -> Self {
        let receivers = subscribers.receivers.iter().filter(|one| may_want(at, recorded, one));
        let reacting = subscribers.reacting.iter().filter(|one| may_want(at, recorded, one));
        let caused = reacting.filter(|_| !recorded.quiet.reactions).filter_map(|one| {
            let cause = recorded.cause.by(one.id);
            if cause.is_none() {
                counts.cut += 1;
            }
            Some((one, cause?))
        });
        Self {
            recorded,
            receivers: receivers.filter(|_| !recorded.quiet.notifications).collect(),
            reacting: caused.collect(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.reacting.is_empty()
    }

    pub(super) fn share(&self, message: &Message, shares: &mut Shares) {
        let wanting: Vec<_> = self.receivers.iter().filter(|receiver| wants(message, receiver)).collect();
        let reacting: Vec<_> =
            self.reacting.iter().filter(|(reaction, _)| wants(message, reaction)).collect();
        shares.work += (wanting.len() + reacting.len()).max(1);
        if wanting.is_empty() && reacting.is_empty() {
            return;
        }
        let event = message.body();
        let body = event.to_string();
        shares.messages.extend(wanting.into_iter().map(|receiver| New {
            webhook: receiver.seq,
            account: self.recorded.account,
            message_id: message.id.clone(),
            kind: message.kind.clone(),
            body: body.clone(),
        }));
        shares.tasks.extend(reacting.into_iter().map(|(reaction, cause)| Task {
            account: self.recorded.account,
            reaction: reaction.seq,
            event: message.id.clone(),
            cause: cause.clone(),
            deed: reaction.details.effect.about(reaction.id, &reaction.name, &message.facts, &event),
        }));
    }
}

const fn family(event: &Event) -> &'static str {
    match event {
        Event::Properties { .. } => "properties",
        Event::Action(_) | Event::Actions { .. } => "action",
        Event::Redirections { .. } => "redirection",
        Event::Job { .. } => "job",
        Event::PrintOrder { .. } => "printOrder",
        Event::ShortDomain(..) | Event::Certificate(..) => "shortDomain",
        Event::LinkChange { .. } => "linkChange",
        Event::Report(..) => "case",
    }
}

/// Whether a subscriber may want the events of a row, decided before it is expanded.
fn may_want<F: Follower>(at: Position, recorded: &Recorded, by: &Following<F>) -> bool {
    by.account == recorded.account && at > by.since && by.types.admit_family(family(&recorded.event))
}

fn wants<F: Follower>(message: &Message, by: &Following<F>) -> bool {
    let limit = match by.project.as_deref().map(str::parse) {
        None => Limit::Account,
        Some(Ok(project)) => Limit::Projects(vec![project]),
        // An invalid project id matches no events.
        Some(Err(_)) => return false,
    };
    by.types.admit(&message.kind)
        && message.is_admitted(&limit)
        && by.condition.as_ref().is_none_or(|condition| condition.holds(&message.facts))
}
