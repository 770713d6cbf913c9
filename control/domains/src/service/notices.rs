//! Tells an account what became of a short domain: an event, and mails when its proof is gone, each week again.

use kernel::{
    domain::event::Event,
    error::ServiceError,
    store::{Tx, events},
};
use mail::Mail;
use shared::time::UnixMillis;
use tenants::{domain::operator::OperatorKind, store::operators};

use super::DomainState;
use crate::domain::claim::{Claim, LOST_DAYS, State};

/// Most mails about one domain.
const MAX_MAILS: usize = 20;

/// Tells that a domain is proven, or no longer, or lost to another account, in the transaction in which that is stored; returns
/// whether mails wait.
pub(super) async fn tell(
    state: &DomainState,
    tx: &mut Tx,
    claim: &Claim,
    is_verified: bool,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let event = Event::ShortDomain(claim.host.to_string(), is_verified);
    events::record(tx, now, &[(claim.account, event)]).await?;
    if is_verified { Ok(false) } else { write_mails(state, tx, claim).await }
}

/// Tells whoever manages the account by mail that a domain is no longer proven, or lost; returns whether mails wait.
pub(super) async fn write_mails(
    state: &DomainState,
    tx: &mut Tx,
    claim: &Claim,
) -> Result<bool, ServiceError> {
    if !state.outbox.is_on() {
        return Ok(false);
    }
    let (subject, text) = lost(claim);
    let mut mails = 0;
    for operator in operators::list(tx, claim.account).await? {
        let manages = operator.roles.iter().any(|role| role == "owner" || role == "admin");
        if mails == MAX_MAILS
            || !manages
            || operator.kind != OperatorKind::Person
            || operator.invitation.is_some()
        {
            continue;
        }
        // An operator that was made by a command may have an address to which nothing can be sent.
        if let Ok(mail) = Mail::new(&operator.email, subject.as_str(), text.as_str()) {
            state.outbox.enqueue(tx, Some(claim.account), &mail).await?;
            mails += 1;
        }
    }
    Ok(mails > 0)
}

fn lost(claim: &Claim) -> (String, String) {
    let host = &claim.host;
    if claim.state == State::Refused {
        let text = format!(
            "Another account has proven that {host} is its own, {LOST_DAYS} days after your proof was lost or the domain was \
             released. {host} is no short domain of yours any more. None of your links were on it.\n"
        );
        return (format!("The short domain {host} belongs to another account"), text);
    }
    let text = format!(
        "The proof that {host} is yours can no longer be found.\n\nIts links go on as before. New ones cannot be made on it \
         until the proof is back: a TXT record {} with the text\n\n    {}\n\nIt is looked for every few hours, and at once \
         when you ask for a check in the settings of the account. Until then you get this mail once a week. If {host} was sold \
         or has expired, its new owner decides where printed codes lead. After {LOST_DAYS} days without the proof, another \
         account that proves {host} gets it, unless links of yours are on it.\n",
        claim.record_name(),
        claim.content()
    );
    (format!("The short domain {host} is no longer proven"), text)
}
