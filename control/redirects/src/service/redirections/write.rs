//! Writes of redirections: rows, entries of the log, the audit trail and events.

use serde_json::{Value, json};
use shared::{
    id::AccountId,
    redirect::{Redirect, RedirectKey},
    short_url::ShortDomain,
    time::UnixMillis,
    wire::stream::{Change, Event, Rev},
};

use super::{KIND, plan::Ready};
use crate::{
    domain::{
        event::{Event as Happened, RedirectionChange, RedirectionEvent},
        link_details::LinkDetails,
        redirection::Redirection,
        scopes::Scopes,
    },
    error::ServiceError,
    store::{Tx, events, log, redirections as table},
};

/// Writes new rows and their log entries; returns the newest revision and the redirections.
pub(super) async fn insert(
    tx: &mut Tx,
    account: AccountId,
    domain: &ShortDomain,
    ready: &[&Ready],
    at: UnixMillis,
) -> Result<(Rev, Vec<Redirection>), ServiceError> {
    if ready.is_empty() {
        return Ok((log::newest_rev(tx).await?, Vec::new()));
    }
    let first = log::take_revs(tx, ready.len() as u64).await?;
    let rows: Vec<table::NewRow<'_>> = (first..)
        .zip(ready)
        .map(|(rev, item)| table::NewRow {
            folded: &item.folded,
            redirect: &item.redirect,
            scopes: &item.scopes,
            details: &item.details,
            rev,
        })
        .collect();
    let made = table::insert(tx, domain, account, at, &rows).await?;
    for item in ready {
        let id = audit_id(&item.redirect);
        tx.note(account, (KIND, &id), || (None, Some(state_of(&item.redirect, &item.scopes, &item.details))));
    }
    let events: Vec<Event> = (first..)
        .zip(ready)
        .map(|(rev, item)| {
            let key = RedirectKey::new(domain.host.as_str(), &item.folded);
            Event { rev, change: Change::Redirect(key, Some(item.redirect.clone().into())) }
        })
        .collect();
    log::append(tx, at.0, &events).await?;
    let created = ready.iter().map(|item| event_of(&item.redirect, &item.details, &item.scopes));
    record(tx, account, RedirectionChange::Created, created, at).await?;
    Ok((first + ready.len() as u64 - 1, made))
}

/// The id of a redirection in the audit trail: its domain and short id.
#[must_use]
pub fn audit_id(redirect: &Redirect) -> String {
    format!("{}/{}", redirect.domain, redirect.short_id)
}

/// What the audit trail shows of a redirection.
#[must_use]
pub fn state_of(redirect: &Redirect, scopes: &Scopes, details: &LinkDetails) -> Value {
    let mut state = json!({
        "type": redirect.resource_type.as_str(),
        "platformId": redirect.platform_id,
        "defaultRedirectUrl": redirect.target,
        "forwardQuery": redirect.forward_query,
        "scopes": scopes,
    });
    // Members that nobody gave are in no entry, as in those of before.
    if let (Value::Object(state), Ok(Value::Object(described))) =
        (&mut state, serde_json::to_value(&details.described))
    {
        state.extend(described);
        let availability = redirect.availability.iter().flat_map(|availability| availability.members());
        state.extend(availability.map(|(name, value)| (name.to_owned(), value)));
        state.extend(redirect.status_code.member().map(|(name, code)| (name.to_owned(), code.into())));
    }
    state
}

/// Records the changes as an event.
pub(super) async fn record(
    tx: &mut Tx,
    account: AccountId,
    change: RedirectionChange,
    items: impl Iterator<Item = RedirectionEvent>,
    at: UnixMillis,
) -> Result<(), ServiceError> {
    let event = Happened::Redirections { change, items: items.collect() };
    Ok(events::record(tx, at, &[(account, event)]).await?)
}

pub(super) fn event_of(redirect: &Redirect, details: &LinkDetails, scopes: &Scopes) -> RedirectionEvent {
    RedirectionEvent {
        domain: redirect.domain.to_string(),
        short_id: redirect.short_id.to_string(),
        platform_id: redirect.platform_id.to_string(),
        target: Some(redirect.target.to_string()),
        title: details.described.title.clone(),
        tags: details.described.tags.clone(),
        status_code: redirect.status_code,
        availability: redirect.availability.clone(),
        scopes: scopes.clone(),
    }
}

/// Writes changed rows and their log entries; returns the newest revision.
pub(super) async fn write_changed(
    tx: &mut Tx,
    changed: &mut [(RedirectKey, Redirection)],
    at: UnixMillis,
) -> Result<Rev, ServiceError> {
    write_as(tx, RedirectionChange::Updated, changed, at).await
}

/// The same as an event that says what happened.
pub(super) async fn write_as(
    tx: &mut Tx,
    change: RedirectionChange,
    changed: &mut [(RedirectKey, Redirection)],
    at: UnixMillis,
) -> Result<Rev, ServiceError> {
    let first = log::take_revs(tx, changed.len() as u64).await?;
    let mut events = Vec::with_capacity(changed.len());
    for (rev, (key, item)) in (first..).zip(changed.iter_mut()) {
        item.rev = rev;
        let written = Change::Redirect(key.clone(), Some(item.redirect.clone().into()));
        events.push(Event { rev, change: written });
    }
    if table::update(tx, changed).await? != changed.len() as u64 {
        return Err(gone());
    }
    log::append(tx, at.0, &events).await?;
    if let Some((_, first)) = changed.first() {
        let items = changed.iter().map(|(_, item)| event_of(&item.redirect, &item.details, &item.scopes));
        record(tx, first.account, change, items, at).await?;
    }
    Ok(first + changed.len() as u64 - 1)
}

/// A row that was read in the same transaction, under the lock that protects it, is missing.
pub(super) fn gone() -> ServiceError {
    ServiceError::Internal("a redirection that was found is gone".to_owned())
}
